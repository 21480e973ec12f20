"""The files of dead letters that a task leaves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa

from semistream.engine.output.output import DeadLetters
from semistream.spark.refused_rows import ARRIVALS, RefusedRows
from semistream.spark.room.room_file import SINCE, TRIES

if TYPE_CHECKING:
    from semistream.spark.task import EnrichTask


class DeadLetterFiles:
    """The files of dead letters of one task: one for rows that are too large, one for rows without a match."""

    def __init__(self, task: EnrichTask, owner: str, batch: int) -> None:
        folder, names = task.dead_letters, task.stream_names
        self._width = len(names)
        self._large = RefusedRows(folder, names, owner, batch) if folder is not None else None
        self._unmatched = (
            RefusedRows(folder, (*names, *ARRIVALS), owner, batch, "-unmatched") if folder is not None else None
        )
        self._reason = f"The master table {task.table.name} has no row with this key."

    @property
    def refused(self) -> DeadLetters | None:
        """What takes rows that are too large, if somebody does."""
        return self._large.put if self._large is not None else None

    def put_unmatched(self, rows: pa.RecordBatch) -> None:
        """Take joined rows that have no match."""
        assert self._unmatched is not None
        count = rows.num_rows
        now = pa.scalar(int(time.time() * 1e6), pa.int64()).cast(SINCE.type)
        columns = [*rows.columns[: self._width], pa.repeat(now, count), pa.repeat(pa.scalar(1, TRIES.type), count)]
        fields = [*list(rows.schema)[: self._width], SINCE, TRIES]
        self._unmatched.put(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)), self._reason)

    def commit(self) -> None:
        """Give the files their names."""
        for file in (self._large, self._unmatched):
            if file is not None:
                file.commit()

    def discard(self) -> None:
        """Remove what was written."""
        for file in (self._large, self._unmatched):
            if file is not None:
                file.discard()
