"""Makes a store slow in a controlled way, to stand for a slower disk or a far database."""

from __future__ import annotations

import time
from collections.abc import Callable

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.store.contract import MasterStore, PageSet
from semistream.store.wrapping import WrappingStore


class ThrottlingStore(WrappingStore):
    """Shows another store; each request waits `latency_seconds`, and bytes pass at most at `bytes_per_second`.

    The wait comes on top of the read itself. Threads that read at the same time wait at the same time.
    """

    def __init__(
        self,
        inside: MasterStore,
        *,
        latency_seconds: float = 0.0,
        bytes_per_second: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if latency_seconds < 0 or (bytes_per_second is not None and bytes_per_second <= 0):
            raise InvalidSettingError("A latency must not be negative and a bandwidth must be positive.")
        super().__init__(inside)
        self._latency_seconds = latency_seconds
        self._bytes_per_second = bytes_per_second
        self._sleep = sleep

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Wait for the requests and the bytes of these ranges, then read them."""
        seconds = self._latency_seconds * len(first_pages)
        if self._bytes_per_second is not None:
            seconds += self.inside.ranges_bytes(first_pages, last_pages) / self._bytes_per_second
        if seconds > 0:
            self._sleep(seconds)
        return self.inside.read(first_pages, last_pages)
