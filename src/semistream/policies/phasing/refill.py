"""Refill what has left."""

from __future__ import annotations

from semistream.policies.contract import Intake, Queue


class Refill(Intake):
    """Takes in as many tuples as there are free slots, and never waits for input while tuples wait.

    With `step`, at most so many tuples enter between two looks at the page choice.
    """

    def __init__(self, step: int | None = None) -> None:
        self.step = step

    def room(self, queue: Queue, taken: int) -> int:
        """Return the free slots."""
        free = queue.capacity - queue.count
        return free if self.step is None else min(free, self.step - taken)

    def ready(self, queue: Queue, taken: int, *, available: bool, ended: bool) -> bool:  # noqa: ARG002
        """Read once the slots are full or no input is there."""
        return queue.count > 0 and (not available or self.room(queue, taken) <= 0)
