"""A mirror of files."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored_rows import as_multiset, stored_rows

import semistream as ss
from semistream.core.errors import InvalidSettingError, SchemaDriftError, SemistreamError, UnknownColumnError
from semistream.mirrors import files

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"], "price": [1.0, 2.0, None]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file of three rows that is some time old."""
    (tmp_path / "landing").mkdir()
    _write(tmp_path / "landing" / "1.parquet", ROWS)
    return tmp_path / "landing"


def _write(path: Path, rows: pa.Table, age: float = 60.0) -> None:
    pq.write_table(rows, path)
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))


def test_a_refresh_brings_a_mirror_in_step_with_added_changed_and_removed_files(folder: Path, tmp_path: Path) -> None:
    mirror = ss.MasterTable.build(ss.FileSource(folder), tmp_path / "m", key="id")
    assert as_multiset(stored_rows(mirror)) == as_multiset(ROWS)
    more = pa.table({"id": [9, 8], "name": ["x", "y"], "price": [9.0, 8.0]})
    _write(folder / "2.parquet", more)
    assert mirror.refresh().rows_upserted == 2
    _write(folder / "1.parquet", ROWS.slice(1), age=50)
    done = mirror.refresh()
    assert (done.rows_upserted, done.rows_deleted) == (0, 1)
    (folder / "2.parquet").unlink()
    assert mirror.refresh().rows_deleted == 2
    assert as_multiset(stored_rows(mirror)) == as_multiset(ROWS.slice(1))


def test_files_that_are_as_they_were_are_not_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = ss.MasterTable.build(ss.FileSource(folder), tmp_path / "m", key="id")
    monkeypatch.setattr(files, "open_source", lambda _: pytest.fail("was read"))
    assert not mirror.refresh().changed


def test_a_young_file_is_compared_again_because_its_time_may_not_tell_the_next_change(
    folder: Path, tmp_path: Path
) -> None:
    _write(folder / "1.parquet", ROWS, age=0)
    mirror = ss.MasterTable.build(ss.FileSource(folder), tmp_path / "m", key="id")
    assert mirror.info()["mirror"]["position"] == {"files": None}
    status = (folder / "1.parquet").stat()
    other = pa.table({"id": [1, 2, 3], "name": ["a", "b", "z"], "price": [1.0, 2.0, None]})
    content = pa.BufferOutputStream()
    pq.write_table(other, content)
    with (folder / "1.parquet").open("r+b") as file:
        file.write(content.getvalue().to_pybytes())
    os.utime(folder / "1.parquet", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert mirror.refresh().rows_upserted == 1


def test_files_that_change_while_they_are_read_are_not_applied(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = ss.MasterTable.build(ss.FileSource(folder), tmp_path / "m", key="id")
    _write(folder / "1.parquet", ROWS.slice(0, 1), age=50)
    opened = files.open_source

    def and_one_more(_: object) -> object:
        _write(folder / "2.parquet", ROWS.slice(1))
        return opened(folder / "1.parquet")

    monkeypatch.setattr(files, "open_source", and_one_more)
    with pytest.raises(SemistreamError, match="changed while they were read"):
        mirror.refresh()
    assert mirror.version == 1
    monkeypatch.undo()
    assert mirror.refresh().rows_deleted == 0
    assert as_multiset(stored_rows(mirror)) == as_multiset(ROWS)


def test_chosen_columns_are_mirrored_and_added_ones_ignored(folder: Path, tmp_path: Path) -> None:
    mirror = ss.MasterTable.build(ss.FileSource(folder, columns=["id", "price"]), tmp_path / "m", key="id")
    _write(folder / "1.parquet", ROWS.append_column("extra", pa.array([7, 8, 9])), age=50)
    assert not mirror.refresh().rebuilt
    assert stored_rows(mirror).schema.names == ["id", "price"]
    with pytest.raises(UnknownColumnError, match="no column 'prize'"):
        ss.MasterTable.build(ss.FileSource(folder, columns=["id", "prize"]), tmp_path / "other", key="id")


def test_a_column_that_may_not_be_null_today_may_be_null_tomorrow(folder: Path, tmp_path: Path) -> None:
    strict = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string(), nullable=False)])
    _write(folder / "1.parquet", ROWS.select(["id", "name"]).cast(strict))
    mirror = ss.MasterTable.build(ss.FileSource(folder), tmp_path / "m", key="id")
    _write(folder / "1.parquet", pa.table({"id": [1], "name": pa.array([None], pa.string())}), age=50)
    mirror.refresh()
    assert stored_rows(mirror).to_pylist() == [{"id": 1, "name": None}]


def test_an_emptied_or_missing_folder_deletes_nothing(folder: Path, tmp_path: Path) -> None:
    mirror = ss.MasterTable.build(ss.FileSource(folder), tmp_path / "m", key="id")
    (folder / "1.parquet").unlink()
    with pytest.raises(SchemaDriftError, match="has lost the column"):
        mirror.refresh()
    folder.rmdir()
    with pytest.raises(InvalidSettingError, match="There is no file"):
        mirror.refresh()
    assert mirror.info()["rows"] == 3


def test_csv_files_are_a_source_too(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,name\n1,a\n2,b\n")
    mirror = ss.MasterTable.build(ss.FileSource(tmp_path / "p.csv"), tmp_path / "m", key="id")
    (tmp_path / "p.csv").write_text("id,name\n1,a\n2,c\n")
    assert mirror.refresh().rows_upserted == 1
