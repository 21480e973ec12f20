"""Entries of a cache that are followed for a while, to see whether they are used ever less."""

from __future__ import annotations

from math import sqrt

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.engine.cache.tuple_cache import TupleCache

_MAX_ENTRIES = 1024
_MAX_USES = 4.0
"""What seems to be used more often in a window is left out: a few of the hottest keys would speak for all."""
_MIN_LOOKS = 4
_DOUBTFUL = 2.0
_SIGNIFICANT = 3.0
"""So many standard deviations of the later uses are no noise any more; from fewer on it is doubtful."""
_NONE = np.empty(0, dtype=np.int64)


class FollowedEntries:
    """Follows a sample of the better half of a cache, and compares its earlier and its later uses.

    That an entry is used less than its count promises says nothing: of counts that are all alike, the highest are so by
    chance. But what an entry is used after it was drawn decides nothing about its being drawn, so all of that time
    is alike unless the stream drifts. Those that leave the cache meanwhile are the ones used least, which makes
    the rest look better and never worse.
    """

    def __init__(self) -> None:
        self._codes = _NONE
        self._uses: list[int] = []
        self._chances: list[int] = []
        """For each look, how many tuples could have used each entry, in all."""
        self._windows = 0
        self.lost = 0.0
        """The part of their uses that entries lost when they were compared last, 0 if that is most likely noise."""
        self.surely_lost = 0.0
        """The same if they were compared at the last look, and it cannot be noise; else 0."""

    def look(self, cache: TupleCache, tuples: int, windows: int, remembered_windows: float) -> None:
        """Learn what was used since the cache's window began; begin anew once all that is remembered has passed."""
        self.surely_lost = 0.0
        if len(self._codes):
            present, uses = cache.uses_of(self._codes)
            self._uses.append(uses)
            self._chances.append(present * tuples)
            self._windows += windows
            looks = len(self._uses)
            if looks < _MIN_LOOKS or looks & (looks - 1):
                return
            self._compare()
            most_stayed = 2 * present > len(self._codes)
            if not self.surely_lost and most_stayed and self._windows < remembered_windows:
                return
        most = _MAX_USES * remembered_windows
        self._follow(cache.codes_used_below(most, _MAX_ENTRIES) if cache.is_full else _NONE)

    def forget(self) -> None:
        """Follow none until the next look: the stream has changed, or the cache is asked for some tuples only."""
        self._follow(_NONE)
        self.lost = self.surely_lost = 0.0

    def _follow(self, codes: Int64Array) -> None:
        self._codes = codes
        self._uses, self._chances, self._windows = [], [], 0

    def _compare(self) -> None:
        half = len(self._uses) // 2
        before, after = sum(self._uses[:half]), sum(self._uses[half:])
        chances, chances_after = sum(self._chances[:half]), sum(self._chances[half:])
        if not before or not chances_after:
            return
        part = chances_after / (chances + chances_after)
        missing = (before + after) * part - after
        noise = sqrt((before + after) * part * (1 - part))
        lost = 1.0 - (after / chances_after) / (before / chances)
        self.lost = lost if missing > _DOUBTFUL * noise else 0.0
        self.surely_lost = lost if missing > _SIGNIFICANT * noise else 0.0
