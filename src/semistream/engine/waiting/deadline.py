"""Which waiting tuples are getting late."""

from __future__ import annotations

from bisect import bisect_right

from semistream.core.arrays import Int64Array
from semistream.core.clock import Clock
from semistream.engine.waiting.waiting_tuples import WaitingTuples

_ENTRIES_KEPT = 4096


class Deadline:
    """Knows when waiting tuples entered, and so which of them have waited for half of the time they may."""

    def __init__(self, seconds: float, waiting: WaitingTuples, clock: Clock) -> None:
        self._seconds = seconds
        self._waiting = waiting
        self._clock = clock
        self._moments: list[float] = []
        self._entered: list[int] = []

    def note(self) -> None:
        """Note how many tuples have entered by now; to be called before each read."""
        self._moments.append(self._clock.now())
        self._entered.append(self._waiting.entered)
        if len(self._moments) > 2 * _ENTRIES_KEPT:  # older ones count as entered when the oldest kept did
            del self._moments[:_ENTRIES_KEPT], self._entered[:_ENTRIES_KEPT]

    def overdue_before(self) -> int:
        """Return the count of entered tuples before which all tuples are overdue."""
        place = bisect_right(self._moments, self._clock.now() - self._seconds / 2)
        return self._entered[place - 1] if place else 0

    def waits_of(self, page_groups: Int64Array) -> tuple[int, float]:
        """Return how many tuples wait for some page groups, and for how long the oldest of them has waited."""
        counts = self._waiting.counts[page_groups]
        waited_for = page_groups[counts > 0]
        if not len(waited_for):
            return 0, 0.0
        place = bisect_right(self._entered, int(self._waiting.since[waited_for].min()))
        entered_at = self._moments[max(0, place - 1)]
        return int(counts.sum()), self._clock.now() - entered_at
