"""Which master tuples enter the cache."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.policies.caching.ageing import SteadyAgeing
from semistream.policies.caching.frequency_sketch import FrequencySketch
from semistream.policies.contract import Admission, Queue

_STRANGERS = -np.arange(1, 256, dtype=np.int64) << 40
"""Codes that no stream asks for."""


class AboveThreshold(Admission):
    """Admits a master tuple whose matches in one read are strictly above a threshold."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def worth(
        self,
        codes: Int64Array,  # noqa: ARG002
        matches: Int32Array,
        page_groups: Int64Array,  # noqa: ARG002
        queue: Queue,  # noqa: ARG002
    ) -> Int32Array:
        """Compare the matches of the read."""
        return matches * (matches > self.threshold)


class AboveRate(Admission):
    """Admits a master tuple whose matches per tuple entered since its page group was last read are above a rate.

    The rate is `threshold` matches in twice the queue's capacity, which is how long a page group is left alone when the
    oldest tuple decides: a page group that is read early is held to the same rate.
    """

    needs_page_groups = True

    def __init__(self, threshold: int, page_group_count: int) -> None:
        self.threshold = threshold
        self._last_read = np.zeros(page_group_count, dtype=np.int64)

    def worth(
        self,
        codes: Int64Array,  # noqa: ARG002
        matches: Int32Array,
        page_groups: Int64Array,
        queue: Queue,
    ) -> Int32Array:
        """Compare the matches with what the rate allows for the time since the last read."""
        elapsed = queue.entered - self._last_read[page_groups]
        share = np.minimum(1.0, elapsed / (2 * queue.capacity))
        kept: Int32Array = matches * (matches > np.maximum(1.0, self.threshold * share))
        return kept

    def note_read(self, page_groups: Int64Array, queue: Queue) -> None:
        """Note when page groups were read."""
        self._last_read[page_groups] = queue.entered


class FrequentLately(Admission):
    """Values a master tuple by how often it was asked for of late, so that one scan cannot flush what is hot.

    A sketch counts what was asked for and not cached. What it shows for a code that was never asked for, because codes
    share its counters, is taken off: cached tuples are counted exactly, and would lose against strangers. Counts are
    halved after some windows of tuples, at most `max_windows` while the stream does not change.
    """

    KEYS_PER_ENTRY = 2
    """How many keys the sketch tells apart for each entry of the cache, at least."""
    ENTRY_BYTES = 16
    """What the sketch takes for each entry of the cache, at most."""
    MIN_ENTRIES = 500
    """For how many entries the sketch is made at least: where keys share all counters, none is frequent."""
    USES_PER_ENTRY = 2

    def __init__(self, cache_tuples: int, *, max_windows: int) -> None:
        self._sketch = FrequencySketch(1)
        self._ageing = SteadyAgeing(max_windows)
        self._window = 1
        self._noise = 0
        """What the sketch shows for a code that was never asked for."""
        self.resize(cache_tuples)

    def resize(self, cache_tuples: int) -> None:
        """Serve a cache of another size."""
        self._sketch.resize(self.KEYS_PER_ENTRY * max(self.MIN_ENTRIES, cache_tuples))
        before, self._window = self._window, self.USES_PER_ENTRY * max(2_000, cache_tuples)
        self._ageing.resized(before / self._window)

    @property
    def window(self) -> int:
        """Two uses an entry of the cache."""
        return self._window

    def worth(
        self,
        codes: Int64Array,
        matches: Int32Array,
        page_groups: Int64Array,  # noqa: ARG002
        queue: Queue,  # noqa: ARG002
    ) -> Int32Array:
        """Count the matches and return the sum of late."""
        worth = self._sketch.add(codes, matches)
        np.subtract(worth, self._noise, out=worth)
        return np.maximum(worth, matches, out=worth)

    @property
    def is_settled(self) -> bool:
        """Whether the cache has answered about the same share of tuples for some windows."""
        return self._ageing.is_settled

    @property
    def remembered_windows(self) -> float:
        """How many windows the counts stand for."""
        return self._ageing.remembered

    def age(self, answered: int, tuples: int, outdated: float, perhaps_outdated: float = 0.0) -> int:
        """Halve what has been counted, if it is time."""
        halvings = self._ageing.after_window(answered, tuples, outdated, perhaps_outdated)
        self._sketch.age(halvings)
        self._noise = int(np.median(self._sketch.estimate(_STRANGERS)))
        return halvings
