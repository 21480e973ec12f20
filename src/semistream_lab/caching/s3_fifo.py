"""S3-FIFO: a small queue lets rows that are asked for once leave early, a main queue keeps the others.

Paper: Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are all you need for cache eviction. SOSP 2023.

A row enters the small queue, a tenth of the cache, or, if it is remembered as having left that lately, the main queue.
At the end of the small queue a row that was asked for twice moves on, and others leave and are remembered, as many as
the main queue has. At the end of the main queue a row that was asked for begins again with one use less.

Deviations: none. A row enters when it has been read, as not asked for.
"""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream_lab.caching.late_entries import no_late_entries, note_miss, take_due
from semistream_lab.caching.linked_lists import empty_lists, pop_back, push_front, unlink

_SMALL_SHARE = 0.1
_IN_SMALL, _IN_MAIN, _REMEMBERED = 1, 2, 3


def s3_fifo_hits(keys: Int64Array, key_count: int, capacity: int, *, delay: int = 0, first: int = 0) -> int:
    """Return how many of the requests from `first` on are answered; rows enter `delay` requests late."""
    late, lists = no_late_entries(key_count, delay), empty_lists(key_count, 3)
    return int(_hits(keys, capacity, max(1, int(_SMALL_SHARE * capacity)), first, *late, *lists))


@kernel
def _hits(
    keys: Int64Array,
    capacity: int,
    small_capacity: int,
    first: int,
    ring: Int64Array,
    asks: Int32Array,
    after: Int32Array,
    before: Int32Array,
) -> int:
    small = asks.shape[0]
    main, ghosts = small + 1, small + 2
    place = np.zeros(small, dtype=np.uint8)
    uses = np.zeros(small, dtype=np.uint8)
    counts = np.zeros(3, dtype=np.int64)  # in the small queue, in the main queue, remembered
    hits = 0
    for request in range(keys.shape[0]):
        key = take_due(ring, asks, request)
        if key >= 0:
            known = place[key] == _REMEMBERED
            if known:
                unlink(after, before, key)
                place[key] = 0
                counts[2] -= 1
            while counts[0] + counts[1] >= capacity:
                if counts[0] >= small_capacity or counts[1] == 0:
                    _leave_small(after, before, small, main, ghosts, place, uses, counts, capacity - small_capacity)
                else:
                    _leave_main(after, before, main, place, uses, counts)
            uses[key] = 0
            place[key] = _IN_MAIN if known else _IN_SMALL
            push_front(after, before, main if known else small, key)
            counts[1 if known else 0] += 1
        key = keys[request]
        if place[key] == _IN_SMALL or place[key] == _IN_MAIN:
            hits += request >= first
            uses[key] = min(3, uses[key] + 1)
        else:
            note_miss(ring, asks, request, key)
    return hits


@kernel
def _leave_small(
    after: Int32Array,
    before: Int32Array,
    small: int,
    main: int,
    ghosts: int,
    place: UInt8Array,
    uses: UInt8Array,
    counts: Int64Array,
    main_capacity: int,
) -> None:
    """Let rows at the end of the small queue move on until one leaves."""
    while counts[0] > 0:
        key = pop_back(after, before, small)
        counts[0] -= 1
        if uses[key] > 1:
            uses[key] = 0
            place[key] = _IN_MAIN
            push_front(after, before, main, key)
            counts[1] += 1
            if counts[1] > main_capacity:
                _leave_main(after, before, main, place, uses, counts)
                return
            continue
        if counts[2] >= main_capacity:
            if main_capacity == 0:
                place[key] = 0
                return
            place[pop_back(after, before, ghosts)] = 0
            counts[2] -= 1
        place[key] = _REMEMBERED
        push_front(after, before, ghosts, key)
        counts[2] += 1
        return


@kernel
def _leave_main(
    after: Int32Array, before: Int32Array, main: int, place: UInt8Array, uses: UInt8Array, counts: Int64Array
) -> None:
    """Let the first row leave from the end of the main queue that was not asked for."""
    while True:
        key = pop_back(after, before, main)
        if uses[key] == 0:
            place[key] = 0
            counts[1] -= 1
            return
        uses[key] -= 1
        push_front(after, before, main, key)
