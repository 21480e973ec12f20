"""How often each key of a stream is asked for, estimated from a sample of the stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Int64Array

_MIN_HEAD_COUNT = 8
"""Keys with so many rows of the sample are taken at their share of it; rarer ones share a fitted tail."""
_BUCKETS = 240
_EXPONENTS = np.linspace(0.0, 3.0, 31)
_FINER = (np.linspace(-0.08, 0.08, 9), np.zeros(1))
"""Where to look next around the best exponent."""
_KEY_COUNTS = 48
_DOUBT = 4.0
"""By how much a fit may be worse than the best one and still be as likely."""


@dataclass(frozen=True)
class KeyPopularity:
    """The shares of the stream that keys have, the most popular first.

    Keys that a sample has often are known by their counts. The others, most of which it may not have at all, follow a
    power law: the one under which a sample of that size would have as many different keys, and as many keys once and
    twice, as it has. Of laws that fit about as well, the one with the most keys is taken.
    """

    head: np.ndarray
    """The share of each key that is known by its count."""
    tail_share: float
    """What all other keys have together."""
    tail_keys: int
    exponent: float
    """How fast the shares of the other keys fall with their rank."""

    @classmethod
    def from_counts(cls, counts: Int64Array, max_keys: int) -> KeyPopularity:
        """Estimate the shares from how often each key of a sample occurs in it, the keys being `max_keys` at most."""
        counts = np.sort(counts)[::-1]
        rows = int(counts.sum())
        head = counts[: int(np.searchsorted(-counts, -_MIN_HEAD_COUNT, side="right"))]
        tail = counts[len(head) :]
        if not len(tail):
            return cls(head / rows, 0.0, 0, 0.0)
        tail_share = float(tail.sum() / rows)
        seen = np.array([len(tail), (tail == 1).sum(), (tail == 2).sum()], dtype=np.float64)
        max_tail_keys = max(len(tail) + 1, max_keys - len(head))
        fits = []
        for key_count in np.unique(np.geomspace(len(tail), max_tail_keys, _KEY_COUNTS).astype(np.int64)).tolist():
            around = _EXPONENTS
            for step in _FINER:
                misfit, exponent = min(
                    (_misfit(_expected(len(head), key_count, exponent, tail_share, rows), seen), exponent)
                    for exponent in around.tolist()
                )
                around = np.maximum(0.0, exponent + step)
            fits.append((misfit, exponent, key_count))
        # A short sample leaves open how many keys there are: as many as it does not speak against.
        best = min(fits)[0]
        _, exponent, key_count = max((fit for fit in fits if fit[0] <= best + _DOUBT), key=lambda fit: fit[2])
        return cls(head / rows, tail_share, key_count, exponent)

    @property
    def key_count(self) -> int:
        """How many keys the stream has."""
        return len(self.head) + self.tail_keys

    @property
    def known_share(self) -> float:
        """The share of the stream whose keys are known by their counts."""
        return float(self.head.sum())

    def shares(self) -> np.ndarray:
        """Return the share of every key, the most popular first."""
        ranks = np.arange(len(self.head) + 1, self.key_count + 1, dtype=np.float64)
        weights = ranks**-self.exponent
        tail = weights * (self.tail_share / weights.sum()) if self.tail_keys else weights
        return -np.sort(-np.concatenate([self.head, tail]))

    def draw(self, chunk_rows: int, seed: int) -> Iterator[Int64Array]:
        """Yield chunks of a stream without end in which each key has its share; keys are their ranks."""
        random = np.random.default_rng(seed)
        bounds = np.cumsum(self.shares())
        while True:
            yield np.searchsorted(bounds, random.random(chunk_rows) * bounds[-1], side="right").astype(np.int64)


def _misfit(expected: np.ndarray, seen: np.ndarray) -> float:
    return float((((expected - seen) ** 2) / (seen + 1.0)).sum())


def _expected(head_keys: int, tail_keys: int, exponent: float, share: float, rows: int) -> np.ndarray:
    """Return how many keys of a tail a sample has at least once, just once and just twice, in the mean."""
    bounds = np.unique(np.geomspace(1, tail_keys + 1, _BUCKETS).astype(np.int64))
    sizes = np.diff(bounds) if len(bounds) > 1 else np.ones(1)
    middles = head_keys + (bounds[:-1] + bounds[1:] - 1) / 2 if len(bounds) > 1 else np.array([head_keys + 1.0])
    weights = middles**-exponent
    each = share * rows * weights / (weights * sizes).sum()
    none = np.exp(-each)
    # A key that a sample has often is in the head, whatever the tail's law says.
    few = sum(none * each**count / _FACTORIALS[count] for count in range(1, _MIN_HEAD_COUNT))
    return np.array([(sizes * few).sum(), (sizes * each * none).sum(), (sizes * each**2 / 2 * none).sum()])


_FACTORIALS = np.cumprod(np.concatenate([[1.0], np.arange(1.0, _MIN_HEAD_COUNT)]))
