"""Where stream tuples go that nothing has answered on their arrival."""

from __future__ import annotations

from abc import ABC, abstractmethod

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.costs import CostProfile, Operations
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.contract import Intake


class Entrance(ABC):
    """Takes tuples from the stream phase, whose thread makes all calls."""

    @abstractmethod
    def room(self) -> int:
        """Return how many more tuples may enter now."""

    @abstractmethod
    def enter(self, codes: Int64Array, page_groups: Int32Array, references: Int64Array) -> None:
        """Let tuples enter, no more than there is room for."""

    @abstractmethod
    def count(self, taken: int, entered: int) -> Operations:
        """Learn how many tuples the stream phase has taken and how many of them have entered; return what it did."""

    @abstractmethod
    def entry_seconds(self, costs: CostProfile) -> float:
        """Return what the entry of a tuple costs."""


class QueueEntrance(Entrance):
    """Lets tuples wait in the queue at once, as many as the intake wants before the next read."""

    def __init__(self, waiting: WaitingTuples, intake: Intake) -> None:
        self._waiting = waiting
        self._intake = intake
        self._entered = 0
        """The tuples that have entered since the last read, or since the queue was empty."""

    def room(self) -> int:
        """Return what the intake says."""
        waiting = self._waiting
        return self._intake.room(waiting, self._entered if waiting.count else 0)

    def enter(self, codes: Int64Array, page_groups: Int32Array, references: Int64Array) -> None:
        """Let tuples wait."""
        added = self._waiting.add(codes, page_groups, references)
        assert added == len(codes), "the intake gave more room than there is"

    def count(self, taken: int, entered: int) -> Operations:
        """Count what has entered since the last read."""
        if self._waiting.count == entered:
            self._entered = 0  # all that had entered before have left without a read
        self._entered += entered
        return Operations(takes=taken, appends=entered)

    def entry_seconds(self, costs: CostProfile) -> float:
        """Return what it costs to let a tuple wait."""
        return costs.append_seconds

    def begin_read(self, *, available: bool, ended: bool) -> bool:
        """Begin a read if the intake says that it may start, and say whether it does."""
        if not self._intake.ready(self._waiting, self._entered, available=available, ended=ended):
            return False
        self._intake.begin(self._waiting)
        return True

    def end_read(self) -> None:
        """Count anew what enters."""
        self._entered = 0
