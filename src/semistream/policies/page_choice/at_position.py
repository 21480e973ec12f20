"""A fixed position of the queue."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue


class AtPosition(PageChoice):
    """Chooses the page group of the tuple at a fixed share of the queue from its young end.

    Tuples beyond the position could starve, so the oldest tuple goes first once `patience` times the queue's capacity
    has entered after it.
    """

    needs_positions = True

    def __init__(self, share: float, patience: float = 4.0) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"a position is a share from 0 to 1, not {share}")
        if patience > 4:
            raise ValueError("the queue remembers positions for at most 5 capacities, so patience is at most 4")
        self.share = share
        self.patience = patience

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:  # noqa: ARG002
        """Return the page group at the position, or the oldest if it has waited too long."""
        if queue.oldest_lag() >= self.patience * queue.capacity:
            chosen = queue.oldest()
        else:
            chosen = queue.at(self.share)
        return np.array([chosen], dtype=np.int64)
