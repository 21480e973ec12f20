"""How large a cache should be: what its entries have answered tells what a smaller or larger one would."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.compile import kernel

_SIZES = 96
_MIN_CHANGE, _MAX_CHANGE = 0.4, 1.25
_AS_GOOD = 0.01
_WORTH_A_MOVE = 1.1


def best_cache_size(
    uses_by_rank: Int64Array, tuples: int, *, entry_bytes: float, total_bytes: float, min_entries: int, max_entries: int
) -> int:
    """Return the number of entries that lets most tuples be served in a given memory.

    Of sizes that serve about as many it is the largest, which answers most of them at once; it is the number there is
    if that is one of them and the largest is not much larger.

    `uses_by_rank` says how many of `tuples` each entry has answered, the entries in an order that was known before. The
    memory that the cache does not take holds waiting tuples, and what a read serves grows with their number, so the
    service rate is proportional to the waiting memory divided by the share of tuples that the cache does not answer.
    Beyond the entries there are, the answers are taken to go on as they fell in the last quarter of them.
    """
    count = len(uses_by_rank)
    if not count or not tuples:
        return count
    rates = np.empty(_SIZES + 1)
    smallest, largest = _good_sizes(uses_by_rank, tuples, entry_bytes, total_bytes, min_entries, max_entries, rates)
    return count if smallest <= count <= largest < _WORTH_A_MOVE * count else int(largest)


def answered_by_size(uses_by_rank: Float64Array, size: int) -> float:
    """Return what a cache of another size would have answered."""
    return float(_answered(np.concatenate([[0.0], np.cumsum(uses_by_rank)]), size))


@kernel
def _good_sizes(
    uses_by_rank: Int64Array,
    tuples: int,
    entry_bytes: float,
    total_bytes: float,
    min_entries: int,
    max_entries: int,
    rates: Float64Array,
) -> tuple[int, int]:
    """Return the smallest and the largest of the sizes that serve about as many tuples as the best."""
    count = uses_by_rank.shape[0]
    answered = np.empty(count + 1)
    answered[0] = 0.0
    for rank in range(count):
        answered[rank + 1] = answered[rank] + uses_by_rank[rank]
    best = 0.0
    for step in range(_SIZES + 1):
        size = _size(count, step)
        rates[step] = 0.0
        if size == count or min(min_entries, count) <= size <= max_entries:
            served = (total_bytes - size * entry_bytes) / max(1.0, tuples - _answered(answered, size))
            rates[step] = served
            best = max(best, served)
    smallest, largest = count, 0
    for step in range(_SIZES + 1):
        if rates[step] > 0.0 and rates[step] >= (1 - _AS_GOOD) * best:
            smallest, largest = min(smallest, _size(count, step)), max(largest, _size(count, step))
    return smallest, largest


@kernel
def _size(count: int, step: int) -> int:
    """Return one of the sizes that come into question; the last one is the size there is."""
    if step == _SIZES:
        return count
    return int(count * (_MIN_CHANGE + (_MAX_CHANGE - _MIN_CHANGE) * step / (_SIZES - 1)))


@kernel
def _answered(answered: Float64Array, size: int) -> float:
    """Return how many tuples a cache of this size would have answered."""
    count = answered.shape[0] - 1
    if size <= count:
        return float(answered[size])
    quarter, half = answered[count // 4], answered[count // 2]
    before, last = half - quarter, answered[count] - half
    # An octave of ranks answers as many as the one before times 2^(1 - e) under a power law of exponent e.
    power = np.log2(min(2.0, max(0.05, last / before))) if before > 0 else 0.0
    ratio = size / count
    octaves = np.log2(ratio) if abs(power) < 1e-6 else (ratio**power - 1) / (2**power - 1)
    return float(answered[count] + last * 2**power * octaves)
