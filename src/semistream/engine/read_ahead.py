"""Reads what comes next while what came before is joined."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.clock import Clock, ModelClock
from semistream.engine.joined_pages import JoinedPages
from semistream.engine.loaders import Load, Loaders
from semistream.engine.measured_costs import MeasuredCosts
from semistream.engine.partitions import Runs
from semistream.engine.reader import PartitionReader
from semistream.store.contract import PageSet

_PART_BYTES = 4_000_000
"""A run is read by several requests only if each of them brings so much: the system parts long ones itself."""
_LATENCY_BYTES = 300_000
"""What comes in the latency of a request, as long as nothing is measured."""


@dataclass(frozen=True)
class _Loading:
    """A read that is under way, in parts that threads read side by side."""

    partitions: Int64Array
    runs: Runs
    starts: Int64Array
    """Where each part starts among the partitions."""
    parts: Sequence[Load]


class ReadAhead:
    """Reads runs of partitions, and the runs after them already while the caller joins the first.

    On the wall clock up to `in_flight` requests are under way at one time, each in a thread; with 0 nothing is read
    ahead. Up to `reads` reads are begun ahead of the join, so that the bytes of one come while those of another are
    checked. What reads cost is told to `costs`: seconds by the number of requests and of bytes. On the model clock the
    disk has a time of its own. What follows is asked for as soon as the runs before have been joined, so that its
    latency passes while other bytes are still on their way; bytes come one after the other, and the caller waits for
    the last of a read. With a disk that serves one request at a time it is asked for when those bytes have come.
    """

    def __init__(
        self,
        reader: PartitionReader,
        clock: Clock,
        *,
        in_flight: int = 1,
        reads: int = 1,
        costs: MeasuredCosts | None = None,
    ) -> None:
        self.reads = reads
        """How many reads that follow the caller should know."""
        self._reader = reader
        self._clock = clock
        self._in_flight = in_flight
        self._costs = costs
        self._loaders = Loaders(in_flight)
        self._loading: deque[_Loading] = deque()
        self._disk_free = 0.0
        self._asked = 0.0
        self._expected: Int64Array | None = None

    def read(self, partitions: Int64Array, following: Sequence[Int64Array]) -> tuple[PageSet, Int64Array]:
        """Return the pages of ascending partitions, neighbours as one range, and begin to read those that follow.

        With the pages comes where each run of neighbours starts among the partitions.
        """
        if isinstance(self._clock, ModelClock):
            return self._modelled(self._clock, partitions, following[:1])
        if not self._in_flight:
            runs = self._reader.partitions.runs(partitions)
            load = Load(self._reader.prepared_runs(runs))
            load.run()
            return self._loaded(_Loading(partitions, runs, runs.starts[:1], [load])), runs.starts
        while self._loading and not _is_same(self._loading[0].partitions, partitions):
            _outcomes(self._loading.popleft())  # its memory is counted: never more than were asked for
        for some in [partitions, *following][len(self._loading) :]:
            self._loading.append(self._begin(some))  # its latency passes while the pages of this read come
        loading = self._loading.popleft()
        return self._loaded(loading), loading.runs.starts

    def close(self) -> None:
        """Wait for the reads that are under way and end the threads."""
        self._loading.clear()
        self._loaders.close()

    def _begin(self, partitions: Int64Array) -> _Loading:
        all_runs = self._reader.partitions.runs
        runs = all_runs(partitions)
        starts = self._part_starts(partitions, runs.starts)
        parts = [runs] if len(starts) == 1 else [all_runs(part) for part in np.split(partitions, starts[1:])]
        loads = [self._loaders.begin(self._reader.prepared_runs(part)) for part in parts]
        return _Loading(partitions, runs, starts, loads)

    def _part_starts(self, partitions: Int64Array, runs: Int64Array) -> Int64Array:
        """Part a read, between its runs if there are enough of them, so far as their latencies are worth a thread."""
        size_bytes = len(partitions) * self._reader.mean_partition_bytes
        latencies = int(len(runs) * self._latency_bytes() / size_bytes) + 1
        count = min(self._in_flight, len(partitions), max(min(len(runs), latencies), int(size_bytes / _PART_BYTES)))
        if count <= 1:
            return runs[:1]
        starts = np.arange(count) * len(partitions) // count
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
        if self._costs is not None:
            seconds = max(part.ended for part in loading.parts) - min(part.began for part in loading.parts)
            size_bytes = len(loading.partitions) * self._reader.mean_partition_bytes
            self._costs.observe(max(len(parts), len(loading.runs.starts)), size_bytes, seconds)
        if len(parts) == 1:
            return parts[0]
        firsts = loading.partitions[loading.starts[1:]]
        before = loading.partitions[loading.starts[1:] - 1]
        return JoinedPages(parts, [False, *(firsts == before + 1).tolist()])

    def _modelled(
        self, clock: ModelClock, partitions: Int64Array, following: Sequence[Int64Array]
    ) -> tuple[PageSet, Int64Array]:
        is_expected = self._expected is not None and np.array_equal(self._expected, partitions)
        asked = self._asked if is_expected else clock.moment()
        before = clock.operations.bytes_read
        with clock.lap() as load:
            runs = self._reader.partitions.runs(partitions)
            pages = self._reader.read_runs(runs)
        transfer_seconds = (clock.operations.bytes_read - before) / clock.costs.bytes_per_second
        arrival = asked + load.seconds - transfer_seconds
        self._disk_free = max(arrival, self._disk_free) + transfer_seconds
        self._asked, self._expected = clock.moment(), following[0] if following else None
        clock.sleep_until(self._disk_free)
        if not self._in_flight:
            self._expected = None
        elif clock.costs.max_in_flight == 1:
            self._asked = clock.moment()
        return pages, runs.starts


def _is_same(one: Int64Array, other: Int64Array) -> bool:
    return one is other or np.array_equal(one, other)


def _outcomes(loading: _Loading) -> list[PageSet]:
    """Wait for all parts, also where one of them has failed."""
    outcomes = [part.outcome() for part in loading.parts]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if isinstance(outcome, PageSet)]
