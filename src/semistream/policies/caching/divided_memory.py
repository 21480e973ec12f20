"""How the memory of several caches should be divided: what each has saved tells what another size would save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Float64Array

_PARTS = 96
_MAX_SHRINK, _MAX_GROWTH = 0.5, 2.0
"""A cache tells what sizes near its own would do, and nothing of others."""
_WORTH_A_MOVE = 0.05
"""A move empties caches for a while, so it has to save such a part of the time of all reads."""


@dataclass(frozen=True)
class CacheWorth:
    """What a cache has saved recently, and what caches of other sizes would have saved, in seconds of reads."""

    size_bytes: int
    whole_bytes: int
    """What a cache of all rows would take; more is of no use."""
    spent_seconds: float
    """What the reads of that time took."""
    shares: Sequence[float]
    """Parts of the cache, ascending up to 1."""
    saved_seconds: Sequence[float]
    """What each of these parts has saved."""
    twice_seconds: float
    """What a cache of twice the size would have saved besides."""

    def saved(self, sizes: Float64Array) -> Float64Array:
        """Return what caches of some sizes would have saved."""
        useful = min(self.size_bytes, self.whole_bytes)
        shares = np.minimum(sizes, self.whole_bytes) / max(1, useful)
        inside = np.interp(shares, [0.0, *self.shares], [0.0, *self.saved_seconds])
        # Of keys whose frequencies follow a power law, as many answers come with each doubling.
        saved: Float64Array = inside + self.twice_seconds * np.log2(np.maximum(1.0, shares))
        return saved


def divided_memory(worths: Sequence[CacheWorth], *, min_bytes: Sequence[int]) -> list[int] | None:
    """Return how large each cache should be so that all of them together save most; None if that is hardly more.

    Memory goes, part by part, to where it saves most for each byte. Of each cache all next sizes are looked at and not
    the nearest alone, so that one that is of use only as a whole gets its turn (the look-ahead of Qureshi and Patt's
    utility-based partitioning). The sum stays what it is, and none grows or shrinks to more than double or half.
    """
    total = sum(worth.size_bytes for worth in worths)
    part = max(1, total // _PARTS)
    least = [max(low, int(_MAX_SHRINK * worth.size_bytes)) for low, worth in zip(min_bytes, worths, strict=True)]
    least = [min(low, worth.size_bytes) for low, worth in zip(least, worths, strict=True)]
    curves, sizes = [], list(least)
    for low, worth in zip(least, worths, strict=True):
        most = max(low, int(_MAX_GROWTH * worth.size_bytes))
        curves.append(worth.saved(np.arange(low, most + 1, part, dtype=np.float64)))
    taken = [0] * len(worths)
    left = (total - sum(least)) // part
    while left > 0:
        steps = [_best_step(curve[at : at + left + 1]) for curve, at in zip(curves, taken, strict=True)]
        best = max(range(len(steps)), key=lambda number: steps[number][0])
        gain, count = steps[best]
        if gain <= 0:
            break
        taken[best] += count
        sizes[best] += count * part
        left -= count
    # What is of no use to anybody stays where it was, as far as it goes.
    rest = total - sum(sizes)
    for number, worth in enumerate(worths):
        back = min(rest, max(0, worth.size_bytes - sizes[number]))
        sizes[number] += back
        rest -= back
    now = sum(float(worth.saved(np.array([worth.size_bytes], dtype=np.float64))[0]) for worth in worths)
    then = sum(float(w.saved(np.array([size], dtype=np.float64))[0]) for w, size in zip(worths, sizes, strict=True))
    spent = sum(worth.spent_seconds for worth in worths)
    return sizes if then - now > _WORTH_A_MOVE * spent and rest == 0 else None


def _best_step(curve: Float64Array) -> tuple[float, int]:
    """Return the most that a part of memory saves, of all numbers of parts that may come next, and that number."""
    if len(curve) < 2:
        return 0.0, 0
    each = (curve[1:] - curve[0]) / np.arange(1, len(curve))
    best = int(np.argmax(each))
    return float(each[best]), best + 1
