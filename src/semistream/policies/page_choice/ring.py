"""Round and round."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue


class Ring(PageChoice):
    """Chooses the page groups in the order they are stored, for ever, whether or not a tuple waits for them."""

    sequential = True

    def __init__(self) -> None:
        self._next = 0

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:  # noqa: ARG002
        """Return the page group after the one before."""
        chosen = self._next
        self._next = (chosen + 1) % queue.page_group_count
        return np.array([chosen], dtype=np.int64)
