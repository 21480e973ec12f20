"""W-TinyLFU: a window for what is new, and behind it a main part that only lets in what is asked for more often.

Paper: Einziger, Friedman, Manes: TinyLFU: a highly efficient cache admission policy. ACM Transactions on Storage 13(4),
2017.

A hundredth of the cache is the window, an LRU. What leaves it is compared with what the main part would let go, by how
often each was asked for lately, and the better one stays. The main part is a segmented LRU: four fifths are protected
for what was asked for while it was there. Counts end at 15 and are halved after ten requests for each row of the cache.

Deviations: keys are counted exactly where the paper has a sketch, so the counts of rare keys are not confused. The size
of the window is fixed, as in the paper; later versions adapt it. A row enters when it has been read.
"""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream_lab.caching.late_entries import no_late_entries, note_miss, take_due
from semistream_lab.caching.linked_lists import empty_lists, pop_back, push_front, unlink

_WINDOW_SHARE, _PROTECTED_SHARE = 0.01, 0.8
_SAMPLE_PER_ROW = 10
_MAX_COUNT = 15
_IN_WINDOW, _IN_PROBATION, _IN_PROTECTED = 1, 2, 3


def w_tinylfu_hits(keys: Int64Array, key_count: int, capacity: int, *, delay: int = 0, first: int = 0) -> int:
    """Return how many of the requests from `first` on are answered; rows enter `delay` requests late."""
    window = max(1, int(_WINDOW_SHARE * capacity))
    protected = int(_PROTECTED_SHARE * (capacity - window))
    late, lists = no_late_entries(key_count, delay), empty_lists(key_count, 3)
    return int(_hits(keys, capacity, window, protected, first, *late, *lists))


@kernel
def _hits(
    keys: Int64Array,
    capacity: int,
    window_capacity: int,
    protected_capacity: int,
    first: int,
    ring: Int64Array,
    asks: Int32Array,
    after: Int32Array,
    before: Int32Array,
) -> int:
    window = asks.shape[0]
    probation, protected = window + 1, window + 2
    place = np.zeros(window, dtype=np.uint8)
    asked = np.zeros(window, dtype=np.uint8)
    in_window = in_protected = in_main = hits = 0
    for request in range(keys.shape[0]):
        key = take_due(ring, asks, request)
        if key >= 0:
            place[key] = _IN_WINDOW
            push_front(after, before, window, key)
            in_window += 1
            if in_window > window_capacity:
                in_window -= 1
                moving = pop_back(after, before, window)
                if in_main < capacity - window_capacity:
                    in_main += 1
                    place[moving] = _IN_PROBATION
                    push_front(after, before, probation, moving)
                elif in_main > 0:
                    rival_list = probation if before[probation] != probation else protected
                    rival = before[rival_list]
                    if asked[moving] > asked[rival]:
                        unlink(after, before, rival)
                        in_protected -= place[rival] == _IN_PROTECTED
                        place[rival] = 0
                        place[moving] = _IN_PROBATION
                        push_front(after, before, probation, moving)
                    else:
                        place[moving] = 0
                else:
                    place[moving] = 0
        if request % (_SAMPLE_PER_ROW * capacity) == _SAMPLE_PER_ROW * capacity - 1:
            for other in range(window):
                asked[other] //= 2
        key = keys[request]
        asked[key] = min(_MAX_COUNT, asked[key] + 1)
        if place[key] == 0:
            note_miss(ring, asks, request, key)
            continue
        hits += request >= first
        unlink(after, before, key)
        if place[key] == _IN_WINDOW:
            push_front(after, before, window, key)
            continue
        if place[key] == _IN_PROBATION and protected_capacity > 0:
            place[key] = _IN_PROTECTED
            in_protected += 1
            if in_protected > protected_capacity:
                in_protected -= 1
                demoted = pop_back(after, before, protected)
                place[demoted] = _IN_PROBATION
                push_front(after, before, probation, demoted)
        push_front(after, before, protected if place[key] == _IN_PROTECTED else probation, key)
    return hits
