"""How many rows of Arrow arrays fit a number of bytes, found out before they are copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.compile import kernel


def rows_within(arrays: Sequence[pa.Array], rows: Int64Array, limit_bytes: int) -> tuple[int, int | None]:
    """Return how many of the first rows take no more than the limit together, at least one, and what they take.

    None for what they take where a column is neither of fixed width nor of strings or bytes. Costs some nanoseconds a
    row and column of strings.
    """
    each = 0
    sizes: Int64Array | None = None
    for array in arrays:
        kind = array.type
        is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        if is_large or pa.types.is_string(kind) or pa.types.is_binary(kind):
            if sizes is None:
                sizes = np.zeros(len(rows), dtype=np.int64)
            buffer = array.buffers()[1]
            offset_type = np.int64 if is_large else np.int32
            each += 9 if is_large else 5
            if buffer is not None and len(rows):
                _add_lengths(np.frombuffer(buffer, dtype=offset_type)[array.offset :], rows, sizes)
            continue
        try:
            each += -(-kind.bit_width // 8) + 1
        except ValueError:
            return len(rows), None
    if sizes is None:
        count = min(len(rows), max(1, limit_bytes // max(1, each)))
        return count, count * each
    total = int(sizes.sum()) + each * len(rows)
    if total <= limit_bytes or len(rows) <= 1:
        return len(rows), total
    sums = np.cumsum(sizes + each)
    count = max(1, int(np.searchsorted(sums, limit_bytes, side="right")))
    return count, int(sums[count - 1])


@kernel
def _add_lengths(offsets: Any, rows: Int64Array, sizes: Int64Array) -> None:
    for index in range(rows.shape[0]):
        sizes[index] += np.int64(offsets[rows[index] + 1]) - np.int64(offsets[rows[index]])
