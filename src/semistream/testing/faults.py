"""A store whose reads fail or are slow when they are told to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock

import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.store.contract import MasterStore, PageSet
from semistream.store.wrapping import WrappingStore


class InjectedFaultError(Exception):
    """A fault that a test asked for."""


class FaultyStore(WrappingStore):
    """Shows another store; one read fails, and each read may be delayed.

    Reads are counted from 1. `fail_on_read` names the read that raises, `fail_on_take` the read whose pages raise when
    rows are taken from them, which is how a page fails that is decoded late. `delay_seconds` passes before each read
    and, where it is to fail, before the take. Safe in several threads.
    """

    def __init__(
        self,
        inside: MasterStore,
        *,
        fail_on_read: int | None = None,
        fail_on_take: int | None = None,
        delay_seconds: float = 0.0,
        error: Callable[[str], Exception] = InjectedFaultError,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(inside)
        self.reads = 0
        """The reads that were asked for so far."""
        self._fail_on_read = fail_on_read
        self._fail_on_take = fail_on_take
        self._delay_seconds = delay_seconds
        self._error = error
        self._sleep = sleep
        self._lock = Lock()

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Read, unless this is the read that fails."""
        with self._lock:
            self.reads += 1
            number = self.reads
        if self._delay_seconds:
            self._sleep(self._delay_seconds)
        if number == self._fail_on_read:
            raise self._error(f"read {number} was set to fail")
        pages = self.inside.read(first_pages, last_pages)
        if number == self._fail_on_take:
            return _UndecodablePages(pages, lambda: self._fail_late(number))
        return pages

    def _fail_late(self, number: int) -> None:
        if self._delay_seconds:
            self._sleep(self._delay_seconds)
        raise self._error(f"the pages of read {number} were set to fail")


class _UndecodablePages(PageSet):
    def __init__(self, inside: PageSet, fail: Callable[[], None]) -> None:
        self.codes = inside.codes
        self.bounds = inside.bounds
        self._inside = inside
        self._fail = fail

    def take(self, rows: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        self._fail()
        return self._inside.take(rows, columns)

    @property
    def size_bytes(self) -> int:
        return self._inside.size_bytes
