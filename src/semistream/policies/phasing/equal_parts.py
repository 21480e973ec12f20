"""One equal part for each read."""

from __future__ import annotations

from semistream.policies.contract import Intake, Queue


class EqualParts(Intake):
    """Takes in exactly one part of the queue per read, the queue having as many equal parts as there are page groups.

    A tuple keeps its slot for a full round whether or not it has matched, so a part is always free. Reading waits until
    the part is complete, or the stream has ended.
    """

    def part(self, queue: Queue) -> int:
        """Return the tuples of a part: h_S / page groups."""  # w
        return max(1, queue.capacity // queue.page_group_count)

    def room(self, queue: Queue, taken: int) -> int:
        """Return what the part lacks."""
        return min(self.part(queue) - taken, queue.capacity - queue.count)

    def ready(self, queue: Queue, taken: int, *, available: bool, ended: bool) -> bool:
        """Read when the part is complete; at the end of the stream with what there is."""
        return self.room(queue, taken) <= 0 or (ended and not available and queue.count > 0)
