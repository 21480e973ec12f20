"""What Spark's tasks do when a master table is built or merged: write sorted rows into files, and report these.

Every attempt of a task writes a file of its own and reports it as one row, so that an attempt that was repeated or lost
leaves at most a file that nobody names. Task objects are classes of this module, so that workers load them by name.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from semistream.core import errors
from semistream.core.errors import SemistreamError
from semistream.store.address import Address
from semistream.store.parts import ArrivingRows, Part, RowLayout, write_changes, write_data

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
class SortedRowsTask(ABC):
    """Writes the rows of a partition, which come coded and sorted, into a file of the table."""

    address: Address
    coded_schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the report of the file, or of what is wrong with the rows; nothing if there are no rows."""
        arriving = (batch for batch in batches if batch.num_rows)
        first = next(arriving, None)
        if first is None:
            return
        rows = ArrivingRows(self.coded_schema, first, arriving)
        try:
            report = self._part(rows).as_fields()
        except OSError as error:
            problem = _file_problem(str(self.address), error)
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
    def _part(self, rows: ArrivingRows) -> Part:
        """Write the rows and return their file."""


@dataclass(frozen=True)
class PageTask(SortedRowsTask):
    """Writes the rows of a partition as pages into a data file of the next version."""

    version: int
    schema: pa.Schema
    key: tuple[str, ...]
    page_bytes: int
    on_duplicate: str

    def _part(self, rows: ArrivingRows) -> Part:
        layout = RowLayout(self.schema, self.key)
        return write_data(self.address, self.version, layout, self.page_bytes, self.on_duplicate, rows)


@dataclass(frozen=True)
class ChangesTask(SortedRowsTask):
    """Writes the rows of a partition into a temporary file, from which they are merged."""

    prefix: str

    def _part(self, rows: ArrivingRows) -> Part:
        return write_changes(self.address, self.prefix, rows)


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
    parts = sorted((Part.of_fields(report) for report in reports.to_pylist()), key=lambda part: part.first_code)
    for before, after in pairwise(parts):
        if before.last_code >= after.first_code:
            raise SemistreamError(
                "Spark gave rows of one key to several tasks: please report this with your version of Spark."
            )
    return parts


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
