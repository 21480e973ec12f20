"""Page groups of the master table that stay in memory as a whole."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.store.contract import PageSet


class ResidentPages:
    """Up to `capacity` page groups with their rows, found by page group number, of `limit_bytes` together.

    Without a limit page groups are only counted.
    """

    def __init__(self, page_group_count: int, capacity: int, limit_bytes: int = 0) -> None:
        self.capacity = capacity
        self.page_bytes = 0
        """The memory of the pages."""
        self._limit_bytes = limit_bytes
        self._slot_of = np.full(max(1, page_group_count), -1, dtype=np.int32)
        self._pages: dict[int, PageSet] = {}
        self._page_group_at = np.full(capacity, -1, dtype=np.int64)

    @property
    def page_groups(self) -> Int64Array:
        """The resident page groups."""
        return np.fromiter(self._pages, dtype=np.int64, count=len(self._pages))

    @property
    def size_bytes(self) -> int:
        """The memory of pages and their index."""
        return self.page_bytes + self._page_group_at.nbytes + self._slot_of.nbytes

    def __len__(self) -> int:
        """Return the number of resident page groups."""
        return len(self._pages)

    def has_room(self, pages: PageSet) -> bool:
        """Say whether pages fit beside those that are resident."""
        if len(self) >= self.capacity:
            return False
        return not self._limit_bytes or self.page_bytes + pages.size_bytes <= self._limit_bytes

    def may_hold(self, pages: PageSet) -> bool:
        """Say whether pages fit if no others are resident."""
        return not self._limit_bytes or pages.size_bytes <= self._limit_bytes

    def pages_of(self, page_group: int) -> PageSet:
        """Return the rows of a resident page group."""
        return self._pages[page_group]

    def find(self, page_groups: Int32Array) -> Int32Array:
        """Return the slot of each page group that is resident, or -1."""
        return self._slot_of[page_groups]

    def page_group_at(self, slots: Int64Array) -> Int64Array:
        """Return the page group at each slot."""
        return self._page_group_at[slots]

    def put(self, page_group: int, pages: PageSet) -> None:
        """Keep a page group; there must be room."""
        slot = int(np.flatnonzero(self._page_group_at < 0)[0])
        self._page_group_at[slot] = page_group
        self._slot_of[page_group] = slot
        self._pages[page_group] = pages
        self.page_bytes += pages.size_bytes

    def drop(self, page_group: int) -> None:
        """Give a page group up."""
        self.page_bytes -= self._pages.pop(page_group).size_bytes
        self._page_group_at[self._slot_of[page_group]] = -1
        self._slot_of[page_group] = -1

    def resize(self, capacity: int) -> None:
        """Change the number of slots, to no fewer than are in use."""
        kept, self._pages, self.capacity = self._pages, {}, capacity
        self._slot_of[:] = -1
        self._page_group_at = np.full(capacity, -1, dtype=np.int64)
        self.page_bytes = 0
        for page_group, pages in kept.items():
            self.put(page_group, pages)
