"""Puts stream rows aside that a task cannot join within its memory."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

ARRIVALS = ("first_arrival", "tries")
"""The columns that say when a row without a match first came, and how often it was looked for."""
REASON = pa.field("reason_refused", pa.string(), nullable=False)


class RefusedRows:
    """Writes the rows that one task refuses to a Parquet file, with the reason of each.

    The file is complete when it gets its name, which is that of the query, the micro-batch and the `part`, by default
    the partition: a task that is tried again, or a micro-batch that is replayed, replaces it. There is none if no row
    is refused. Columns have the `names` of the stream, unless two of them are the same. A task that refuses rows of
    several kinds has a file for each, told apart by a `label`.
    """

    def __init__(
        self, folder: Path, names: Sequence[str], owner: str, batch: int, label: str = "", part: int | None = None
    ) -> None:
        self._names = list(names) if len({*names, REASON.name}) == len(names) + 1 else None
        context = TaskContext.get()
        partition = part if part is not None else context.partitionId() if context is not None else 0
        stage = context.stageId() if context is not None else 0
        name = (f"{batch:09d}-{partition:05d}" if owner else f"{stage:09d}-{partition:05d}") + label
        self._path = folder / (owner or "batch") / f"{name}.parquet"
        self._unfinished = self._path.with_name(f".{name}-{uuid.uuid4().hex}")
        self._writer: pq.ParquetWriter | None = None

    def put(self, rows: pa.RecordBatch, reason: str) -> None:
        """Write some rows."""
        reasons = pa.array([reason] * rows.num_rows, REASON.type)
        named = rows if self._names is None else rows.rename_columns(self._names)
        with_reasons = named.append_column(REASON, reasons)
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._unfinished, with_reasons.schema)
        self._writer.write_batch(with_reasons)

    def commit(self) -> None:
        """Give the file its name, on the disk and complete, if there is one."""
        if self._writer is None:
            return
        self._writer.close()
        descriptor = os.open(self._unfinished, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._unfinished.replace(self._path)
        self._writer = None

    def discard(self) -> None:
        """Remove what was written."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
            self._unfinished.unlink(missing_ok=True)
            self._writer = None
