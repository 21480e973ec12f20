"""From the link of its manifest on a version exists: nothing removes its files, and its number is never used again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.errors import CorruptTableError, MasterNotFoundError, SemistreamError
from semistream.core.file_system import System, installed
from semistream.master_table import MasterTable
from semistream.store.paged.versions import manifest
from semistream.store.places.local_folder import LocalFolder


class AfterLink(System):
    """Raises an error at the first call of a kind after a version was linked, or right after the link itself."""

    def __init__(self, call: str, error: BaseException) -> None:
        self._call = call
        self._error = error
        self._linked = False

    def link(self, existing: Path, new: Path) -> None:
        super().link(existing, new)
        self._linked = True
        self._strike("link")

    def sync(self, descriptor: int) -> None:
        self._strike("sync")
        super().sync(descriptor)

    def unlink(self, path: Path) -> None:
        self._strike("unlink")
        super().unlink(path)

    def _strike(self, call: str) -> None:
        if self._linked and call == self._call:
            self._linked = False
            raise self._error


def rows(count: int, text: str) -> pa.Table:
    return pa.table({"k": np.arange(count), "v": [f"{text} {number}" for number in range(count)]})


def values(table: MasterTable) -> list[str]:
    with table.open() as store:
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        texts: list[str] = pages.take(np.arange(len(pages.codes)), ["v"]).column(0).to_pylist()
        return texts


@pytest.fixture
def table(tmp_path: Path) -> MasterTable:
    return MasterTable.build(rows(500, "old"), tmp_path / "t", "k", page_bytes=1024)


@pytest.mark.parametrize("call", ["link", "sync", "unlink"])
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(143), OSError(errno.EIO, "Input/output error"), OSError(errno.ENOSPC, "")]
)
@pytest.mark.parametrize("work", ["merge", "build", "compact", "restore"])
def test_nothing_that_is_raised_after_the_link_removes_the_version(
    table: MasterTable, call: str, error: BaseException, work: str
) -> None:
    table.merge(rows(300, "newer"))
    expected = values(table)
    if isinstance(error, OSError) and call == "link":
        pytest.skip("a link that has failed has not made the version")
    commands = {
        "merge": (lambda: table.merge(rows(2, "merged")), ["merged 0", "merged 1", *expected[2:]]),
        "build": (lambda: MasterTable.build(rows(9, "built"), table.path, "k"), [f"built {n}" for n in range(9)]),
        "compact": (table.compact, expected),
        "restore": (lambda: table.restore(1), [f"old {number}" for number in range(500)]),
    }
    run, after = commands[work]
    with installed(AfterLink(call, error)):
        if isinstance(error, OSError) and call == "unlink":
            run()  # the manifest has its name, and what is left is removed by the next writer
        else:
            expected_error = SemistreamError if isinstance(error, OSError) else type(error)
            with pytest.raises(expected_error, match="committed" if isinstance(error, OSError) else None):
                run()
    assert table.version == 3
    assert values(table) == after
    table.vacuum(keep_for=0)
    assert table.verify()["version"] == 3
    assert table.merge(rows(1, "next")) == 4
    assert not list(table.path.glob("tmp-*"))


def test_the_version_that_stays_must_be_whole_before_others_are_removed(table: MasterTable) -> None:
    table.merge(rows(3, "newer"))
    for pattern in ("data-00000002-*", "index-00000002-*", "data-00000001-*"):
        (path,) = table.path.glob(pattern)
        whole = path.read_bytes()
        for damaged in (None, whole[:-8], whole + b"\0"):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            with pytest.raises(CorruptTableError, match=rf"version 2 is to stay \(the newest\).*{path.name}"):
                table.vacuum(keep_for=0)
            path.write_bytes(whole)
            assert manifest.versions(LocalFolder(table.path)) == [1, 2]
    (index,) = table.path.glob("index-00000002-*")
    index.write_bytes(index.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptTableError, match="checksum"):
        table.vacuum(keep_for=0)
    assert table.verify(1)["rows"] == 500


def test_a_number_is_not_used_again_after_its_manifest_was_removed(table: MasterTable) -> None:
    assert table.merge(rows(1, "second")) == 2
    assert table.merge(rows(1, "third")) == 3
    (table.path / manifest.manifest_name(3)).unlink()
    assert table.version == 2
    with pytest.raises(SemistreamError, match="column"):
        table.merge(pa.table({"k": [1]}))
    assert table.merge(rows(1, "after")) == 4
    with pytest.raises(MasterNotFoundError):
        table.open(3)


def test_a_table_whose_writers_noted_no_number_goes_on_above_all_names(table: MasterTable) -> None:
    table.merge(rows(1, "second"))
    (table.path / "writer.lock").write_bytes(b"")
    (table.path / manifest.manifest_name(2)).unlink()
    assert table.merge(rows(1, "after")) == 3
    (table.path / "writer.lock").write_bytes(b"000000000000000099 00000000\n")
    assert table.merge(rows(1, "a damaged note is no note")) == 4


def test_restore_goes_back_by_a_new_version(table: MasterTable) -> None:
    table.merge(rows(3, "newer"))
    newer = values(table)
    assert table.restore(1) == 3
    assert values(table)[:3] == ["old 0", "old 1", "old 2"]
    assert table.restore(3) == 3, "it is current already"
    assert table.restore(2) == 4
    assert values(table) == newer
    for version in range(1, 5):
        table.verify(version)
    with pytest.raises(MasterNotFoundError, match="has no version 9"):
        table.restore(9)
    (index,) = table.path.glob("index-00000001-*")
    index.unlink()
    with pytest.raises(CorruptTableError, match=f"{index.name} is missing"):
        table.restore(1)
    assert table.version == 4


def test_a_writer_whose_files_were_taken_away_commits_nothing(
    table: MasterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from semistream.store.paged.versions import new_version

    check = new_version.check_sizes

    def taken_away(place: LocalFolder, needed: object) -> None:
        for path in place.folder.glob("data-00000002-*"):
            path.unlink()
        check(place, needed)  # type: ignore[arg-type]

    monkeypatch.setattr(new_version, "check_sizes", taken_away)
    with pytest.raises(CorruptTableError, match=r"data-00000002-\S+ is missing"):
        table.merge(rows(3, "newer"))
    assert table.version == 1
    assert values(table)[0] == "old 0"


def test_a_forked_process_keeps_the_lease_of_its_parent_until_it_ends(table: MasterTable) -> None:
    store = table.open(1)
    table.merge(rows(3, "newer"))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    store.close()
    assert table.vacuum(keep_for=0)["reasons"][1] == ["being read"]
    os.close(writing)
    os.waitpid(child, 0)
    assert table.vacuum(keep_for=0)["kept"] == [2]
