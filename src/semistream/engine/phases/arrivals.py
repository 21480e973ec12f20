"""Parts arriving tuples into those that the cache answers and those that must wait."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel


def split_arrivals(
    slots: Int32Array, room: int, limit_seconds: float, hit_seconds: float, miss_seconds: float
) -> tuple[Int64Array, Int64Array, Int64Array, int]:
    """Return the tuples that hit and their slots, those that miss, in order, and how many these are.

    They end with the miss that fills the room, as the papers' phases end when H_S is full: what comes after it is
    looked for once there is room again, when the cache may have changed. Or they end when time is used up.
    """
    hits, answered = np.empty((2, len(slots)), dtype=np.int64)
    misses = np.empty(min(len(slots), room), dtype=np.int64)
    hit_count, miss_count, consumed = _split_kernel(
        slots, room, limit_seconds, hit_seconds, miss_seconds, hits, answered, misses
    )
    return hits[:hit_count], answered[:hit_count], misses[:miss_count], consumed


@kernel
def _split_kernel(
    slots: Int32Array,
    room: int,
    limit_seconds: float,
    hit_seconds: float,
    miss_seconds: float,
    hits: Int64Array,
    answered: Int64Array,
    misses: Int64Array,
) -> tuple[int, int, int]:
    hit_count = 0
    miss_count = 0
    seconds = 0.0
    if room <= 0:
        return 0, 0, 0
    for index in range(slots.shape[0]):
        if seconds >= limit_seconds and index > 0:
            return hit_count, miss_count, index
        if slots[index] >= 0:
            hits[hit_count] = index
            answered[hit_count] = slots[index]
            hit_count += 1
            seconds += hit_seconds
        else:
            misses[miss_count] = index
            miss_count += 1
            seconds += miss_seconds
            if miss_count == room:
                return hit_count, miss_count, index + 1
    return hit_count, miss_count, slots.shape[0]
