"""Parts arriving tuples into those that the cache answers and those that must wait."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel


def split_arrivals(
    slots: Int32Array, room: int, limit_seconds: float, hit_seconds: float, miss_seconds: float
) -> tuple[Int64Array, Int64Array, int]:
    """Return the tuples that hit and those that miss, in order, until misses fill the room or time is used up."""
    hits = np.empty(len(slots), dtype=np.int64)
    misses = np.empty(min(len(slots), room), dtype=np.int64)
    hit_count, miss_count, consumed = _split_kernel(slots, room, limit_seconds, hit_seconds, miss_seconds, hits, misses)
    return hits[:hit_count], misses[:miss_count], consumed


@kernel
def _split_kernel(
    slots: Int32Array,
    room: int,
    limit_seconds: float,
    hit_seconds: float,
    miss_seconds: float,
    hits: Int64Array,
    misses: Int64Array,
) -> tuple[int, int, int]:
    hit_count = 0
    miss_count = 0
    seconds = 0.0
    for index in range(slots.shape[0]):
        if seconds >= limit_seconds and index > 0:
            return hit_count, miss_count, index
        if slots[index] >= 0:
            hits[hit_count] = index
            hit_count += 1
            seconds += hit_seconds
        else:
            if miss_count == room:
                return hit_count, miss_count, index
            misses[miss_count] = index
            miss_count += 1
            seconds += miss_seconds
    return hit_count, miss_count, slots.shape[0]
