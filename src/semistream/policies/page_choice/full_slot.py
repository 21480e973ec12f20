"""Slots that fill up."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue

_NOTHING = np.empty(0, dtype=np.int64)


class FullSlot(PageChoice):
    """Chooses the fullest page group, once it has `threshold` tuples or the queue is full.

    While input is pending and neither holds it chooses nothing, so a tuple of a rarely used page group may wait without
    bound. When at most `trickle` tuples have entered since the last look, it looks the youngest of them up at once.
    """

    needs_youngest = True

    def __init__(self, threshold: int, trickle: int = 0) -> None:
        self.threshold = threshold
        self.trickle = trickle
        self._entered = 0

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        """Return the fullest page group if it may be read, else nothing."""
        new, self._entered = queue.entered - self._entered, queue.entered
        if 0 < new <= self.trickle:
            return np.array([queue.youngest()], dtype=np.int64)
        fullest = queue.fullest()
        if queue.counts[fullest] >= self.threshold or queue.count >= queue.capacity or not moment.input_pending:
            return np.array([fullest], dtype=np.int64)
        return _NOTHING
