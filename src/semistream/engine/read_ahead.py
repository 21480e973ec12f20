"""Reads what comes next while what came before is joined."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.clock import Clock, ModelClock
from semistream.engine.reader import PartitionReader
from semistream.store.contract import PageSet


class ReadAhead:
    """Reads runs of partitions, and the runs after them already while the caller joins the first.

    On the wall clock a thread reads. On the model clock the disk has a time of its own: a read starts when the disk is
    free and the runs before were handed over, and the caller waits until it is done.
    """

    def __init__(self, reader: PartitionReader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None
        self._loading: tuple[Int64Array, Future[PageSet]] | None = None
        self._disk_free = 0.0
        self._handed_over = 0.0

    def read(self, partitions: Int64Array, following: Int64Array) -> PageSet:
        """Return the pages of ascending partitions, neighbours as one range, and begin to read those that follow."""
        if isinstance(self._clock, ModelClock):
            return self._modelled(self._clock, partitions)
        loading, self._loading = self._loading, None
        if loading is not None and np.array_equal(loading[0], partitions):
            pages = loading[1].result()
        else:
            if loading is not None:
                loading[1].result()  # its memory is counted: never two that nobody asked for
            pages = self._reader.read_runs(partitions)
        if len(following):
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "semistream-ahead")
            self._loading = (following, self._thread.submit(self._reader.read_runs, following))
        return pages

    def close(self) -> None:
        """Wait for the read that is under way and end the thread."""
        self._loading = None
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    def _modelled(self, clock: ModelClock, partitions: Int64Array) -> PageSet:
        with clock.lap() as load:
            pages = self._reader.read_runs(partitions)
        self._disk_free = max(self._disk_free, self._handed_over) + load.seconds
        clock.sleep_until(self._disk_free)
        self._handed_over = clock.now()
        return pages
