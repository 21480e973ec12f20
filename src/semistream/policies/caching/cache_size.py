"""How large a cache should be: what its entries have answered tells what a smaller or larger one would."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array

_SIZES = 96
_LEAST_CHANGE, _MOST_CHANGE = 0.4, 1.25
_AS_GOOD = 0.01
_WORTH_A_MOVE = 1.1


def best_cache_size(
    uses_by_rank: Int64Array, tuples: int, *, entry_bytes: float, total_bytes: float, least: int, most: int
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
    sizes = np.unique(np.linspace(_LEAST_CHANGE * count, _MOST_CHANGE * count, _SIZES).astype(np.int64))
    sizes = sizes[(sizes >= min(least, count)) & (sizes <= max(most, 0))]
    sizes = np.union1d(sizes, [count])
    rate = (total_bytes - sizes * entry_bytes) / np.maximum(1.0, tuples - _answered(uses_by_rank, sizes))
    good = sizes[rate >= (1 - _AS_GOOD) * rate.max()]
    best = int(good[-1])
    return count if good[0] <= count <= best < _WORTH_A_MOVE * count else best


def _answered(uses_by_rank: Int64Array, sizes: Int64Array) -> Float64Array:
    """Return how many tuples a cache of each size would have answered."""
    count = len(uses_by_rank)
    total = np.concatenate([[0], np.cumsum(uses_by_rank)]).astype(np.float64)
    within = total[np.minimum(sizes, count)]
    quarter, half = total[count // 4], total[count // 2]
    before, last = half - quarter, total[-1] - half
    # An octave of ranks answers as many as the one before times 2^(1 - e) under a power law of exponent e.
    power = np.log2(np.clip(last / before, 0.05, 2.0)) if before > 0 else 0.0
    ratio = np.maximum(sizes, count) / count
    octaves = np.log2(ratio) if abs(power) < 1e-6 else (ratio**power - 1) / (2**power - 1)
    beyond: Float64Array = within + last * 2**power * octaves
    return beyond
