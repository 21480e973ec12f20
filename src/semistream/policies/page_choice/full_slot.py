"""Slots that fill up."""

from __future__ import annotations

from collections import deque

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue

_NOTHING = np.empty(0, dtype=np.int64)


class FullSlot(PageChoice):
    """Chooses the fullest page group, once it has `threshold` tuples or the queue is full.

    While input is pending and neither holds it chooses nothing, so a tuple of a rarely used page group may wait without
    bound. While the input holds no more than `trickle` tuples, those that have entered are looked up at once, page
    group by page group.
    """

    def __init__(self, threshold: int, trickle: int = 0) -> None:
        self.threshold = threshold
        self.trickle = trickle
        self.needs_input_fill = trickle > 0
        self._look_ups: deque[int] = deque()
        self._before: Int32Array | None = None
        """How many tuples waited for each page group at the last look."""

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        """Return what is looked up at once, else the fullest page group if it may be read, else nothing."""
        if self.needs_input_fill:
            self._note_entered(queue, is_trickle=0 < moment.input_fill <= self.trickle)
        while self._look_ups:
            page_group = self._look_ups.popleft()
            if queue.counts[page_group]:
                return np.array([page_group], dtype=np.int64)
        fullest = queue.fullest()
        if queue.counts[fullest] >= self.threshold or queue.count >= queue.capacity or not moment.input_pending:
            return np.array([fullest], dtype=np.int64)
        return _NOTHING

    def after_read(self, page_group: int, matches: int, queue: Queue) -> None:  # noqa: ARG002
        """Note that nobody waits for it any more."""
        if self._before is not None:
            self._before[page_group] = 0

    def _note_entered(self, queue: Queue, *, is_trickle: bool) -> None:
        if self._before is None:
            self._before = np.zeros_like(queue.counts)
        if is_trickle:
            self._look_ups.extend(np.flatnonzero(queue.counts > self._before).tolist())
        self._before[:] = queue.counts
