"""Two buffers, two ends of the queue."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import PageChoice, Queue


class OldestAndYoungest(PageChoice):
    """Chooses for one buffer the partition of the oldest tuple and for the other that of the youngest.

    The two buffers never hold the same partition: the second takes the next partition from its end of the queue. So
    the tuples a buffer was loaded for are still there when it is probed.
    """

    needs_youngest = True
    buffers = 2

    def __init__(self) -> None:
        self._turn = 1

    def choose(self, queue: Queue, *, input_pending: bool) -> Int64Array:  # noqa: ARG002
        """Return the partition of the buffer whose turn it is."""
        self._turn = 1 - self._turn
        return np.array([self.choose_for(self._turn, queue, -1)], dtype=np.int64)

    def choose_for(self, buffer: int, queue: Queue, taken: int) -> int:
        """Return the partition at the end of the queue that `buffer` serves, or the next if it is taken."""
        end = queue.youngest if buffer else queue.oldest
        chosen = end()
        return end(1) if chosen == taken else chosen
