"""Arrivals that know nothing of each other."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.generator.arrival_times import GeneratedArrivals
from semistream.generator.randomness import random_for
from semistream.generator.settings import positive_number, whole_number

_BLOCK_TUPLES = 1 << 14


class PoissonArrivals(GeneratedArrivals):
    """Tuples that arrive independently of each other, `rate` a second on average.

    The gaps are exponential, as in every Poisson process, but they are not summed up from the beginning. The tuples are
    numbered in blocks of 16,384. The time that 1, 1, 2, 4, 8, … blocks take is drawn first (the sum of n gaps has a
    gamma distribution); such a time is then halved into those of its halves (their shares have a beta distribution),
    down to one block, whose gaps are scaled to its time. So a position costs two draws for each doubling of it.
    """

    def __init__(self, rate: float, seed: int) -> None:
        super().__init__(positive_number("rate", rate))
        self._seed = whole_number("seed", seed, minimum=0)
        self._block = -1
        self._block_moments: Float64Array = np.empty(0)

    def _moments(self, first: int, count: int) -> Float64Array:
        parts = [np.empty(0)]
        while count:
            block, skipped = divmod(first, _BLOCK_TUPLES)
            parts.append(self._moments_of_block(block)[skipped : skipped + count])
            first += len(parts[-1])
            count -= len(parts[-1])
        return np.concatenate(parts)

    def _moments_of_block(self, block: int) -> Float64Array:
        if block != self._block:
            begin, end = self._window_of_block(block)
            sums = np.cumsum(random_for("poisson gaps", self._seed, block).standard_exponential(_BLOCK_TUPLES))
            self._block_moments = begin + sums * ((end - begin) / sums[-1])
            self._block = block
        return self._block_moments

    def _window_of_block(self, block: int) -> tuple[float, float]:
        """Return when the last tuple before the block and the last one in it arrive.

        Each border is computed in one way only, whichever block asks for it, so times never fall from block to block.
        """
        begin, end, first, size = 0.0, self._seconds_of(0, 1), 0, 1
        while first + size <= block:
            first += size
            size = first
            begin, end = end, end + self._seconds_of(first, size)
        while size > 1:
            size //= 2
            gaps = size * _BLOCK_TUPLES
            share = random_for("poisson halves", self._seed, first, size).beta(gaps, gaps)
            middle = begin + (end - begin) * share
            if block < first + size:
                end = middle
            else:
                begin, first = middle, first + size
        return begin, end

    def _seconds_of(self, first: int, size: int) -> float:
        random = random_for("poisson blocks", self._seed, first, size)
        return float(random.standard_gamma(size * _BLOCK_TUPLES)) / self.mean_rate
