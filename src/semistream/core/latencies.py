"""How long rows took, as counts in buckets that can be added up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from semistream.core.arrays import Float64Array

_STEPS = 16
"""Buckets for each factor of two: a value is known to about 2%."""
_SHORTEST_SECONDS = 1e-4


class Latencies:
    """Counts times in buckets of equal ratios, so that quantiles of many tasks are found within some percent."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts: dict[int, int] = {int(bucket): count for bucket, count in (counts or {}).items()}
        self.max_seconds = 0.0

    def add(self, seconds: float, count: int) -> None:
        """Count rows that all took the same time."""
        if count:
            bucket = _bucket(seconds)
            self._counts[bucket] = self._counts.get(bucket, 0) + count
            self.max_seconds = max(self.max_seconds, seconds)

    def add_all(self, seconds: Float64Array) -> None:
        """Count rows by the time of each."""
        if not len(seconds):
            return
        at_least = np.maximum(seconds, _SHORTEST_SECONDS)
        buckets = np.floor(np.log2(at_least / _SHORTEST_SECONDS) * _STEPS).astype(np.int64)
        for bucket, count in zip(*np.unique(buckets, return_counts=True), strict=True):
            self._counts[int(bucket)] = self._counts.get(int(bucket), 0) + int(count)
        self.max_seconds = max(self.max_seconds, float(seconds.max()))

    def counts(self) -> dict[str, int]:
        """Return the counts as JSON can hold them."""
        return {str(bucket): count for bucket, count in sorted(self._counts.items())}

    def quantile(self, share: float) -> float:
        """Return the time that this share of the rows did not exceed; 0 if there were none."""
        wanted = math.ceil(share * sum(self._counts.values()))
        for bucket, count in sorted(self._counts.items()):
            wanted -= count
            if wanted <= 0:
                return float(_SHORTEST_SECONDS * 2 ** ((bucket + 0.5) / _STEPS))
        return 0.0

    @classmethod
    def together(cls, parts: Iterable[Mapping[str, int]]) -> Latencies:
        """Return the counts of several tasks as one."""
        whole = cls()
        for part in parts:
            for bucket, count in part.items():
                whole._counts[int(bucket)] = whole._counts.get(int(bucket), 0) + count
        return whole


def _bucket(seconds: float) -> int:
    return math.floor(math.log2(max(seconds, _SHORTEST_SECONDS) / _SHORTEST_SECONDS) * _STEPS)
