"""How many rows of Arrow arrays fit a number of bytes, found out before they are copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.compile import kernel
from semistream.core.value_widths import fixed_width, is_bytes, offsets_of


class RowsWithin:
    """Counts rows of some Arrow arrays by their bytes; costs some nanoseconds a row and column of strings."""

    def __init__(self, arrays: Sequence[pa.Array]) -> None:
        widths = [fixed_width(array.type) for array in arrays]
        self._strings = [offsets_of(array) for array in arrays if is_bytes(array.type)]
        self._row_bytes = sum(width + 1 for width in widths if width is not None)
        self._row_bytes += sum(offsets.itemsize + 1 for offsets in self._strings)
        self.is_countable = widths.count(None) == len(self._strings)
        """Whether every column is of fixed width, or of strings or bytes."""

    def count(self, rows: Int64Array, limit_bytes: int) -> tuple[int, int]:
        """Return how many of the first rows take no more than the limit together, at least one, and what they take."""
        if not self._strings:
            count = min(len(rows), max(1, limit_bytes // max(1, self._row_bytes)))
            return count, count * self._row_bytes
        sizes = np.full(len(rows), self._row_bytes, dtype=np.int64)
        for offsets in self._strings[:-1]:
            _add_lengths(offsets, rows, sizes)
        count, total = _count_within(self._strings[-1], rows, sizes, limit_bytes)
        return int(count), int(total)


@kernel
def _add_lengths(offsets: Any, rows: Int64Array, sizes: Int64Array) -> None:
    for index in range(rows.shape[0]):
        sizes[index] += np.int64(offsets[rows[index] + 1]) - np.int64(offsets[rows[index]])


@kernel
def _count_within(offsets: Any, rows: Int64Array, sizes: Int64Array, limit_bytes: int) -> tuple[Any, Any]:
    """Return how many rows fit, at least one if there are any, and what they take with the lengths of a column."""
    total = np.int64(0)
    for index in range(rows.shape[0]):
        length = np.int64(offsets[rows[index] + 1]) - np.int64(offsets[rows[index]])
        after = total + sizes[index] + length
        if after > limit_bytes and index > 0:
            return index, total
        total = after
    return rows.shape[0], total
