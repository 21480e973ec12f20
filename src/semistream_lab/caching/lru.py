"""LRU: what was asked for least recently leaves.

Deviations: none. A row enters as the most recent one when it has been read.
"""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream_lab.caching.late_entries import no_late_entries, note_miss, take_due
from semistream_lab.caching.linked_lists import empty_lists, pop_back, push_front, unlink


def lru_hits(keys: Int64Array, key_count: int, capacity: int, *, delay: int = 0, first: int = 0) -> int:
    """Return how many of the requests from `first` on are answered; rows enter `delay` requests late."""
    return int(_hits(keys, capacity, first, *no_late_entries(key_count, delay), *empty_lists(key_count, 1)))


@kernel
def _hits(
    keys: Int64Array,
    capacity: int,
    first: int,
    ring: Int64Array,
    asks: Int32Array,
    after: Int32Array,
    before: Int32Array,
) -> int:
    recent = asks.shape[0]
    cached = np.zeros(recent, dtype=np.bool_)
    count = hits = 0
    for request in range(keys.shape[0]):
        key = take_due(ring, asks, request)
        if key >= 0:
            if count == capacity:
                cached[pop_back(after, before, recent)] = False
            else:
                count += 1
            cached[key] = True
            push_front(after, before, recent, key)
        key = keys[request]
        if cached[key]:
            hits += request >= first
            unlink(after, before, key)
            push_front(after, before, recent, key)
        else:
            note_miss(ring, asks, request, key)
    return hits
