"""Reads partitions of the master table: fixed groups of neighbouring pages."""

from __future__ import annotations

from threading import Lock

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.clock import Clock, ModelClock
from semistream.core.stats import JoinStats
from semistream.store.contract import MasterStore, PageSet


class PartitionReader:
    """Groups the pages of a store into partitions and reads them, one request each, counting and charging each read.

    May be called from several threads.
    """

    def __init__(self, store: MasterStore, pages_per_partition: int, clock: Clock, stats: JoinStats) -> None:
        self.pages_per_partition = pages_per_partition
        self.partition_count = -(-store.page_count // pages_per_partition)
        self._store = store
        self._clock = clock
        self._stats = stats
        self._lock = Lock()

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the partition that has the row of each code, if any has."""
        pages = self._store.locate(codes)
        if self.pages_per_partition > 1:
            pages //= np.int32(self.pages_per_partition)
        return pages

    def size_bytes(self, partition: int) -> int:
        """Return the bytes that a read of the partition transfers."""
        first, last = self._pages(partition)
        return self._store.range_bytes(first, last)

    def read(self, partitions: Int64Array, *, sequential: bool = False, in_flight: int = 1) -> PageSet:
        """Read partitions, in the order given.

        `sequential` says that the read continues the one before; `in_flight` how many such reads run side by side, so
        that their latencies overlap while they share the bandwidth.
        """
        first = partitions * self.pages_per_partition
        last = np.minimum(first + self.pages_per_partition, self._store.page_count) - 1
        pages = self._store.read(first, last)
        size_bytes = sum(self._store.range_bytes(a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True))
        stats = self._stats
        with self._lock:
            stats.read_requests += len(partitions)
            stats.page_reads += int((last - first).sum()) + len(partitions)
            stats.bytes_read += size_bytes
        if isinstance(self._clock, ModelClock):
            costs = self._clock.costs
            latency = costs.request_seconds if sequential and partitions[0] else costs.seek_seconds
            self._clock.charge(len(partitions) * latency / in_flight + size_bytes / costs.bytes_per_second)
        return pages

    def _pages(self, partition: int) -> tuple[int, int]:
        first = partition * self.pages_per_partition
        return first, min(first + self.pages_per_partition, self._store.page_count) - 1
