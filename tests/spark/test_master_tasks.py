"""What tasks do with their rows, tried without Spark."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.core import durable_files as files
from semistream.core.errors import DuplicateKeyError, NullKeyError, SchemaDriftError, SemistreamError
from semistream.core.keys import KeyCodec
from semistream.spark.master_tasks import ChangesTask, PageTask, reported_parts
from semistream.store.address import Address
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.parts import KeyCoder

SCHEMA = pa.schema([pa.field("v", pa.string()), pa.field("id", pa.int64(), nullable=False)])
LAYOUT = RowLayout(SCHEMA, ["id"])


def page_task(directory: Path, on_duplicate: str = "error") -> PageTask:
    return PageTask(Address.of(directory), LAYOUT.coded_schema, 1, SCHEMA, ("id",), 1024, on_duplicate)


def arriving(codes: list[int | None], size: int = 100) -> list[pa.RecordBatch]:
    column = pa.array(codes, pa.int64())
    texts = pa.array([f"text {code}" for code in codes])
    # The last column was needed for sorting only; the last batch is empty.
    batch = pa.RecordBatch.from_arrays([column, column, texts, column], names=["code", "c1", "c0", "c7"])
    return [batch.slice(start, size) for start in range(0, len(codes) + size, size)]


def reports(*tasks_and_rows: tuple[PageTask | ChangesTask, list[pa.RecordBatch]]) -> pa.Table:
    return pa.Table.from_batches([report for task, rows in tasks_and_rows for report in task(iter(rows))])


def test_a_report_tells_the_file_and_its_pages(tmp_path: Path) -> None:
    task = page_task(tmp_path)
    low, high = arriving(list(range(-500, 500))), arriving(list(range(500, 2000)))
    parts = reported_parts(reports((task, high), (task, low)))
    assert [(part.row_count, part.first_code, part.last_code) for part in parts] == [
        (1000, -500, 499),
        (1500, 500, 1999),
    ]
    for part in parts:
        assert part.index is not None
        assert part.file.size_bytes == (tmp_path / part.file.name).stat().st_size
        assert part.index.row_counts.sum() == part.row_count
        assert (np.diff(part.index.first_codes) > 0).all()
        assert part.index.offsets[-1] + part.index.lengths[-1] == part.file.size_bytes
        assert (part.index.files == 0).all()


def test_a_partition_without_rows_reports_and_writes_nothing(tmp_path: Path) -> None:
    assert list(page_task(tmp_path)(iter([]))) == []
    assert list(page_task(tmp_path)(iter(arriving([1])[1:]))) == []
    assert list(tmp_path.iterdir()) == []


def test_bad_rows_are_reported_and_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(DuplicateKeyError, match="The key id=7 occurs in several master rows"):
        reported_parts(reports((page_task(tmp_path), arriving([1, 7, 7, 9], size=2))))
    with pytest.raises(NullKeyError, match="2 master rows have a null key"):
        reported_parts(
            reports(
                (page_task(tmp_path), arriving([5, 5])),
                (ChangesTask(str(tmp_path), LAYOUT.coded_schema, "tmp-x-"), arriving([None, None, 3], size=1)),
            )
        )
    batch = arriving([1, 2])[0]
    holed = batch.set_column(1, "c1", pa.array([1, None]))
    with pytest.raises(SchemaDriftError, match="The column 'id' has nulls"):
        reported_parts(reports((page_task(tmp_path), [holed])))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        SemistreamError, match=r"cannot write to .* \(No such file or directory\): give a path on a file"
    ):
        reported_parts(reports((page_task(tmp_path / "none"), arriving([1]))))


def test_a_full_disk_is_reported_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_all", refuse)
    with pytest.raises(SemistreamError, match="is full: free some space and try again"):
        reported_parts(reports((page_task(tmp_path), arriving([1]))))
    assert list(tmp_path.iterdir()) == []


def test_other_errors_of_the_disk_are_left_to_another_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "write_all", fail)
    with pytest.raises(OSError, match="Input/output error"):
        list(page_task(tmp_path)(iter(arriving([1]))))
    assert list(tmp_path.iterdir()) == []


def test_parts_that_share_a_code_are_refused(tmp_path: Path) -> None:
    task = page_task(tmp_path)
    with pytest.raises(SemistreamError, match="Spark gave rows of one key to several tasks"):
        reported_parts(reports((task, arriving([1, 5])), (task, arriving([5, 9]))))


def test_the_coder_leaves_out_what_nobody_can_equal_only_if_it_is_told() -> None:
    batch = pa.RecordBatch.from_pydict({"c3": ["a", "b", None], "c0": pa.array([1, None, 3], pa.int32())})
    types = (pa.int32(), pa.string())
    codes = KeyCodec(types).encode([batch.column(1), batch.column(0)]).codes
    (kept,) = KeyCoder((1, 0), types, types)(iter([batch]))
    assert kept.column(0).to_pylist() == [codes[0], None, None]
    assert kept.columns[1:] == batch.columns
    (left,) = KeyCoder((1, 0), types, types, drop_unusable=True)(iter([batch, batch.slice(0, 0)]))
    assert left.column(0).to_pylist() == [codes[0]]
