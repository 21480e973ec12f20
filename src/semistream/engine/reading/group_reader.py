"""Reads page groups of the master table."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.clock import Clock
from semistream.core.costs import Operations
from semistream.core.stats import JoinStats
from semistream.engine.reading.modelled_requests import overlapped, requested_ranges
from semistream.engine.reading.page_groups import PageGroups, Runs
from semistream.engine.waiting.waiting_tuples import Drained
from semistream.store.contract import MasterStore, PageSet, PreparedRead

_NONE = np.empty(0, dtype=np.int64)


class PageGroupReader:
    """Reads page groups, one request each, counting and charging each read. May be called from several threads."""

    def __init__(self, store: MasterStore, page_groups: PageGroups, clock: Clock, stats: JoinStats) -> None:
        self.page_groups = page_groups
        self._store = store
        self._clock = clock
        self._stats = stats
        self._lock = Lock()
        pages = store.page_count
        self._mean_page_group_bytes = store.range_bytes(0, pages - 1) / max(1, page_groups.count) if pages else 1.0

    @property
    def page_group_count(self) -> int:
        """The page groups of the table."""
        return self.page_groups.count

    @property
    def can_read_all(self) -> bool:
        """Whether no page group is too large to read."""
        return self.page_groups.unreadable(_NONE) is None

    @property
    def mean_page_group_bytes(self) -> float:
        """What a read of a page group transfers in the mean."""
        return self._mean_page_group_bytes

    def page_group_bytes(self, page_groups: Int32Array) -> int:
        """Return what a read of the largest of some page groups transfers."""
        first, last = self.page_groups.pages_of(np.unique(page_groups).astype(np.int64))
        return max(map(self._store.range_bytes, first.tolist(), last.tolist()))

    def readable(self) -> Iterator[int]:
        """Yield page groups that are not too large to read and that share no page, in their order."""
        for page_group in self.page_groups.disjoint():
            unreadable = self.page_groups.unreadable(np.array([page_group]))
            if unreadable is None or not unreadable[0]:
                yield page_group

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the page group that has the row of each code, if any has."""
        return self.page_groups.locate(codes)

    def read(self, page_groups: Int64Array, *, sequential: bool = False, in_flight: int = 1) -> PageSet:
        """Read page groups, in the order given.

        `sequential` says that the read continues the one before; `in_flight` how many such reads run side by side, so
        that their latencies overlap, and their bytes where they do not share the bandwidth.
        """
        first, last = self.page_groups.pages_of(page_groups)
        return self._read(first, last, continued=sequential and page_groups[0] > 0, in_flight=in_flight)

    def read_runs(self, runs: Runs) -> PageSet:
        """Read runs of page groups, each by one request and as one range."""
        return self._read(runs.first_pages, runs.last_pages, continued=False, in_flight=len(runs.starts))

    def prepared_runs(self, runs: Runs) -> PreparedRead:
        """Return what does `read_runs` when it is called, perhaps in another thread; the read is counted already."""
        prepared = self._store.prepared_read(runs.first_pages, runs.last_pages)
        self._count(len(runs.starts), runs.page_count, prepared.size_bytes)
        return prepared

    def read_demanded(
        self, drained: Drained, read_bytes: int, *, across: bool
    ) -> Iterator[tuple[Int64Array, PageSet, Drained]]:
        """Read only the pages that tuples need, in the order of the table and about `read_bytes` at a time.

        Yields the page group of each range that was read, the ranges, and the tuples that need them; neighbouring pages
        of one page group, or with `across` of any, are one range and one request.
        """
        located = self._store.locate(drained.codes)
        order = np.argsort(located, kind="stable")
        pages = located[order].astype(np.int64)
        starts = np.flatnonzero(np.diff(pages, prepend=-1))
        needed = pages[starts]
        step = self._pages_within(needed, read_bytes)
        for begin in range(0, len(needed), step):
            part = needed[begin : begin + step]
            page_groups = self.page_groups.holding(part)
            parted = np.diff(part, prepend=-2) > 1
            breaks = np.flatnonzero(parted if across else parted | (np.diff(page_groups, prepend=-1) > 0))
            first, last = part[breaks], part[np.append(breaks[1:], len(part)) - 1]
            end = int(starts[begin + step]) if begin + step < len(needed) else len(order)
            chosen = order[starts[begin] : end]
            bounds = np.append(starts[begin + breaks], end) - starts[begin]
            needing = Drained(drained.codes[chosen], drained.references[chosen], bounds)
            yield page_groups[breaks], self._read_scattered(part, first, last), needing

    def _pages_within(self, pages: Int64Array, read_bytes: int) -> int:
        """Return how many of some pages may be read at once."""
        largest = self._store.largest_page_bytes
        if len(pages) and largest * 4 > read_bytes:
            largest = max(self._store.range_bytes(page, page) for page in pages.tolist())
        return max(1, read_bytes // max(1, largest))

    def _read_scattered(self, pages: Int64Array, first: Int64Array, last: Int64Array) -> PageSet:
        """Read pages all over the table, given as ranges, too; a store brings near ones together."""
        model = self._clock.model
        if model is None:
            return self._read(first, last, continued=False, in_flight=1)
        asked_first, asked_last = requested_ranges(pages, model.costs, self._store)
        size_bytes = self._store.ranges_bytes(asked_first, asked_last)
        self._count(len(asked_first), len(pages), size_bytes)
        latencies, transferred = overlapped(len(asked_first), size_bytes, len(asked_first), model.costs)
        model.charge(Operations(seeks=latencies, bytes_read=transferred))
        return self._store.read(first, last)

    def _read(self, first: Int64Array, last: Int64Array, *, continued: bool, in_flight: int) -> PageSet:
        pages = self._store.read(first, last)
        size_bytes = self._store.ranges_bytes(first, last)
        self._count(len(first), int((last - first).sum()) + len(first), size_bytes)
        model = self._clock.model
        if model is not None:
            latencies, transferred = overlapped(len(first), size_bytes, in_flight, model.costs)
            model.charge(
                Operations(
                    seeks=0 if continued else latencies,
                    continuations=latencies if continued else 0,
                    bytes_read=transferred,
                )
            )
        return pages

    def _count(self, requests: int, pages: int, size_bytes: int) -> None:
        stats = self._stats
        with self._lock:
            stats.read_requests += requests
            stats.page_reads += pages
            stats.bytes_read += size_bytes
