"""How many rows of Arrow arrays fit a number of bytes, found out before they are copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.compile import kernel
from semistream.core.value_widths import fixed_width, is_bytes, offsets_of


def rows_within(arrays: Sequence[pa.Array], rows: Int64Array, limit_bytes: int) -> tuple[int, int | None]:
    """Return how many of the first rows take no more than the limit together, at least one, and what they take.

    None for what they take where a column is neither of fixed width nor of strings or bytes. Costs some nanoseconds a
    row and column of strings.
    """
    each = 0
    of_strings: list[Any] = []
    for array in arrays:
        width = fixed_width(array.type)
        if width is not None:
            each += width + 1
        elif is_bytes(array.type):
            offsets = offsets_of(array)
            each += offsets.itemsize + 1
            of_strings.append(offsets)
        else:
            return len(rows), None
    if not of_strings:
        count = min(len(rows), max(1, limit_bytes // max(1, each)))
        return count, count * each
    sizes = np.full(len(rows), each, dtype=np.int64)
    for offsets in of_strings[:-1]:
        _add_lengths(offsets, rows, sizes)
    count, total = _count_within(of_strings[-1], rows, sizes, limit_bytes)
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
