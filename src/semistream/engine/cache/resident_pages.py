"""Partitions of the master table that stay in memory as a whole."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.store.contract import PageSet


class ResidentPages:
    """Up to `capacity` partitions with their rows, found by partition number, of `limit_bytes` together.

    Without a limit partitions are only counted.
    """

    def __init__(self, partition_count: int, capacity: int, limit_bytes: int = 0) -> None:
        self.capacity = capacity
        self.page_bytes = 0
        """The memory of the pages."""
        self._limit_bytes = limit_bytes
        self._slot_of = np.full(max(1, partition_count), -1, dtype=np.int32)
        self._pages: dict[int, PageSet] = {}
        self._partition_at = np.full(capacity, -1, dtype=np.int64)

    @property
    def partitions(self) -> Int64Array:
        """The resident partitions."""
        return np.fromiter(self._pages, dtype=np.int64, count=len(self._pages))

    @property
    def size_bytes(self) -> int:
        """The memory of pages and their index."""
        return self.page_bytes + self._partition_at.nbytes + self._slot_of.nbytes

    def __len__(self) -> int:
        """Return the number of resident partitions."""
        return len(self._pages)

    def has_room(self, pages: PageSet) -> bool:
        """Say whether pages fit beside those that are resident."""
        if len(self) >= self.capacity:
            return False
        return not self._limit_bytes or self.page_bytes + pages.size_bytes <= self._limit_bytes

    def may_hold(self, pages: PageSet) -> bool:
        """Say whether pages fit if no others are resident."""
        return not self._limit_bytes or pages.size_bytes <= self._limit_bytes

    def pages_of(self, partition: int) -> PageSet:
        """Return the rows of a resident partition."""
        return self._pages[partition]

    def find(self, partitions: Int32Array) -> Int32Array:
        """Return the slot of each partition that is resident, or -1."""
        return self._slot_of[partitions]

    def partition_at(self, slots: Int64Array) -> Int64Array:
        """Return the partition at each slot."""
        return self._partition_at[slots]

    def put(self, partition: int, pages: PageSet) -> None:
        """Keep a partition; there must be room."""
        slot = int(np.flatnonzero(self._partition_at < 0)[0])
        self._partition_at[slot] = partition
        self._slot_of[partition] = slot
        self._pages[partition] = pages
        self.page_bytes += pages.size_bytes

    def drop(self, partition: int) -> None:
        """Give a partition up."""
        self.page_bytes -= self._pages.pop(partition).size_bytes
        self._partition_at[self._slot_of[partition]] = -1
        self._slot_of[partition] = -1

    def resize(self, capacity: int) -> None:
        """Change the number of slots, to no fewer than are in use."""
        kept, self._pages, self.capacity = self._pages, {}, capacity
        self._slot_of[:] = -1
        self._partition_at = np.full(capacity, -1, dtype=np.int64)
        self.page_bytes = 0
        for partition, pages in kept.items():
            self.put(partition, pages)
