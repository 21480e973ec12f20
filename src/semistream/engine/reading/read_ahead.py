"""Reads what comes next while what came before is joined."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from queue import SimpleQueue
from threading import Thread

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.clock import Clock
from semistream.core.measured_costs import MeasuredCosts
from semistream.engine.reading.disk_time import DiskTime
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.reading.joined_pages import JoinedPages
from semistream.engine.reading.loaders import BegunLoad, Load, Loaders
from semistream.engine.reading.page_groups import Runs
from semistream.store.contract import PageSet, PreparedRead

_PART_BYTES = 4_000_000
"""A run is read by several requests only if each of them brings so much: the system parts long ones itself."""
_LATENCY_BYTES = 300_000
"""What comes in the latency of a request, as long as nothing is measured."""


@dataclass(frozen=True)
class _Loading:
    """A read that is under way, in parts that threads read side by side."""

    page_groups: Int64Array
    runs: Runs
    starts: Int64Array
    """Where each part starts among the page groups."""
    parts: Sequence[Load]


class ReadAhead:
    """Reads what comes next while what came before is joined: runs of page groups, or one page group for each buffer.

    Runs: those that follow are read while the caller joins the first. On the wall clock up to `in_flight` requests are
    under way at one time, each in a thread; with 0 nothing is read ahead. Up to `reads` reads are begun ahead of the
    join, so that the bytes of one come while those of another are checked. What reads cost is told to `costs`: seconds
    by the number of requests and of bytes. On the model clock the disk has a time of its own. What follows is asked for
    as soon as the runs before have been joined, so that its latency passes while other bytes are still on their way;
    the caller waits for the last byte of a read. With a disk that serves one request at a time it is asked for when
    those bytes have come.

    Buffers: on the wall clock each buffer that is free can be loaded, by a thread, while the caller joins another. On
    the model clock the buffers have turns: one is loaded, at a latency that they share, while what it brings is joined.
    """

    def __init__(
        self,
        reader: PageGroupReader,
        clock: Clock,
        *,
        in_flight: int = 1,
        reads: int = 1,
        buffers: int = 1,
        costs: MeasuredCosts | None = None,
    ) -> None:
        self.reads = reads
        """How many reads that follow the caller should know."""
        self._reader = reader
        self._disk = DiskTime(clock.model) if clock.model is not None else None
        self._in_flight = in_flight
        self._costs = costs
        self._loaders = Loaders(max(in_flight, buffers))
        self._loading: deque[_Loading] = deque()
        self._asked = 0.0
        """When the expected read was asked for, on the model clock."""
        self._expected: Int64Array | None = None
        self._buffers: list[tuple[Int64Array, Load] | None] = [None] * buffers
        """What each buffer is being loaded with."""
        self._ended: SimpleQueue[Load] = SimpleQueue()
        self._turn = 0

    def read(self, page_groups: Int64Array, following: Sequence[Int64Array]) -> tuple[PageSet, Int64Array]:
        """Return the pages of ascending page groups, neighbours as one range, and begin to read those that follow.

        With the pages comes where each run of neighbours starts among the page groups.
        """
        if self._disk is not None:
            return self._modelled(self._disk, page_groups, following[:1])
        if not self._in_flight:
            runs = self._reader.page_groups.runs(page_groups)
            load = Load(self._reader.prepared_runs(runs).read)
            load.run()
            return self._loaded(_Loading(page_groups, runs, runs.starts[:1], [load])), runs.starts
        while self._loading and not _is_same(self._loading[0].page_groups, page_groups):
            _outcomes(self._loading.popleft())  # its memory is counted: never more than were asked for
        for wanted in [page_groups, *following][len(self._loading) :]:
            self._loading.append(self._begin(wanted))  # its latency passes while the pages of this read come
        loading = self._loading.popleft()
        return self._loaded(loading), loading.runs.starts

    @property
    def is_loading(self) -> bool:
        """Whether a buffer is being loaded."""
        return any(self._buffers)

    def free_buffers(self) -> list[int]:
        """Return the buffers that may be loaded now."""
        if self._disk is not None:
            return [self._turn]
        return [buffer for buffer, loading in enumerate(self._buffers) if loading is None]

    def loading(self) -> tuple[int, ...]:
        """Return the page groups that share pages with what buffers are being loaded with."""
        loading = [self._reader.page_groups.overlapping(int(load[0][0])) for load in self._buffers if load is not None]
        return tuple(chain.from_iterable(loading))

    def load(self, buffer: int, page_group: Int64Array) -> None:
        """Begin to load a page group into a buffer that is free."""
        count = len(self._buffers)
        load = Load(partial(self._reader.read, page_group, in_flight=count), self._ended)
        self._buffers[buffer] = (page_group, load)
        if self._disk is None:
            self._loaders.begin(load)
            return
        with self._disk.reading(self._disk.now()):
            load.run()
        self._turn = (buffer + 1) % count

    def first_loaded(self) -> tuple[Int64Array, PageSet] | None:
        """Wait for the first buffer that is loaded; return its page group and pages, or None if none is loading."""
        if not self.is_loading:
            return None
        load = self._ended.get()
        for buffer, loading in enumerate(self._buffers):
            if loading is not None and loading[1] is load:
                self._buffers[buffer] = None
                return loading[0], _pages(load.outcome())
        raise AssertionError("a load that nobody has begun")

    def end_join(self) -> None:
        """Learn that the pages of the last buffer are joined; what was loaded meanwhile must have come, too."""
        if self._disk is not None:
            self._disk.end_turn(len(self._buffers))

    def close(self, max_seconds: float | None = None) -> None:
        """Wait for the reads that are under way, each for so long at most, and end the threads."""
        # What the store reads by itself comes to its end when it is dropped.
        if max_seconds is None:
            self._loading.clear()
        else:
            dropping = Thread(target=self._loading.clear, name="semistream-drop", daemon=True)
            dropping.start()
            dropping.join(max_seconds)
        self._loaders.close(max_seconds)

    def _begin(self, page_groups: Int64Array) -> _Loading:
        all_runs = self._reader.page_groups.runs
        runs = all_runs(page_groups)
        starts = self._part_starts(page_groups, runs.starts)
        parts = [runs] if len(starts) == 1 else [all_runs(part) for part in np.split(page_groups, starts[1:])]
        loads = [self._begin_load(self._reader.prepared_runs(part)) for part in parts]
        return _Loading(page_groups, runs, starts, loads)

    def _begin_load(self, prepared: PreparedRead) -> Load:
        if prepared.begin():
            return BegunLoad(prepared.read)
        return self._loaders.begin(Load(prepared.read))

    def _part_starts(self, page_groups: Int64Array, runs: Int64Array) -> Int64Array:
        """Part a read, between its runs if there are enough of them, so far as their latencies are worth a thread."""
        size_bytes = len(page_groups) * self._reader.mean_page_group_bytes
        latencies = int(len(runs) * self._latency_bytes() / size_bytes) + 1
        count = min(self._in_flight, len(page_groups), max(min(len(runs), latencies), int(size_bytes / _PART_BYTES)))
        if count <= 1:
            return runs[:1]
        starts = np.arange(count) * len(page_groups) // count
        if len(runs) < count:
            return starts
        return np.unique(runs[np.searchsorted(runs, starts, side="right") - 1])

    def _latency_bytes(self) -> float:
        if self._costs is None:
            return _LATENCY_BYTES
        request_seconds, byte_seconds = self._costs.costs
        return request_seconds / byte_seconds

    def _loaded(self, loading: _Loading) -> PageSet:
        parts = _outcomes(loading)
        if self._costs is not None and all(part.is_timed for part in loading.parts):
            seconds = max(part.ended for part in loading.parts) - min(part.began for part in loading.parts)
            size_bytes = len(loading.page_groups) * self._reader.mean_page_group_bytes
            self._costs.observe(max(len(parts), len(loading.runs.starts)), size_bytes, seconds)
        if len(parts) == 1:
            return parts[0]
        firsts = loading.page_groups[loading.starts[1:]]
        before = loading.page_groups[loading.starts[1:] - 1]
        return JoinedPages(parts, [False, *(firsts == before + 1).tolist()])

    def _modelled(
        self, disk: DiskTime, page_groups: Int64Array, following: Sequence[Int64Array]
    ) -> tuple[PageSet, Int64Array]:
        is_expected = self._expected is not None and np.array_equal(self._expected, page_groups)
        runs = self._reader.page_groups.runs(page_groups)
        with disk.reading(self._asked if is_expected else disk.now()):
            pages = self._reader.read_runs(runs)
        self._asked, self._expected = disk.now(), following[0] if following else None
        disk.wait()
        if not self._in_flight:
            self._expected = None
        elif disk.serves_one:
            self._asked = disk.now()
        return pages, runs.starts


def _is_same(one: Int64Array, other: Int64Array) -> bool:
    return one is other or np.array_equal(one, other)


def _outcomes(loading: _Loading) -> list[PageSet]:
    """Wait for all parts, also where one of them has failed."""
    return [_pages(outcome) for outcome in [part.outcome() for part in loading.parts]]


def _pages(outcome: PageSet | BaseException) -> PageSet:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
