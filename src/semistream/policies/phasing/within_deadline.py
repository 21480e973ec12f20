"""Refill, but with no more than can be answered in time."""

from __future__ import annotations

from semistream.policies.contract import Queue
from semistream.policies.phasing.refill import Refill

_LATE, _EARLY = 0.7, 0.5
_FEWER, _MORE = 0.7, 1.25


class WithinDeadline(Refill):
    """Lets only as many tuples wait as leave before their deadline, found by trying.

    It starts with `first`. Each time as many as may wait have left, the number grows if none of them waited for half of
    the deadline, and falls if one came near it.
    """

    def __init__(self, deadline_seconds: float, first: int) -> None:
        super().__init__()
        self._deadline_seconds = deadline_seconds
        self.max_waiting = max(1, first)
        """How many tuples may wait."""
        self._left = 0
        self._longest_seconds = 0.0

    def room(self, queue: Queue, taken: int) -> int:
        """Return what is left of the tuples that may wait."""
        return min(super().room(queue, taken), self.max_waiting - queue.count)

    def answered(self, count: int, longest_wait_seconds: float, queue: Queue) -> None:
        """Let more or fewer tuples wait."""
        self._left += count
        self._longest_seconds = max(self._longest_seconds, longest_wait_seconds)
        is_late = self._longest_seconds > _LATE * self._deadline_seconds
        if self._left < self.max_waiting and not is_late:
            return
        if is_late:
            self.max_waiting = max(1, int(self.max_waiting * _FEWER))
        elif self._longest_seconds < _EARLY * self._deadline_seconds:
            self.max_waiting = min(queue.capacity, int(self.max_waiting * _MORE) + 1)
        self._left, self._longest_seconds = 0, 0.0
