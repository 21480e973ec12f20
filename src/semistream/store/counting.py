"""Counts what is read from a store."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from semistream.core.arrays import Int64Array
from semistream.store.contract import MasterStore, PageSet
from semistream.store.wrapping import WrappingStore


@dataclass
class ReadCounts:
    """What was read so far."""

    requests: int = 0
    """Ranges of pages, each read by one request."""
    pages: int = 0
    bytes: int = 0


class CountingStore(WrappingStore):
    """Shows another store and counts the requests, pages and bytes of its reads; safe in several threads.

    With `log` it also remembers the first and last page of each request, in order.
    """

    def __init__(self, inside: MasterStore, *, log: bool = False) -> None:
        super().__init__(inside)
        self.counts = ReadCounts()
        self.log: list[tuple[int, int]] | None = [] if log else None
        self._lock = Lock()

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Read ranges of pages and count them if that succeeds."""
        pages = self.inside.read(first_pages, last_pages)
        ranges = list(zip(first_pages.tolist(), last_pages.tolist(), strict=True))
        size_bytes = self.inside.ranges_bytes(first_pages, last_pages)
        with self._lock:
            self.counts.requests += len(ranges)
            self.counts.pages += int((last_pages - first_pages + 1).sum())
            self.counts.bytes += size_bytes
            if self.log is not None:
                self.log.extend(ranges)
        return pages
