"""Goes round the table once in the longest wait."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import BoolArray, Float64Array, Int64Array
from semistream.policies.contract import Staying


class Sweep(Staying):
    """Reads what a hand has passed that goes round all page groups in the time that a tuple may wait.

    So each page group is read once in that time, for all tuples that have come meanwhile, and what is read at once are
    neighbours. A page group whose oldest tuple has waited long enough is read wherever the hand is.
    """

    def __init__(self, *, before_seconds: float, now_seconds: float, max_wait_seconds: float) -> None:
        """`before_seconds` is when the hand was looked at last."""
        self._before = before_seconds
        self._now = now_seconds
        self._max_wait = max_wait_seconds

    def due(self, page_groups: Int64Array, oldest_seconds: Float64Array, page_group_count: int) -> BoolArray:
        """Compare the place of each page group with where the hand was and is."""
        late: BoolArray = oldest_seconds <= self._now - self._max_wait
        if self._max_wait <= 0 or self._now - self._before >= self._max_wait:
            return np.ones(len(page_groups), dtype=np.bool_)
        start, end = self._place(self._before, page_group_count), self._place(self._now, page_group_count)
        if start <= end:
            passed = (page_groups >= start) & (page_groups < end)
        else:
            passed = (page_groups >= start) | (page_groups < end)
        return late | passed

    def _place(self, seconds: float, page_group_count: int) -> int:
        return int((seconds % self._max_wait) / self._max_wait * page_group_count)
