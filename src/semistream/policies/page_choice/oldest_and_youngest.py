"""Two buffers, two ends of the queue."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue

_NONE = np.empty(0, dtype=np.int64)


class OldestAndYoungest(PageChoice):
    """Chooses for one buffer the page group of the oldest tuple and for the other that of the youngest.

    The two buffers never hold the same page: the second takes the next page group from its end of the queue. So the
    tuples a buffer was loaded for are still there when it is probed.
    """

    needs_youngest = True
    buffers = 2

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        """Return the page group at the end of the queue that the buffer serves, or the next that is not loading."""
        end = queue.youngest if moment.buffer else queue.oldest
        chosen, rank = end(), 0
        while chosen in moment.loading:
            rank += 1
            chosen = end(rank)
        return np.array([chosen], dtype=np.int64) if chosen >= 0 else _NONE
