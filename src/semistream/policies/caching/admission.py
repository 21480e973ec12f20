"""Which master tuples enter the cache."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.policies.contract import Admission, Queue


class AboveThreshold(Admission):
    """Admits a master tuple whose matches in one read are strictly above a threshold."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def admit(self, matches: Int32Array, partitions: Int64Array, queue: Queue) -> BoolArray:  # noqa: ARG002
        """Compare the matches of the read."""
        return matches > self.threshold


class AboveRate(Admission):
    """Admits a master tuple whose matches per tuple entered since its partition was last read are above a rate.

    The rate is `threshold` matches in twice the queue's capacity, which is how long a partition is left alone when the
    oldest tuple decides: a partition that is read early is held to the same rate.
    """

    def __init__(self, threshold: int, partition_count: int) -> None:
        self.threshold = threshold
        self._last_read = np.zeros(partition_count, dtype=np.int64)

    def admit(self, matches: Int32Array, partitions: Int64Array, queue: Queue) -> BoolArray:
        """Compare the matches with what the rate allows for the time since the last read."""
        elapsed = queue.entered - self._last_read[partitions]
        self._last_read[partitions] = queue.entered
        share = np.minimum(1.0, elapsed / (2 * queue.capacity))
        admitted: BoolArray = matches > np.maximum(1.0, self.threshold * share)
        return admitted
