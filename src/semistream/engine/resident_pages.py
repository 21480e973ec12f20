"""Partitions of the master table that stay in memory as a whole."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream.engine.matching import find_in, guess_scale
from semistream.store.contract import PageSet


class ResidentPages:
    """Up to `capacity` partitions with their rows, found by partition number."""

    def __init__(self, partition_count: int, capacity: int) -> None:
        self.capacity = capacity
        self._slot_of = np.full(max(1, partition_count), -1, dtype=np.int32)
        self._pages: dict[int, PageSet] = {}
        self._codes = np.zeros((capacity, 1), dtype=np.int64)
        self._sizes = np.zeros(capacity, dtype=np.int64)

    @property
    def partitions(self) -> Int64Array:
        """The resident partitions."""
        return np.fromiter(self._pages, dtype=np.int64, count=len(self._pages))

    @property
    def size_bytes(self) -> int:
        """The memory of pages and their index."""
        return sum(pages.size_bytes for pages in self._pages.values()) + self._codes.nbytes + self._slot_of.nbytes

    def __len__(self) -> int:
        """Return the number of resident partitions."""
        return len(self._pages)

    def pages_of(self, partition: int) -> PageSet:
        """Return the rows of a resident partition."""
        return self._pages[partition]

    def find(self, partitions: Int32Array) -> Int32Array:
        """Return the slot of each partition that is resident, or -1."""
        return self._slot_of[partitions]

    def match(self, codes: Int64Array, slots: Int64Array) -> Int64Array:
        """Return the row of each code in the partition at its slot, or -1."""
        rows = np.empty(len(codes), dtype=np.int64)
        _match(self._codes, self._sizes, codes, slots, rows)
        return rows

    def partition_at(self, slots: Int64Array) -> Int64Array:
        """Return the partition at each slot."""
        partition_of = np.zeros(self.capacity, dtype=np.int64)
        resident = self.partitions
        partition_of[self._slot_of[resident]] = resident
        return partition_of[slots]

    def put(self, partition: int, pages: PageSet) -> None:
        """Keep a partition; there must be room."""
        free = np.setdiff1d(np.arange(self.capacity), self._slot_of[self.partitions])
        slot = int(free[0])
        size = len(pages.codes)
        if size > self._codes.shape[1]:
            grown = np.zeros((self.capacity, size), dtype=np.int64)
            grown[:, : self._codes.shape[1]] = self._codes
            self._codes = grown
        self._codes[slot, :size] = pages.codes
        self._sizes[slot] = size
        self._slot_of[partition] = slot
        self._pages[partition] = pages

    def drop(self, partition: int) -> None:
        """Give a partition up."""
        del self._pages[partition]
        self._slot_of[partition] = -1

    def resize(self, capacity: int) -> None:
        """Change the number of slots, to no fewer than are in use."""
        kept, self._pages, self.capacity = self._pages, {}, capacity
        self._slot_of[:] = -1
        self._codes = np.zeros((capacity, self._codes.shape[1]), dtype=np.int64)
        self._sizes = np.zeros(capacity, dtype=np.int64)
        for partition, pages in kept.items():
            self.put(partition, pages)


@kernel
def _match(
    resident_codes: Int64Array, sizes: Int64Array, codes: Int64Array, slots: Int64Array, rows: Int64Array
) -> None:
    for index in range(codes.shape[0]):
        slot = slots[index]
        scale = guess_scale(resident_codes[slot], 0, sizes[slot])
        rows[index] = find_in(resident_codes[slot], 0, sizes[slot], codes[index], scale)
