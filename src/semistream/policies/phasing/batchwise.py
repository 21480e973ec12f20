"""Collect, then join all of it."""

from __future__ import annotations

from semistream.policies.contract import Intake, Queue


class Batchwise(Intake):
    """Takes in until a share of the slots is full or input pauses, then nothing until all of it has left."""

    def __init__(self, share: float = 1.0) -> None:
        self.share = share
        self._joining = False

    def room(self, queue: Queue, taken: int) -> int:  # noqa: ARG002
        """Return the free slots of the batch, none while it is being joined."""
        if self._joining and queue.count:
            return 0
        self._joining = False
        return max(1, int(queue.capacity * self.share)) - queue.count

    def ready(self, queue: Queue, taken: int, *, available: bool, ended: bool) -> bool:  # noqa: ARG002
        """Start joining when the batch is full or no more input is there, and go on until it is empty."""
        if queue.count and (self._joining or not available or self.room(queue, taken) <= 0):
            self._joining = True
        return self._joining and queue.count > 0
