"""Ranges of a sorted Arrow table as the pages of a read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.store.contract import PageSet
from semistream.store.rows_within import RowsWithin


class RowSlices(PageSet):
    """Ranges of an Arrow table whose rows are sorted by code; `starts` says where in the table each begins.

    `kept_bytes` is what the set alone keeps alive, besides the codes.
    """

    def __init__(
        self,
        codes: Int64Array,
        bounds: Int64Array,
        rows: pa.Table,
        starts: Int64Array,
        counter: Callable[[tuple[str, ...]], RowsWithin],
        kept_bytes: int = 0,
    ) -> None:
        self.codes = codes
        self.bounds = bounds
        self._rows = rows
        self._starts = starts
        self._counter = counter
        self._kept_bytes = kept_bytes

    def take(self, rows: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the named columns of these rows."""
        return self._take_at(self._places(rows), columns)

    def take_within(self, rows: Int64Array, columns: Sequence[str], limit_bytes: int) -> tuple[pa.RecordBatch, int]:
        """Return the first of these rows that take no more than the limit, counted before they are copied."""
        counter = self._counter(tuple(columns))
        if not counter.is_countable:
            return super().take_within(rows, columns, limit_bytes)
        at = self._places(rows)
        count, size_bytes = counter.count(at, limit_bytes)
        return self._take_at(at[:count], columns), size_bytes

    def _places(self, rows: Int64Array) -> Int64Array:
        if len(self._starts) == 1:
            only: Int64Array = rows + self._starts[0]
            return only
        ranges = np.searchsorted(self.bounds, rows, side="right") - 1
        places: Int64Array = rows - self.bounds[ranges] + self._starts[ranges]
        return places

    def _take_at(self, at: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        indices = pa.array(at)
        arrays = [only_chunk(self._rows.column(name)).take(indices) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([self._rows.schema.field(name) for name in columns]))

    @property
    def size_bytes(self) -> int:
        """The codes, and the rows unless others keep them anyway."""
        return self.codes.nbytes + self._kept_bytes


def only_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
