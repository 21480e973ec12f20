"""Reads partitions of the master table."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.clock import Clock, ModelClock
from semistream.core.stats import JoinStats
from semistream.engine.partitions import Partitions
from semistream.store.contract import MasterStore, PageSet


class PartitionReader:
    """Reads partitions, one request each, counting and charging each read. May be called from several threads."""

    def __init__(self, store: MasterStore, partitions: Partitions, clock: Clock, stats: JoinStats) -> None:
        self.partitions = partitions
        self._store = store
        self._clock = clock
        self._stats = stats
        self._lock = Lock()

    @property
    def partition_count(self) -> int:
        """The partitions of the table."""
        return self.partitions.count

    def readable(self) -> Iterator[int]:
        """Yield the partitions that are not too large to read, in their order."""
        for partition in range(self.partition_count):
            unreadable = self.partitions.unreadable(np.array([partition], dtype=np.int32))
            if unreadable is None or not unreadable[0]:
                yield partition

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the partition that has the row of each code, if any has."""
        return self.partitions.locate(codes)

    def read(self, partitions: Int64Array, *, sequential: bool = False, in_flight: int = 1) -> PageSet:
        """Read partitions, in the order given.

        `sequential` says that the read continues the one before; `in_flight` how many such reads run side by side, so
        that their latencies overlap while they share the bandwidth.
        """
        first, last = self.partitions.pages_of(partitions)
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
