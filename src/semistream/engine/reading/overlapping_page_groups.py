"""Page groups that overlap: one begins at every page, so that a read can begin where a key is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.engine.reading.page_groups import PageGroups
from semistream.store.contract import MasterStore


class OverlappingPageGroups(PageGroups):
    """Page groups of so many pages each, or as many as are left, of which one begins at every page.

    A code is located at the page group that begins with its page. Where some pages are much larger, a page group has as
    many pages as come to about the same bytes, and ends before one that must not be read.
    """

    def __init__(self, store: MasterStore, pages_per_group: int, *, largest_bytes: int | None = None) -> None:
        super().__init__(store, 1, largest_bytes=largest_bytes)
        self.last = self._last_within(pages_per_group)
        """The last page group that begins inside each."""

    def pages_of(self, page_groups: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the first and the last page of each page group."""
        return super().pages_of(page_groups)[0], super().pages_of(self.last[page_groups])[1]

    def overlapping(self, page_group: int) -> range:
        """Return the page groups that share pages with one."""
        return range(int(np.searchsorted(self.last, page_group)), int(self.last[page_group]) + 1)

    def disjoint(self) -> Iterator[int]:
        """Yield page groups that together have every page once, in their order."""
        page_group = 0
        while page_group < self.count:
            yield page_group
            page_group = int(self.last[page_group]) + 1

    def _last_within(self, pages: int) -> Int64Array:
        begun = np.arange(self.count, dtype=np.int64)
        if self._bytes is None:
            return np.minimum(begun + pages, self.count) - 1
        ends = np.cumsum(self._bytes)
        limit = int(ends[-1] / self._store.page_count * pages)
        last = np.maximum(begun, np.searchsorted(ends, ends - self._bytes + limit, side="right") - 1)
        if self._unreadable is not None:
            barriers = np.append(np.flatnonzero(self._unreadable), self.count)
            last = np.maximum(begun, np.minimum(last, barriers[np.searchsorted(barriers, begun)] - 1))
        return last
