"""Oldest first."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue


class OldestWaiting(PageChoice):
    """Chooses the page group that the oldest waiting tuple needs, so no tuple waits for ever."""

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:  # noqa: ARG002
        """Return the page group of the oldest tuple."""
        return np.array([queue.oldest()], dtype=np.int64)
