"""Frequent pages on schedule."""

from __future__ import annotations

import heapq

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue


class DueFrequent(PageChoice):
    """Chooses the frequent page group that is due, or else the one that the oldest waiting tuple needs.

    The frequency f of a page group is its matches per queue capacity entered; a frequent page group is due again after
    threshold * capacity / f tuples have entered. With `decay` d the frequency glides, f <- d*f + (1-d)*c with c the
    matches of the last read; without it stays as first seen. The threshold follows from what reads bring:
    `eagerness` times the mean matches of recent reads, so it scales with memory and with the skew by itself. After
    `MAX_IN_A_ROW` frequent page groups the oldest tuple has its turn in any case, so none waits for ever. At most
    `max_pages` page groups are in the priority queue.
    """

    MAX_IN_A_ROW = 16

    NODE_BYTES = 16

    def __init__(
        self,
        *,
        decay: float | None = 0.9,
        eagerness: float = 2.0,
        entry: float = 2.0,
        max_pages: int | None = None,
    ) -> None:
        self.decay = decay
        self.eagerness = eagerness
        self.entry = entry
        self.max_pages = max_pages
        self._due: list[tuple[int, int]] = []
        self._frequency: dict[int, float] = {}
        self._mean_matches = 0.0
        self._in_a_row = 0
        self._scheduled = -1

    @property
    def frequent_count(self) -> int:
        """The page groups in the priority queue."""
        return len(self._frequency)

    def is_frequent(self, page_group: int) -> bool:
        """Say whether a page group is in the priority queue."""
        return page_group in self._frequency

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:  # noqa: ARG002
        """Return the top of the priority queue if it is due and has waiting tuples, else the oldest."""
        self._scheduled = -1
        if self._in_a_row >= self.MAX_IN_A_ROW:
            self._in_a_row = 0
            return np.array([queue.oldest()], dtype=np.int64)
        while self._due and self._due[0][0] <= queue.entered:
            _, page_group = heapq.heappop(self._due)
            if queue.waits_for(page_group):
                self._scheduled = page_group
                self._in_a_row += 1
                return np.array([page_group], dtype=np.int64)
            del self._frequency[page_group]
        self._in_a_row = 0
        return np.array([queue.oldest()], dtype=np.int64)

    def after_read(self, page_group: int, matches: int, queue: Queue) -> None:
        """Update the frequency, and put the page group into the priority queue if it is frequent."""
        if self._mean_matches:
            self._mean_matches += (matches - self._mean_matches) / 256
        else:
            self._mean_matches = float(matches)
        known = page_group in self._frequency
        if known and page_group != self._scheduled:
            return  # read because a tuple grew old; its turn in the schedule stays
        limit = self.entry * self._mean_matches
        if not known:
            if matches > limit and (self.max_pages is None or len(self._frequency) < self.max_pages):
                self._frequency[page_group] = float(matches)
                self._schedule(page_group, queue)
            return
        if self.decay is not None:
            self._frequency[page_group] = self._frequency[page_group] * self.decay + matches * (1 - self.decay)
        if matches < self._mean_matches / 2:
            del self._frequency[page_group]
        else:
            self._schedule(page_group, queue)

    def _schedule(self, page_group: int, queue: Queue) -> None:
        threshold = self.eagerness * self._mean_matches
        period = threshold * queue.capacity / max(1.0, self._frequency[page_group])
        heapq.heappush(self._due, (queue.entered + max(1, round(period)), page_group))
