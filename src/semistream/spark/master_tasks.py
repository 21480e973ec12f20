"""What Spark's tasks do when a master table is built or merged: code keys, and write sorted rows into files.

Every attempt of a task writes a file of its own and reports it as one row, so that an attempt that was repeated or lost
leaves at most a file that nobody names. Task objects are classes of this module, so that workers load them by name.
"""

from __future__ import annotations

import errno
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedWriter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core import durable_files as files
from semistream.core import errors
from semistream.core.errors import SemistreamError
from semistream.core.keys import KeyCodec
from semistream.store.paged_file import layout as file_layout
from semistream.store.paged_file.build import write_pages
from semistream.store.paged_file.coding import check_required, null_key_error
from semistream.store.paged_file.manifest import TableFile
from semistream.store.paged_file.page_index import PageIndex
from semistream.store.paged_file.row_layout import RowLayout, stored_column

CODE_COLUMN = "code"
REPORT_COLUMNS = """
    name string, size_bytes long, row_count long, first_code long, last_code long, kept_duplicates boolean,
    first_codes binary, offsets binary, lengths binary, row_counts binary, checksums binary, error string,
    message string
"""
_REPORT_SCHEMA = pa.schema(
    [
        *[pa.field("name", pa.string())],
        *(pa.field(name, pa.int64()) for name in ("size_bytes", "row_count", "first_code", "last_code")),
        *[pa.field("kept_duplicates", pa.bool_())],
        *(pa.field(name, pa.binary()) for name in ("first_codes", "offsets", "lengths", "row_counts", "checksums")),
        *(pa.field(name, pa.string()) for name in ("error", "message")),
    ]
)


@dataclass(frozen=True)
class KeyCoder:
    """Puts the key code in front of each row; a row whose key nobody can equal gets none, or is left out."""

    key_places: tuple[int, ...]
    key_types: tuple[pa.DataType, ...]
    """The types in which the key columns are stored."""
    code_types: tuple[pa.DataType, ...]
    """The types of the key columns in the table."""
    drop_unusable: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield each batch with its codes."""
        codec = KeyCodec(self.code_types)
        for batch in batches:
            if not batch.num_rows:
                continue
            places = zip(self.key_places, self.key_types, strict=True)
            encoded = codec.encode([stored_column(batch.column(place), data_type) for place, data_type in places])
            unusable = None if encoded.usable is None else ~encoded.usable
            codes = pa.array(encoded.codes, mask=unusable)
            coded = pa.RecordBatch.from_arrays([codes, *batch.columns], names=[CODE_COLUMN, *batch.schema.names])
            yield coded.filter(pa.array(encoded.usable)) if self.drop_unusable and unusable is not None else coded


@dataclass(frozen=True)
class Part:
    """A file of rows, sorted by code, that a task has written."""

    file: TableFile
    row_count: int
    first_code: int
    last_code: int
    kept_duplicates: bool = False
    index: PageIndex | None = None
    """The pages of a data file, which has the number 0 in it."""


@dataclass(frozen=True)
class SortedRowsTask(ABC):
    """Writes the rows of a partition, which come coded and sorted, into a file in the directory of the table."""

    directory: str
    coded_schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the report of the file, or of what is wrong with the rows; nothing if there are no rows."""
        arriving = (batch for batch in batches if batch.num_rows)
        first = next(arriving, None)
        if first is None:
            return
        rows = _Arriving(self.coded_schema, first, arriving)
        try:
            report = _described(self._part(rows))
        except OSError as error:
            problem = _file_problem(self.directory, error)
            if problem is None:
                raise
            report = _failure(problem)
        except SemistreamError as error:
            # Another attempt would find the same rows, so that an exception would only lead to retries.
            report = _failure(error)
        for _ in arriving:
            # A worker that leaves rows unread is given up by Spark.
            pass
        yield pa.RecordBatch.from_pylist([report], schema=_REPORT_SCHEMA)

    @abstractmethod
    def _part(self, rows: _Arriving) -> Part:
        """Write the rows and return their file."""


@dataclass(frozen=True)
class PageTask(SortedRowsTask):
    """Writes the rows of a partition as pages into a data file of the next version."""

    version: int
    schema: pa.Schema
    key: tuple[str, ...]
    page_bytes: int
    on_duplicate: str

    def _part(self, rows: _Arriving) -> Part:
        layout = RowLayout(self.schema, self.key)
        path = Path(self.directory) / file_layout.data_name(self.version, uuid.uuid4().hex[:8])
        pages = write_pages(path, layout, self.page_bytes, self.on_duplicate, rows)
        return Part(pages.file, rows.row_count, rows.first_code, rows.last_code, pages.kept_duplicates, pages.index)


@dataclass(frozen=True)
class ChangesTask(SortedRowsTask):
    """Writes the rows of a partition into a temporary file, from which they are merged."""

    prefix: str

    def _part(self, rows: _Arriving) -> Part:
        path = Path(self.directory) / f"{self.prefix}{uuid.uuid4().hex}"
        try:
            with BufferedWriter(files.NewFile(path)) as file, pa.ipc.new_stream(file, self.coded_schema) as writer:
                for batch in rows:
                    writer.write_batch(batch)
        except BaseException:
            files.remove_if_possible(path)
            raise
        size_bytes = path.stat().st_size
        return Part(TableFile(path.name, size_bytes), rows.row_count, rows.first_code, rows.last_code)


def reported_parts(reports: pa.Table) -> list[Part]:
    """Return the parts that tasks report, in the order of their codes, or raise the error that one of them reports."""
    failures = sorted(
        (report["error"] != errors.NullKeyError.__name__, report["message"], report["error"])
        for report in reports.select(["error", "message"]).to_pylist()
        if report["error"] is not None
    )
    if failures:
        _, message, name = failures[0]
        raise getattr(errors, name, SemistreamError)(message)
    parts = sorted((_part_of(report) for report in reports.to_pylist()), key=lambda part: part.first_code)
    for before, after in pairwise(parts):
        if before.last_code >= after.first_code:
            raise SemistreamError("Spark gave rows of one key to several tasks: please report it with your version.")
    return parts


class _Arriving:
    """The rows of a partition as coded rows; may be iterated once, and knows their codes and number afterwards."""

    def __init__(self, schema: pa.Schema, first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> None:
        self._schema = schema
        self._first = first
        self._others = others
        self.row_count = 0
        self.first_code = 0
        self.last_code = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        null_count = 0
        batch: pa.RecordBatch | None = self._first
        while batch is not None:
            codes = batch.column(0)
            # Rows without a code come first and in one partition, so that this counts all there are.
            null_count += codes.null_count
            if not null_count:
                yield self._coded(batch)
            batch = next(self._others, None)
        if null_count:
            raise null_key_error(null_count)

    def _coded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        # Behind the columns of the table come those that were only needed for sorting.
        pairs = zip(self._schema, batch.columns, strict=False)
        columns = [stored_column(column, field.type) for field, column in pairs]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        check_required(rows)
        if not self.row_count:
            self.first_code = columns[0][0].as_py()
        self.last_code = columns[0][-1].as_py()
        self.row_count += rows.num_rows
        return rows


def _described(part: Part) -> dict[str, Any]:
    report: dict[str, Any] = {
        "name": part.file.name,
        "size_bytes": part.file.size_bytes,
        "row_count": part.row_count,
        "first_code": part.first_code,
        "last_code": part.last_code,
        "kept_duplicates": part.kept_duplicates,
    }
    if part.index is not None:
        report["first_codes"] = part.index.first_codes.astype("<i8").tobytes()
        report["offsets"] = part.index.offsets.astype("<i8").tobytes()
        for name in ("lengths", "row_counts", "checksums"):
            report[name] = getattr(part.index, name).astype("<u4").tobytes()
    return report


def _part_of(report: dict[str, Any]) -> Part:
    index = None
    if report["first_codes"] is not None:
        first_codes, offsets = (np.frombuffer(report[name], dtype="<i8") for name in ("first_codes", "offsets"))
        small = (np.frombuffer(report[name], dtype="<u4") for name in ("lengths", "row_counts", "checksums"))
        index = PageIndex(first_codes, offsets, *small)
    return Part(
        TableFile(report["name"], report["size_bytes"]),
        report["row_count"],
        report["first_code"],
        report["last_code"],
        report["kept_duplicates"],
        index,
    )


def _failure(error: SemistreamError) -> dict[str, Any]:
    return {"error": type(error).__name__, "message": str(error)}


def _file_problem(directory: str, error: OSError) -> SemistreamError | None:
    """Return the error that users can do something about, or None if another attempt may succeed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SemistreamError(
            f"The disk of {directory} is full: free some space and try again; the table is as it was before."
        )
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS):
        return SemistreamError(
            f"A Spark worker cannot write to {directory} ({error.strerror}): give a path on a file system that the "
            f"driver and all executors share and may write to."
        )
    return None
