"""One look-up for each tuple."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue


class EveryTuple(PageChoice):
    """Chooses the page group of every waiting tuple, once for each tuple, so that no read is shared."""

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:  # noqa: ARG002
        """Return as many page groups as tuples wait, the oldest page group first."""
        page_groups = queue.in_order_of_age()
        return np.repeat(page_groups, queue.counts[page_groups])
