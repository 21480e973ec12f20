"""Two laws of skew: turn uniform random numbers into ranks whose frequency falls with a power of the rank."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from semistream.core.arrays import Float64Array, Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream.core.errors import InvalidSettingError
from semistream.generator.settings import number_from, whole_number

HEAD_RANKS = 1 << 14
_GUIDES_PER_RANK = 2


class RankLaw(Protocol):
    """Says how frequent each rank from 1 to `key_count` is, and draws ranks by inverting its distribution.

    A larger uniform number must never give a smaller rank, and one uniform number must give one rank.
    """

    table_bytes: int

    def ranks_into(self, uniforms: Float64Array, ranks: Int64Array) -> None:
        """Write the rank of each uniform number from [0, 1) to `ranks`."""

    def probability(self, rank: int) -> float:
        """Return the probability of one rank."""

    def probabilities(self) -> Float64Array:
        """Return the probability of every rank, from rank 1 on; 8 bytes a rank."""


class DiscreteZipf:
    """Zipf's law: the probability of rank r is 1/r^e, divided by the sum of that over all ranks.

    The first 16,384 ranks are looked up in their cumulative table through a guide table; the sum beyond them is its
    Euler-Maclaurin expansion, which is inverted in closed form. At those ranks the expansion is as exact as a sum in
    floating point: the border between two ranks is met within a millionth of a rank at 100 million keys. So the memory
    is at most 256 KiB for any number of keys, and a draw costs one table look-up or one logarithm and exponential.
    """

    def __init__(self, key_count: int, exponent: float) -> None:
        self._key_count = whole_number("key_count", key_count, minimum=1)
        self._exponent = number_from("exponent", exponent, minimum=0)
        head_count = min(self._key_count, HEAD_RANKS)
        weights = np.arange(1, head_count + 1, dtype=np.float64) ** -self._exponent
        self._tail_start = head_count + 0.5
        self._border_term: float = self._exponent / 24 * self._tail_start ** (-self._exponent - 1)
        head = math.fsum(weights)
        self._total = head + self._tail_sum()
        self._head_share = head / self._total
        power = 1 - self._exponent
        self._tail_scale = power * self._tail_start**-power if self._head_share < 1 else 0.0
        self._cumulative: Float64Array = np.minimum(np.cumsum(weights) / self._total, self._head_share)
        self._cumulative[-1] = self._head_share
        self._guide = _guide_table(self._cumulative, head_count * _GUIDES_PER_RANK)
        self.table_bytes = self._cumulative.nbytes + self._guide.nbytes

    def ranks_into(self, uniforms: Float64Array, ranks: Int64Array) -> None:
        """Write the rank of each uniform number from [0, 1) to `ranks`."""
        _discrete_ranks(
            uniforms,
            ranks,
            self._cumulative,
            self._guide,
            self._total,
            self._tail_start,
            self._tail_scale,
            self._border_term,
            self._exponent,
            self._key_count,
        )

    def probability(self, rank: int) -> float:
        """Return the probability of one rank."""
        return float(float(_checked_rank(rank, self._key_count)) ** -self._exponent) / self._total

    def probabilities(self) -> Float64Array:
        """Return the probability of every rank, from rank 1 on; 8 bytes a rank."""
        shares: Float64Array = np.arange(1, self._key_count + 1, dtype=np.float64)
        shares **= -self._exponent
        shares /= self._total
        return shares

    def _tail_sum(self) -> float:
        end = self._key_count + 0.5
        end_term: float = self._exponent / 24 * end ** (-self._exponent - 1)
        return _area(self._tail_start, end, self._exponent) + end_term - self._border_term


class IntegralZipf:
    """The papers' generator: inverts the integral of 1/x^e from 1 to key_count + 1 and rounds down.

    Rank r gets the area between r and r + 1, so the hottest ranks are rarer than under Zipf's law. The papers print
    key_count as the upper end, which would leave the last key without any draws. No tables.
    """

    table_bytes = 0

    def __init__(self, key_count: int, exponent: float) -> None:
        self._key_count = whole_number("key_count", key_count, minimum=1)
        self._exponent = number_from("exponent", exponent, minimum=0)
        self._total = _area(1.0, self._key_count + 1.0, self._exponent)

    def ranks_into(self, uniforms: Float64Array, ranks: Int64Array) -> None:
        """Write the rank of each uniform number from [0, 1) to `ranks`."""
        _integral_ranks(uniforms, ranks, self._total, self._exponent, self._key_count)

    def probability(self, rank: int) -> float:
        """Return the probability of one rank."""
        start = float(_checked_rank(rank, self._key_count))
        return _area(start, start + 1, self._exponent) / self._total

    def probabilities(self) -> Float64Array:
        """Return the probability of every rank, from rank 1 on; 8 bytes a rank."""
        starts = np.arange(1, self._key_count + 1, dtype=np.float64)
        growth = np.log1p(1 / starts)
        power = 1 - self._exponent
        if power:
            growth = starts**power * np.expm1(power * growth) / power
        shares: Float64Array = growth / self._total
        return shares


def _checked_rank(rank: int, key_count: int) -> int:
    if not 1 <= rank <= key_count:
        raise InvalidSettingError(f"There is no rank {rank!r}: ranks go from 1 to {key_count}.")
    return rank


def _guide_table(cumulative: Float64Array, size: int) -> Int32Array:
    """Return for each equal part of the head the first rank that a number in it can have."""
    edges = np.arange(size) * (cumulative[-1] / size)
    guide: Int32Array = np.searchsorted(cumulative, edges * (1 - 1e-14), side="right").astype(np.int32)
    return guide


def _area(start: float, end: float, exponent: float) -> float:
    """Return the integral of 1/x^e from `start` to `end`, accurate also for exponents near 1."""
    power = 1 - exponent
    growth = math.log(end / start)
    if power == 0:
        return growth
    if power == 1:
        return end - start
    return float(start**power * math.expm1(power * growth) / power)


@kernel
def _end_of_area(start: float, area: float, power: float, scale: float) -> float:
    """Return where the integral of 1/x^e from `start` reaches `area`; power is 1 - e, scale is power / start^power."""
    if power == 0.0:
        return start * math.exp(area)
    if power == 1.0:
        return start + area
    return start * math.exp(math.log1p(area * scale) / power)


@kernel
def _discrete_ranks(
    uniforms: Float64Array,
    ranks: Int64Array,
    cumulative: Float64Array,
    guide: Int32Array,
    total: float,
    tail_start: float,
    tail_scale: float,
    border_term: float,
    exponent: float,
    key_count: int,
) -> None:
    head_count = cumulative.shape[0]
    head_share = cumulative[head_count - 1]
    guide_scale = guide.shape[0] / head_share
    last_guide = guide.shape[0] - 1
    power = 1.0 - exponent
    for place in range(uniforms.shape[0]):
        uniform = uniforms[place]
        if uniform < head_share:
            rank = int(guide[min(int(uniform * guide_scale), last_guide)])
            while cumulative[rank] <= uniform:
                rank += 1
            ranks[place] = rank + 1
        else:
            area = (uniform - head_share) * total + border_term
            end = _end_of_area(tail_start, area, power, tail_scale)
            end -= exponent / (24.0 * end)
            ranks[place] = min(max(int(end + 0.5), head_count + 1), key_count)


@kernel
def _integral_ranks(uniforms: Float64Array, ranks: Int64Array, total: float, exponent: float, key_count: int) -> None:
    power = 1.0 - exponent
    for place in range(uniforms.shape[0]):
        end = _end_of_area(1.0, uniforms[place] * total, power, power)
        ranks[place] = min(max(int(end), 1), key_count)
