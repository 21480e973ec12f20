"""Where the rows of answered stream tuples are until they are in the output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.engine.rows.row_sizes import RowSizes, count_within
from semistream.engine.rows.stream_rows import StreamRows


class TupleRows(ABC):
    """Rows of stream tuples by numbers."""

    waited: bool
    """Whether the numbers are slots, which are to be freed when their tuples have left."""

    @abstractmethod
    def variable_bytes(self, tuples: Int64Array) -> Int64Array | None:
        """Return what each row takes in columns without a fixed width; None if there are none."""

    @abstractmethod
    def take(self, tuples: Int64Array, columns: Sequence[int] | None = None) -> pa.RecordBatch:
        """Return the rows of some tuples, at least one, with all or only some of the columns."""

    @abstractmethod
    def free(self, tuples: Int64Array) -> None:
        """Forget the rows of some tuples."""

    def count_within(self, tuples: Int64Array, limit_bytes: float) -> int:
        """Return how many of the first rows fit the limit in their variable columns, at least one."""
        sizes = self.variable_bytes(tuples)
        return len(tuples) if sizes is None else min(len(tuples), count_within(sizes, limit_bytes))


class WaitedRows(TupleRows):
    """Rows in slots."""

    waited = True

    def __init__(self, rows: StreamRows) -> None:
        self._rows = rows

    def variable_bytes(self, tuples: Int64Array) -> Int64Array | None:
        """Return what each row takes in columns without a fixed width; None if there are none."""
        return self._rows.variable_bytes(tuples) if self._rows.sizes.is_variable else None

    def take(self, tuples: Int64Array, columns: Sequence[int] | None = None) -> pa.RecordBatch:
        """Return the rows of slots."""
        return self._rows.take(tuples, columns)

    def free(self, tuples: Int64Array) -> None:
        """Free the slots."""
        self._rows.free(tuples)


class ArrivedRows(TupleRows):
    """Rows of a batch that has just arrived."""

    waited = False

    def __init__(self, batch: pa.RecordBatch, sizes: RowSizes) -> None:
        self._batch = batch
        self._sizes = sizes

    def variable_bytes(self, tuples: Int64Array) -> Int64Array | None:
        """Return what each row takes in columns without a fixed width; None if there are none."""
        return self._sizes.of(self._batch, tuples) if self._sizes.is_variable else None

    def take(self, tuples: Int64Array, columns: Sequence[int] | None = None) -> pa.RecordBatch:
        """Return copies of rows, which do not keep the batch in memory."""
        batch = self._batch if columns is None else self._batch.select(list(columns))
        return batch.take(pa.array(tuples))

    def free(self, tuples: Int64Array) -> None:
        """Nothing to free: the batch is kept for as long as something refers to it."""
