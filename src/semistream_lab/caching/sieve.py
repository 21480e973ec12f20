"""SIEVE: a hand goes from the oldest row to the youngest; the first leaves that was not asked for since it came by.

Paper: Zhang, Yang, Yue, Vigfusson, Rashmi: SIEVE is simpler than LRU: an efficient turn-key eviction algorithm for web
caches. NSDI 2024.

Deviations: none. A row enters when it has been read, as not asked for.
"""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream_lab.caching.late_entries import no_late_entries, note_miss, take_due
from semistream_lab.caching.linked_lists import empty_lists, push_front, unlink


def sieve_hits(keys: Int64Array, key_count: int, capacity: int, *, delay: int = 0, first: int = 0) -> int:
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
    queue = asks.shape[0]
    cached = np.zeros(queue, dtype=np.bool_)
    visited = np.zeros(queue, dtype=np.bool_)
    hand = queue
    count = hits = 0
    for request in range(keys.shape[0]):
        key = take_due(ring, asks, request)
        if key >= 0:
            if count == capacity:
                if hand == queue:
                    hand = before[queue]
                while visited[hand]:
                    visited[hand] = False
                    hand = before[hand]
                    if hand == queue:
                        hand = before[queue]
                leaving = hand
                hand = before[leaving]
                unlink(after, before, leaving)
                cached[leaving] = False
            else:
                count += 1
            cached[key] = True
            visited[key] = False
            push_front(after, before, queue, key)
        key = keys[request]
        if cached[key]:
            hits += request >= first
            visited[key] = True
        else:
            note_miss(ring, asks, request, key)
    return hits
