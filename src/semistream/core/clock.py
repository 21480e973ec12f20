"""Two clocks: the wall clock, and a model clock that charges a cost for each operation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from semistream.core.costs import CostProfile, Operations


@dataclass
class Lap:
    """The seconds that were charged while the lap was open, and when it began."""

    began: float
    seconds: float = 0.0


class Clock(Protocol):
    """Tells the time to a join and is told what the join does.

    The engine must charge every operation it performs; a clock may ignore the charges.
    """

    @property
    def model(self) -> ModelClock | None:
        """The clock itself if time passes only by charges, which then have costs; None if real time passes."""

    def now(self) -> float:
        """Return the seconds since the clock was made."""

    def charge(self, operations: Operations) -> None:
        """Let the time of some operations pass."""

    def sleep_until(self, moment: float) -> None:
        """Let time pass until `moment`; return at once if it is past."""


class WallClock:
    """Real time; charges are ignored."""

    model = None

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def now(self) -> float:
        """Return the real seconds since the clock was made."""
        return time.perf_counter() - self._start

    def charge(self, operations: Operations) -> None:
        """Ignore the charge: real work takes its own time."""

    def sleep_until(self, moment: float) -> None:
        """Sleep until `moment`."""
        delay = moment - self.now()
        if delay > 0:
            time.sleep(delay)


class ModelClock:
    """Time that passes only by charges, so that a run is the same on every machine."""

    def __init__(self, costs: CostProfile) -> None:
        self.costs = costs
        self.operations = Operations()
        """All that was charged so far, also what ran beside other work."""
        self._now = 0.0
        self._lap: Lap | None = None

    @property
    def model(self) -> ModelClock:
        """The clock itself."""
        return self

    def now(self) -> float:
        """Return the seconds charged so far."""
        return self._now

    def charge(self, operations: Operations) -> None:
        """Count the operations, and advance by what they cost."""
        self.operations.add(operations)
        self.advance(self.costs.seconds(operations))

    def advance(self, seconds: float) -> None:
        """Advance by `seconds`, or add them to the open lap."""
        if self._lap is None:
            self._now += seconds
        else:
            self._lap.seconds += seconds

    def moment(self) -> float:
        """Return the time for the work of the open lap, if there is one: its charges have passed for that work only."""
        return self._now if self._lap is None else self._lap.began + self._lap.seconds

    def sleep_until(self, moment: float) -> None:
        """Jump to `moment`; in a lap, the work of the lap waits for it."""
        self.advance(max(0.0, moment - self.moment()))

    @contextmanager
    def lap(self) -> Iterator[Lap]:
        """Collect charges without advancing, for work that runs beside other work."""
        outer, self._lap = self._lap, Lap(self.moment())
        try:
            yield self._lap
        finally:
            self._lap = outer
