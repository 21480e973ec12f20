"""The keys that a run has seen most often, in bounded memory."""

from __future__ import annotations

from collections import Counter

from semistream.spark.statistics import CountedKeys

_SHOWN = 10
_KEPT = 400


class FrequentKeys:
    """Adds up the frequent keys of batches; every so often the rare ones are forgotten, and what is old counts half."""

    def __init__(self, batches_of_a_half_life: int = 500) -> None:
        self._counts: Counter[str] = Counter()
        self._half_life = batches_of_a_half_life
        self._batches = 0

    def add(self, keys: CountedKeys) -> None:
        """Add the keys of a batch."""
        for key, count in keys:
            self._counts[key] += count
        self._batches += 1
        if self._batches % self._half_life == 0:
            self._counts = Counter({key: count // 2 for key, count in self._counts.items() if count > 1})
        if len(self._counts) > 2 * _KEPT:
            self._counts = Counter(dict(self._counts.most_common(_KEPT)))

    def top(self) -> CountedKeys:
        """Return the most frequent recent keys."""
        return self._counts.most_common(_SHOWN)
