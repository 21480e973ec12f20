"""How many bytes rows take, known before they are copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.arrow_row_sizes import row_bits
from semistream.core.compile import kernel
from semistream.core.value_widths import fixed_width, is_bytes, offsets_of


class RowSizes:
    """Says what rows of a schema take: `fixed_bytes` each, and what their columns without a fixed width add."""

    def __init__(self, schema: pa.Schema) -> None:
        types = [field.type for field in schema]
        self._bytes_at = [index for index, data_type in enumerate(types) if is_bytes(data_type)]
        self._other_at = [
            index for index, data_type in enumerate(types) if fixed_width(data_type) is None and not is_bytes(data_type)
        ]
        self.is_variable = bool(self._bytes_at or self._other_at)
        self.fixed_bytes = fixed_row_bytes(types)

    def total(self, batch: pa.RecordBatch) -> int:
        """Return what the variable columns of all rows take together; costs some microseconds a column."""
        total = sum(int(batch.column(index).nbytes) for index in self._other_at)
        for index in self._bytes_at:
            offsets = offsets_of(batch.column(index))
            total += int(offsets[batch.num_rows]) - int(offsets[0])
        return total

    def of(self, batch: pa.RecordBatch, rows: Int64Array) -> Int64Array:
        """Return what the variable columns of each of some rows take."""
        sizes = np.zeros(len(rows), dtype=np.int64)
        for index in self._bytes_at:
            add_lengths(offsets_of(batch.column(index)), rows, sizes)
        if self._other_at:
            sizes += -(-row_bits(batch.select(self._other_at))[rows] // 8)
        return sizes


def fixed_row_bytes(types: list[pa.DataType]) -> int:
    """Return what a row takes in Arrow arrays of these types whatever its values, with a byte for what may be null."""
    return sum((fixed_width(data_type) or 8) + 1 for data_type in types)


def count_within(sizes: Int64Array, limit_bytes: float) -> int:
    """Return how many of the first sizes fit the limit together, at least one."""
    if sizes.sum() <= limit_bytes:
        return max(1, len(sizes))
    return max(1, int(np.searchsorted(np.cumsum(sizes), limit_bytes, side="right")))


def cuts(sizes: Int64Array | None, count: int, limit_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield first and end of stretches of so many rows, each within the limit unless it is a single row.

    All rows are one stretch if their sizes are not given.
    """
    if sizes is None:
        if count:
            yield 0, count
        return
    sums = np.cumsum(sizes)
    start = 0
    while start < count:
        before = int(sums[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(sums, before + limit_bytes, side="right")))
        yield start, end
        start = end


@kernel
def add_lengths(offsets: Any, rows: Int64Array, sizes: Int64Array) -> None:
    """Add the lengths of the values at some rows of a column."""
    for index in range(rows.shape[0]):
        sizes[index] += np.int64(offsets[rows[index] + 1]) - np.int64(offsets[rows[index]])
