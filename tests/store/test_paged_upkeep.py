"""Looking after tables: info, verify, vacuum, and the class that users see."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from table_model import all_rows

from semistream.core.errors import CorruptTableError, InvalidSettingError, MasterNotFoundError
from semistream.master_table import MasterTable
from semistream.store.paged import PagedFileStore
from semistream.store.paged.versions import manifest
from semistream.store.paged.versions import page_index as page_index_module
from semistream.store.places.place import Place


def rows(count: int, text: str = "row") -> pa.Table:
    return pa.table({"id": np.arange(count), "text": [f"{text} {number:020d}" for number in range(count)]})


@pytest.fixture
def table(tmp_path: Path) -> MasterTable:
    built = MasterTable.build(rows(5000), tmp_path / "t", "id")
    built.merge(rows(10, "merged"))
    MasterTable.build(rows(3000, "again"), tmp_path / "t", "id")
    built.merge(deletes=rows(5))
    return built


def test_info_tells_what_a_table_consists_of(table: MasterTable) -> None:
    info = table.info()
    assert info["versions"] == [1, 2, 3, 4]
    assert (info["version"], info["rows"], info["key"], info["unique"]) == (4, 2995, ["id"], True)
    assert info["schema"] == {"id": "int64", "text": "string"}
    assert info["page_bytes"] == 4096
    assert info["bytes"] == sum(file["bytes"] for file in info["files"])
    assert table.info(version=1)["rows"] == 5000


def test_verify_checks_every_version(table: MasterTable) -> None:
    assert [table.verify(version)["rows"] for version in (1, 2, 3, 4)] == [5000, 5000, 3000, 2995]


def test_verify_finds_an_index_that_says_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_index = page_index_module.write_index
    for column, change in (("first_codes", -1), ("row_counts", 1)):

        def wrong(
            place: Place, name: str, index: page_index_module.PageIndex, column: str = column, change: int = change
        ) -> object:
            getattr(index, column)[3] += change
            return write_index(place, name, index)

        monkeypatch.setattr("semistream.store.paged.versions.new_version.write_index", wrong)
        table = MasterTable.build(rows(3000), tmp_path / column, "id")
        with pytest.raises(CorruptTableError, match=r"Page 3 in .*data-.*"):
            table.verify()


def test_vacuum_removes_what_no_kept_version_needs(table: MasterTable) -> None:
    before = {path.name: path.stat().st_size for path in table.path.iterdir()}
    with table.open() as store:
        expected = all_rows(store)
    freed = table.vacuum(keep_versions=2, keep_for=0)
    after = {path.name for path in table.path.iterdir()}
    assert (freed["versions"], freed["kept"]) == ([1, 2], [3, 4])
    assert freed["bytes"] == sum(size for name, size in before.items() if name not in after)
    assert table.info()["versions"] == [3, 4]
    table.verify(3)
    table.vacuum(keep_for=0)
    assert all_rows(table.open()) == expected
    table.verify()
    with pytest.raises(MasterNotFoundError, match="has no version 3: it has 4"):
        table.open(version=3)


def test_vacuum_keeps_named_versions_and_shared_files(table: MasterTable) -> None:
    table.vacuum(keep_for=0, also_keep=[2, 77])
    assert table.info()["versions"] == [2, 4]
    table.verify(2)
    table.merge(rows(1, "more"))
    table.verify(2)
    table.verify()


def test_vacuum_leaves_what_somebody_reads_until_it_is_closed(table: MasterTable) -> None:
    with table.open(version=1) as store:
        assert table.vacuum(keep_for=0)["reasons"] == {1: ["being read"], 4: ["the newest"]}
        assert len(all_rows(store)) == 5000
    assert table.vacuum(keep_for=0)["kept"] == [4]


def test_vacuum_keeps_what_was_current_a_moment_ago(table: MasterTable) -> None:
    assert table.vacuum()["kept"] == [1, 2, 3, 4]
    now = time.time()
    for version, minutes in ((1, 90), (2, 60), (3, 20), (4, 5)):
        os.utime(table.path / manifest.manifest_name(version), (now, now - 60 * minutes))
    # Version 3 is 20 minutes old, but was current until version 4 came, 5 minutes ago.
    freed = table.vacuum()
    assert freed["reasons"] == {3: ["current until 5 minutes ago"], 4: ["the newest"]}
    assert table.vacuum(keep_for="4 minutes")["kept"] == [4]


def test_vacuum_must_keep_a_version(table: MasterTable) -> None:
    with pytest.raises(InvalidSettingError, match="keep_versions"):
        table.vacuum(0)


def test_a_master_table_is_its_path(table: MasterTable) -> None:
    copy = pickle.loads(pickle.dumps(table))
    assert copy == table == MasterTable(str(table.path))
    assert copy.version == 4
    assert len({copy, table}) == 1
    assert repr(table) == f"MasterTable({str(table.path)!r})"


@pytest.mark.parametrize("address", ["hdfs://user:secret@host/db", "ftp://host/secret"])
def test_addresses_of_other_places_are_refused_without_showing_secrets(address: str) -> None:
    with pytest.raises(InvalidSettingError, match="not supported") as refused:
        MasterTable(address)
    assert "secret" not in str(refused.value)


def test_direct_reads_transfer_whole_blocks(table: MasterTable) -> None:
    try:
        direct = PagedFileStore(table.path, direct=True)
    except Exception as error:
        pytest.skip(str(error))
    plain = PagedFileStore(table.path)
    assert direct.range_bytes(1, 1) % 4096 == 0
    assert direct.range_bytes(1, 1) >= plain.range_bytes(1, 1)
    pages = direct.read(np.array([1, 5]), np.array([1, 9]))
    assert pages.size_bytes >= direct.range_bytes(1, 1) + direct.range_bytes(5, 9)
    assert all_rows(direct) == all_rows(plain)


def test_pages_that_do_not_exist_cannot_be_read(table: MasterTable) -> None:
    store = table.open()
    for first, last in ((-1, 0), (0, store.page_count), (3, 2)):
        with pytest.raises(IndexError):
            store.read(np.array([first]), np.array([last]))
