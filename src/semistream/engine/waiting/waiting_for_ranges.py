"""Waiting tuples of which a read answers a range of lists."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.engine.waiting.waiting_tuples import Drained, WaitingTuples

_NONE = np.empty(0, dtype=np.int64)


class WaitingForRanges(WaitingTuples):
    """Waiting tuples listed by the page group that begins with their page, where page groups overlap.

    A read of a page group answers all lists from its own up to that of `last`, and removes them together.
    """

    def __init__(self, last: Int64Array, capacity: int, *, positions: bool = False, youngest: bool = False) -> None:
        super().__init__(len(last), capacity, positions=positions, youngest=youngest, since=True)
        self._last = last

    def waits_for(self, page_group: int) -> bool:
        """Say whether a read of a page group would answer a tuple."""
        return bool(self.counts[page_group : self._last[page_group] + 1].any())

    def drain(self, page_groups: Int64Array) -> Drained:
        """Remove and return all tuples that reads of these page groups answer, the oldest of each page group first."""
        lists = [self._answered_by(page_group) for page_group in page_groups.tolist()]
        drained = super().drain(np.concatenate([_NONE, *lists]))
        ends = np.cumsum([0, *map(len, lists)])
        return Drained(drained.codes, drained.references, drained.bounds[ends])

    def _answered_by(self, page_group: int) -> Int64Array:
        """Return the lists that are not empty, that of the oldest tuple first."""
        lists = page_group + np.flatnonzero(self.counts[page_group : self._last[page_group] + 1])
        in_order: Int64Array = lists[np.argsort(self.since[lists], kind="stable")]
        return in_order
