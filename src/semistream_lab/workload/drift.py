"""Keys whose hot set moves while the stream runs."""

from __future__ import annotations

import math

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.compile import kernel
from semistream.generator.settings import share_of_one, whole_number
from semistream.generator.stream_keys import RankedKeySource

_GOLDEN = (math.sqrt(5) - 1) / 2
_GOLDEN_64_BITS = np.uint64(0x9E3779B97F4A7C15)
_ROOT_OF_TWO_64_BITS = np.uint64(0x6A09E667F3BCC909)
_UNUSED_BITS = np.uint64(11)


class DriftingKeys:
    """Draws keys with the frequencies of `keys`, but changes which keys are the hot ones.

    Without `drift_share` the whole hot set jumps to other keys after every `period_tuples`. With it the hot set drifts:
    in each `period_tuples` that share of the keys, hot and cold alike, trade places with others, a few at a time.

    A move mirrors the ranks at a point, which trades each key's frequency with that of one partner far away; a drift
    makes these trades pair by pair in scattered order. So at every moment each key has exactly one rank. Hot keys that
    were neighbours are neighbours again after the move. The mirror points follow the golden ratio, so that a hot set
    comes back to its old place as late as possible.
    """

    def __init__(self, keys: RankedKeySource, period_tuples: int, *, drift_share: float | None = None) -> None:
        self.key_count = keys.key_count
        self.stride = keys.stride
        self._keys = keys
        self._period_tuples = whole_number("period_tuples", period_tuples, minimum=1)
        self._drift_share = None if drift_share is None else share_of_one("drift_share", drift_share)
        self._drawn = 0

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""
        return self._keys.keys_of(self.draw_ranks(count))

    def seek(self, position: int) -> None:
        """Let the next draw begin with the key at `position`, from 0 on."""
        self._keys.seek(position)
        self._drawn = position

    def draw_ranks(self, count: int) -> Int64Array:
        """Return the ranks of the next `count` keys in the order that held when the stream began."""
        ranks = self._keys.draw_ranks(count)
        if self._drift_share is None:
            _jump(ranks, self._drawn, self._period_tuples, self.key_count)
        else:
            _drift(ranks, self._drawn, self._drift_share / self._period_tuples, self.key_count)
        self._drawn += len(ranks)
        return ranks

    def keys_of(self, ranks: Int64Array) -> Int64Array:
        """Return the key that each rank stands for; overwrites `ranks`."""
        return self._keys.keys_of(ranks)


@kernel
def _place_of_hottest(moves: int, key_count: int) -> int:
    turns = moves * _GOLDEN
    return min(int((turns - math.floor(turns)) * key_count), key_count - 1)


@kernel
def _moved(place: int, moves: int, key_count: int) -> int:
    """Return where the key-place `place` stands after whole moves; every second move runs backwards."""
    hottest = _place_of_hottest(moves, key_count)
    moved = hottest - place if moves % 2 else hottest + place
    return moved % key_count


@kernel
def _jump(ranks: Int64Array, first: int, period_tuples: int, key_count: int) -> None:
    for index in range(ranks.shape[0]):
        moves = (first + index) // period_tuples
        ranks[index] = _moved(ranks[index] - 1, moves, key_count) + 1


@kernel
def _drift(ranks: Int64Array, first: int, moves_per_tuple: float, key_count: int) -> None:
    for index in range(ranks.shape[0]):
        turns = (first + index) * moves_per_tuple
        moves = int(turns)
        place = _moved(ranks[index] - 1, moves, key_count)
        mirror = _place_of_hottest(moves, key_count) + _place_of_hottest(moves + 1, key_count)
        partner = (mirror - place) % key_count
        if _moment_of_trade(min(place, partner), moves) < turns - moves:
            place = partner
        ranks[index] = place + 1


@kernel
def _moment_of_trade(pair: int, moves: int) -> float:
    """Return the share of the move, from [0, 1), at which the pair trades places.

    The moments of neighbouring pairs are spread evenly (a Weyl sequence), so any range of keys drifts at the same pace.
    """
    turns = np.uint64(pair) * _GOLDEN_64_BITS + np.uint64(moves + 1) * _ROOT_OF_TWO_64_BITS
    return float(turns >> _UNUSED_BITS) * 2.0**-53
