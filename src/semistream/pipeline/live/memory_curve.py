"""How much of the stream other amounts of memory would answer without a read, from what the caches count anyway."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from semistream.spark.statistics import CACHE_SIZES, BatchStatistics

_MIN_HITS = 2_000
_MAX_HITS = 2_000_000
"""Older samples count for less from here on."""
_BATCHES = 60
_MIN_TUPLES = 1_000


@dataclass(frozen=True)
class CurvePoint:
    """The share of tuples that so much memory in a worker would answer from its cache."""

    memory_bytes: int
    hit_rate: float


@dataclass(frozen=True)
class Curve:
    """Hits against memory: estimates for less memory, today's measured point, and an estimate for twice the cache."""

    points: Sequence[CurvePoint]
    today: CurvePoint
    knows_twice: bool
    """Whether the last point is for twice the cache; else it is today's."""


class MemoryCurve:
    """Adds up what caches tell about their hits by rank, and what they have overwritten and were asked for again.

    Entries are ranked by what they were worth before the hits that are counted, so the hits of the first half are those
    of a cache of half the size; a sample of what was overwritten tells those of twice the size, once about as many
    entries have been overwritten as the caches hold. Both cost next to nothing, and neither says anything about memory
    beyond that: `semistream advise` does, from a sample of the stream. Today's rate is that of the latest batches.
    """

    def __init__(self) -> None:
        self._hits = [0.0] * len(CACHE_SIZES)
        self._late: deque[tuple[int, int, int]] = deque(maxlen=_BATCHES)
        self._overwritten = 0
        self._latest: BatchStatistics | None = None

    def add(self, counts: BatchStatistics) -> None:
        """Add what a batch has told."""
        if counts.hits_by_size and len(counts.hits_by_size) == len(self._hits):
            self._hits = [known + new for known, new in zip(self._hits, counts.hits_by_size, strict=True)]
            if self._hits[-1] > _MAX_HITS:
                self._hits = [known / 2 for known in self._hits]
        self._overwritten += counts.cache_evictions
        self._late.append((counts.tuples_in, counts.cache_hits, counts.shadow_hits))
        if counts.budget_bytes:
            self._latest = counts

    @property
    def gain_of_twice(self) -> float | None:
        """The share of recent tuples that twice the cache would have answered besides; None if that is unknown."""
        tuples, _, shadow = self._sums()
        latest = self._latest
        if latest is None or tuples < _MIN_TUPLES or self._overwritten < latest.cached_rows * latest.processes:
            return None
        return shadow / tuples

    def curve(self) -> Curve | None:
        """Return the curve, or None while there is too little to tell.

        Beside the index, which has its size, all parts of a join grow with its memory, and so does the cache.
        """
        tuples, hits, _ = self._sums()
        latest = self._latest
        if latest is None or self._hits[-1] < _MIN_HITS or tuples < _MIN_TUPLES:
            return None
        rate, gain = hits / tuples, self.gain_of_twice
        index = latest.memory_parts.get("index", 0)
        divided = latest.budget_bytes - index
        points = [
            CurvePoint(round(index + share * divided), rate * answered / self._hits[-1])
            for share, answered in zip(CACHE_SIZES, self._hits, strict=True)
        ]
        twice = [CurvePoint(index + 2 * divided, rate + gain)] if gain is not None else []
        return Curve([*points, *twice], points[-1], gain is not None)

    def _sums(self) -> tuple[int, int, int]:
        return tuple(map(sum, zip(*self._late, strict=True))) if self._late else (0, 0, 0)  # type: ignore[return-value]
