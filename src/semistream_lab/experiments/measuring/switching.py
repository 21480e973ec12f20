"""Measures on the wall clock how long OP-CACHEJOIN takes from one full buffer to the next, while one is ready."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue
from semistream.store.contract import PageSet
from semistream.store.wrapping import WrappingStore
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.measuring.observed import measured, watched
from semistream_lab.experiments.measuring.read_log import LoggedChoice, ReadLog
from semistream_lab.experiments.measuring.wall_clock import read_seconds as read_seconds_of
from semistream_lab.experiments.point import Point, Row

_READ_ROWS = 500_000
"""The table in a file, from which reads are timed, has no more rows than this: a read takes as long from any table."""


@dataclass
class _Moments(ReadLog):
    loaded: list[float] = field(default_factory=list)
    """When the pages that are probed had been loaded."""
    asked: list[float] = field(default_factory=list)
    """When the disk phase had seen to the loads and turned to the next buffer."""
    started: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    last_asked: float = 0.0


class _TimedPages(PageSet):
    """Pages that note when they are first looked at, which is when their probe starts."""

    def __init__(self, inside: PageSet, moments: _Moments) -> None:
        self._inside = inside
        self._moments: _Moments | None = moments
        self._loaded = time.perf_counter()
        self.bounds = inside.bounds

    @property
    def codes(self) -> Int64Array:  # type: ignore[override]
        if self._moments is not None:
            self._moments.started.append(time.perf_counter())
            self._moments.loaded.append(self._loaded)
            self._moments.asked.append(self._moments.last_asked)
            self._moments = None
        return self._inside.codes

    def take(self, rows: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        return self._inside.take(rows, columns)

    @property
    def size_bytes(self) -> int:
        return self._inside.size_bytes


class _TimedStore(WrappingStore):
    moments: _Moments

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        return _TimedPages(self.inside.read(first_pages, last_pages), self.moments)


class _TimedChoice(LoggedChoice):
    def __init__(self, inside: PageChoice, moments: _Moments) -> None:
        super().__init__(inside, moments)
        self._moments = moments

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        chosen = super().choose(queue, moment)
        self._moments.last_asked = time.perf_counter()
        return chosen

    def after_read(self, page_group: int, matches: int, queue: Queue) -> None:
        super().after_read(page_group, matches, queue)
        self._moments.ended.append(time.perf_counter())


def run(point: Point) -> Row:
    """Measure switches on a table in memory, where loads are quick and a buffer is ready most of the time.

    What a read of the same size takes is measured on the same clock, on a table in a file.
    """
    moments = _Moments()
    store = _TimedStore(rates.table(point.master_rows))
    store.moments = moments
    result = measured(point, watched(point, lambda inside: _TimedChoice(inside, moments)), store=store, wall=True)
    count = min(len(moments.started), len(moments.ended))
    loaded, asked, started, ended = (
        np.array(instants[:count]) for instants in (moments.loaded, moments.asked, moments.started, moments.ended)
    )
    ready = loaded[1:] < ended[:-1]
    switches = (started - asked)[1:][ready]
    read_bytes = round(result.stats.bytes_read / max(1, result.stats.read_requests))
    read_seconds, direct = read_seconds_of(min(point.master_rows, _READ_ROWS), read_bytes, seed=point.seed)
    return {
        "switches": len(ready),
        "ready_share": float(ready.mean()),
        "switch_seconds": float(np.median(switches)),
        "probe_seconds": float(np.median(ended - started)),
        "read_seconds": read_seconds,
        "direct": direct,
    }
