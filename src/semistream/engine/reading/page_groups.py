"""Groups the pages of a master table into page groups: what one read brings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream.store.contract import MasterStore
from semistream.store.sparse_index import SparseIndex

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Runs:
    """Ascending page groups as runs of neighbours, each of which one request reads."""

    starts: Int64Array
    """Where each run starts among the page groups."""
    first_pages: Int64Array
    last_pages: Int64Array
    page_count: int


class PageGroups:
    """Neighbouring pages, about `read_bytes` together.

    Where pages are of about one size, a page group is a fixed number of them. Where some are much larger, groups are
    cut by bytes; a page above `largest_bytes` is a page group of its own that must not be read. Codes are located by an
    index of the first code of each page group, if the store tells them.
    """

    def __init__(self, store: MasterStore, pages_per_group: int, *, largest_bytes: int | None = None) -> None:
        self._store = store
        self._pages = pages_per_group
        self._starts: Int64Array | None = None
        self._unreadable: BoolArray | None = None
        self._bytes: Int64Array | None = None
        """What a read of each page group transfers, where they differ much."""
        self._index: SparseIndex | None = None
        self.count = -(-store.page_count // pages_per_group)
        if largest_bytes is not None and store.page_count:
            mean = store.range_bytes(0, store.page_count - 1) / store.page_count
            if store.largest_page_bytes > min(largest_bytes, max(4 * mean, mean * pages_per_group)) or self._is_uneven(
                mean
            ):
                self._cut_by_bytes(int(mean * pages_per_group), largest_bytes)
        first_codes = store.first_codes
        if first_codes is not None and self.count > 1:
            starts = np.arange(0, store.page_count, pages_per_group) if self._starts is None else self._starts[:-1]
            self._index = SparseIndex(first_codes[starts])

    @property
    def size_bytes(self) -> int:
        """The memory of the map."""
        starts = 0 if self._starts is None else self._starts.nbytes
        return starts + (self._index.size_bytes if self._index is not None else 0)

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the page group that has the row of each code, if any has."""
        if self._index is not None:
            return self._index.locate(codes)
        pages = self._store.locate(codes)
        if self._starts is not None:
            return (np.searchsorted(self._starts, pages, side="right") - 1).astype(np.int32)
        if self._pages > 1:
            pages //= np.int32(self._pages)
        return pages

    def pages_of(self, page_groups: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the first and the last page of each page group."""
        if self._starts is not None:
            return self._starts[page_groups], self._starts[page_groups + 1] - 1
        first = page_groups * self._pages
        return first, np.minimum(first + self._pages, self._store.page_count) - 1

    def runs(self, page_groups: Int64Array) -> Runs:
        """Return the runs of ascending page groups."""
        starts, first, last = np.empty((3, len(page_groups)), dtype=np.int64)
        bounds = _NONE if self._starts is None else self._starts
        count, pages = _find_runs(page_groups, self._pages, self._store.page_count, bounds, starts, first, last)
        return Runs(starts[:count], first[:count], last[:count], pages)

    def holding(self, pages: Int64Array) -> Int64Array:
        """Return the page group that each page belongs to."""
        if self._starts is not None:
            return np.searchsorted(self._starts, pages, side="right").astype(np.int64) - 1
        return pages // self._pages

    def overlapping(self, page_group: int) -> range:
        """Return the page groups that share pages with one: itself alone."""
        return range(page_group, page_group + 1)

    def disjoint(self) -> Iterable[int]:
        """Yield page groups that together have every page once, in their order: all of them."""
        return range(self.count)

    def unreadable(self, page_groups: Int32Array | Int64Array) -> BoolArray | None:
        """Say which page groups are too large to read; None if none of the table is."""
        return None if self._unreadable is None else self._unreadable[page_groups]

    def within(self, page_groups: Int64Array, limit_bytes: int) -> list[Int64Array]:
        """Cut ascending page groups so that a read of each part transfers no more, but for single page groups."""
        if self._bytes is None or len(page_groups) <= 1:
            return [page_groups]
        ends = np.cumsum(self._bytes[page_groups])
        if ends[-1] <= limit_bytes:
            return [page_groups]
        parts, start = [], 0
        while start < len(page_groups):
            before = int(ends[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + limit_bytes, side="right")))
            parts.append(page_groups[start:end])
            start = end
        return parts

    def _is_uneven(self, mean_bytes: float) -> bool:
        """Say whether some page groups of as many pages as the others would be much larger."""
        if self._store.largest_page_bytes <= 1.5 * mean_bytes:
            return False
        starts = np.arange(0, self._store.page_count, self._pages)
        largest = np.add.reduceat(self._store.page_bytes(), starts).max()
        return bool(largest > 1.25 * mean_bytes * self._pages)

    def _cut_by_bytes(self, read_bytes: int, largest_bytes: int) -> None:
        sizes = self._store.page_bytes().tolist()
        starts, unreadable = [0], []
        held = 0
        for page, size in enumerate(sizes):
            if held and (held + size > max(read_bytes, 1) or size > largest_bytes):
                starts.append(page)
                unreadable.append(False)
                held = 0
            held += size
            if size > largest_bytes:
                starts.append(page + 1)
                unreadable.append(True)
                held = 0
        if held:
            starts.append(len(sizes))
            unreadable.append(False)
        self._starts = np.array(starts, dtype=np.int64)
        self._bytes = np.add.reduceat(np.array(sizes, dtype=np.int64), self._starts[:-1])
        self.count = len(starts) - 1
        if any(unreadable):
            self._unreadable = np.array(unreadable)


@kernel
def _find_runs(
    page_groups: Int64Array,
    pages: int,
    page_count: int,
    bounds: Int64Array,
    starts: Int64Array,
    first_pages: Int64Array,
    last_pages: Int64Array,
) -> tuple[int, int]:
    """Fill the last three arrays; return the number of runs and of all their pages.

    A page group has so many `pages`, or if there are `bounds` those between two of them.
    """
    count, pages_in_runs = 0, 0
    for index in range(page_groups.shape[0]):
        page_group = page_groups[index]
        if bounds.shape[0]:
            first, after = bounds[page_group], bounds[page_group + 1]
        else:
            first = page_group * pages
            after = min(first + pages, page_count)
        if index == 0 or page_group - page_groups[index - 1] > 1:
            starts[count] = index
            first_pages[count] = first
            count += 1
        last_pages[count - 1] = after - 1
        pages_in_runs += after - first
    return count, pages_in_runs
