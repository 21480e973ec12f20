"""A few tuples, looked up one by one."""

from __future__ import annotations

from semistream.policies.contract import Intake, Queue


class FewAtATime(Intake):
    """Takes in at most a few tuples and lets all of them leave before the next ones enter."""

    def __init__(self, tuples: int) -> None:
        self.tuples = tuples

    def room(self, queue: Queue, taken: int) -> int:  # noqa: ARG002
        """Return what is left of the few."""
        return min(self.tuples, queue.capacity) - queue.count

    def ready(self, queue: Queue, taken: int, *, available: bool, ended: bool) -> bool:  # noqa: ARG002
        """Read as soon as a tuple is there that cannot be joined by more."""
        return queue.count > 0 and (not available or self.room(queue, taken) <= 0)
