"""What the page tells about each enrichment of a pipeline: hits against memory, bytes by part, frequent keys."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from semistream.pipeline.live.frequent_keys import FrequentKeys
from semistream.pipeline.live.memory_curve import MemoryCurve
from semistream.spark.batch_progress import BatchProgress
from semistream.spark.statistics import BatchStatistics

_MAX_OPERATORS = 32
_OF_THE_ROOM = ("waiting", "parked", "returned", "released", "dead", "oldest_seconds")
_LATENCIES = ("latency_p50_seconds", "latency_p99_seconds", "max_latency_seconds")


class _Operator:
    def __init__(self) -> None:
        self.latest: BatchStatistics | None = None
        self.curve = MemoryCurve()
        self.hot_keys = FrequentKeys()
        self.unmatched_keys = FrequentKeys()
        self.has_room = False


class Operators:
    """Follows each enrichment by its name."""

    def __init__(self, *, tells_keys: bool) -> None:
        self._tells_keys = tells_keys
        self._by_name: dict[str, _Operator] = {}

    def add(self, batch: BatchProgress) -> None:
        """Take in the counts of a batch."""
        for counts in batch.enrichments:
            if counts.name not in self._by_name and len(self._by_name) >= _MAX_OPERATORS:
                continue
            operator = self._by_name.setdefault(counts.name, _Operator())
            operator.latest = counts
            operator.has_room |= any(getattr(counts, name) for name in _OF_THE_ROOM)
            operator.curve.add(counts)
            operator.hot_keys.add(counts.hot_keys)
            operator.unmatched_keys.add(counts.unmatched_keys)

    def gain_of_twice(self) -> float | None:
        """Return the share of tuples that twice the cache of every operator would answer besides; None if unknown."""
        gains = [operator.curve.gain_of_twice for operator in self._by_name.values()]
        known = [gain for gain in gains if gain is not None]
        return max(known) if known and len(known) == len(gains) else None

    def state(self) -> list[dict[str, Any]]:
        """Return what is told about each."""
        return [self._told(name, operator) for name, operator in self._by_name.items()]

    def _told(self, name: str, operator: _Operator) -> dict[str, Any]:
        latest, curve = operator.latest, operator.curve.curve()
        assert latest is not None, "an operator is known by its counts"
        keys = None
        if self._tells_keys:
            keys = {"hot": operator.hot_keys.top(), "unmatched": operator.unmatched_keys.top()}
        return {
            "name": name,
            "counts": latest.as_dict(),
            "memory_parts": dict(latest.memory_parts),
            "curve": asdict(curve) if curve is not None else None,
            "room": {name: getattr(latest, name) for name in _OF_THE_ROOM} if operator.has_room else None,
            "latencies": {name: getattr(latest, name) for name in _LATENCIES},
            "keys": keys,
        }
