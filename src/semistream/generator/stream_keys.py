"""The keys of a stream: some keys of the master table are asked for far more often than others."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.generator.permutation import SeededPermutation
from semistream.generator.randomness import UniformNumbers, random_for
from semistream.generator.settings import one_of, whole_number
from semistream.generator.zipf import DiscreteZipf, IntegralZipf, RankLaw

_BLOCK_KEYS = 1 << 15


class KeySource(Protocol):
    """Gives the keys of a stream, one after the other.

    A source must give the same keys however the draws are cut. A source that ends must give fewer keys than asked for
    when it does, and none from then on. Not safe to call from two threads at once.
    """

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""


class SeekableKeySource(KeySource, Protocol):
    """Gives the keys of a stream from any position on."""

    def seek(self, position: int) -> None:
        """Let the next draw begin with the key at `position`, from 0 on; must cost the same for any position."""


class MasterKeySource(SeekableKeySource, Protocol):
    """Gives keys of a master table whose keys are the multiples of `stride` up to key_count * stride."""

    key_count: int
    stride: int


class RankedKeySource(MasterKeySource, Protocol):
    """Gives keys by way of their ranks, rank 1 being the most frequent one."""

    def draw_ranks(self, count: int) -> Int64Array:
        """Return the next `count` ranks, in an array that the caller may overwrite."""

    def keys_of(self, ranks: Int64Array) -> Int64Array:
        """Return the key that each rank stands for; may overwrite `ranks`."""


class ZipfKeys:
    """Draws keys whose frequency falls with a power of their rank.

    The keys are the multiples of `stride` from stride to key_count * stride. With `ranks` "sorted" rank 1 is the
    smallest key, so that hot keys are neighbours; with "shuffled" a seeded permutation spreads them. The `law` is
    "discrete" for Zipf's law or "integral" for the papers' generator. Each draw takes one random number of 53 bits, so
    ranks rarer than 1 in 10^16 never appear. Memory: at most 256 KiB of tables and 256 KiB of work space beside the
    result, whatever the number of keys.
    """

    def __init__(
        self,
        key_count: int,
        exponent: float,
        *,
        seed: int,
        ranks: Literal["sorted", "shuffled"] = "sorted",
        law: Literal["discrete", "integral"] = "discrete",
        stride: int = 1,
    ) -> None:
        self.key_count = whole_number("key_count", key_count, minimum=1)
        self.stride = whole_number("stride", stride, minimum=1)
        if (self.key_count + 1) * self.stride >= 2**63:
            raise InvalidSettingError("key_count times stride must fit in 64 bits: lower one of them.")
        self.law: RankLaw = (
            DiscreteZipf(key_count, exponent)
            if one_of("law", law, ("discrete", "integral")) == "discrete"
            else IntegralZipf(key_count, exponent)
        )
        self._uniforms = UniformNumbers("zipf keys", seed)
        self._permutation: SeededPermutation | None = None
        if one_of("ranks", ranks, ("sorted", "shuffled")) == "shuffled":
            self._permutation = SeededPermutation(self.key_count, random_for("shuffled ranks", seed))

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""
        return self.keys_of(self.draw_ranks(count))

    def seek(self, position: int) -> None:
        """Let the next draw begin with the key at `position`, from 0 on."""
        self._uniforms.seek(position)

    def draw_ranks(self, count: int) -> Int64Array:
        """Return the ranks of the next `count` keys."""
        count = whole_number("count", count, minimum=0)
        ranks = np.empty(count, dtype=np.int64)
        uniforms = np.empty(min(count, _BLOCK_KEYS), dtype=np.float64)
        for start in range(0, count, _BLOCK_KEYS):
            block = ranks[start : start + _BLOCK_KEYS]
            self._uniforms.fill(uniforms[: len(block)])
            self.law.ranks_into(uniforms[: len(block)], block)
        return ranks

    def keys_of(self, ranks: Int64Array) -> Int64Array:
        """Return the key that each rank stands for; overwrites `ranks`."""
        if self._permutation is not None:
            ranks -= 1
            self._permutation.apply(ranks)
            ranks += 1
        if self.stride != 1:
            ranks *= self.stride
        return ranks

    def probability(self, rank: int) -> float:
        """Return the probability of one rank."""
        return self.law.probability(rank)

    def probabilities(self) -> Float64Array:
        """Return the probability of every rank, from rank 1 on; 8 bytes a rank."""
        return self.law.probabilities()
