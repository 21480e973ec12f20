"""Collect, then join all of it."""

from __future__ import annotations

from semistream.policies.contract import Intake, Queue


class Batchwise(Intake):
    """Takes in until a share of the slots is full or input pauses, then nothing until all of it has left."""

    def __init__(self, share: float = 1.0) -> None:
        self.share = share
        self._entered = -1
        """How many tuples had ever entered when the batch was complete."""

    def room(self, queue: Queue, taken: int) -> int:  # noqa: ARG002
        """Return the free slots of the batch, none while it is being joined."""
        return 0 if self._is_joining(queue) else max(1, int(queue.capacity * self.share)) - queue.count

    def ready(self, queue: Queue, taken: int, *, available: bool, ended: bool) -> bool:  # noqa: ARG002
        """Start joining when the batch is full or no more input is there, and go on until it is empty."""
        return queue.count > 0 and (not available or self.room(queue, taken) <= 0)

    def begin(self, queue: Queue) -> None:
        """Take nothing in until all that waits has left."""
        self._entered = queue.entered

    def _is_joining(self, queue: Queue) -> bool:
        return queue.count > 0 and queue.entered == self._entered
