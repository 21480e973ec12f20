"""Measures a join in micro-batches, with or without a waiting room: requests, latency, and the rate it sustains."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from threading import Lock

import numpy as np

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.errors import InvalidSettingError
from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.sizing.ordered_sizes import CHUNK_ROW_BYTES, MAX_CACHE_SHARE, ordered_sizes
from semistream.generator import ZipfKeys
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.point import Point, Row, Scalar
from semistream_lab.micro_batches.due_rows import DueRows, Overdue, Sweep
from semistream_lab.micro_batches.stream import Latencies, MicroBatch, TriggeredStream
from semistream_lab.micro_batches.task import FellBehindError, MicroBatchTask, TaskAssembly

OURS = "demandjoin"
MAX_RATE = 200_000.0
"""Faster streams are not tried: a join that sustains this sustains at least this."""
_FIRST_RATE, _MIN_RATE, _STEP, _HALVINGS = 10_000.0, 10.0, 4.0, 4
_WARM_BATCH_ROWS, _WARM_BATCHES = 100_000, 10
_STREAM_ROW_BYTES = 20
_SETTLING_SECONDS, _MEASURED_SECONDS = 12.0, 10.0
_MAX_SECONDS = 30.0
"""A micro-batch that takes longer than this has fallen behind for good."""


@dataclass(frozen=True)
class _Setting:
    """How rows come and leave."""

    trigger_seconds: float
    max_wait_seconds: float
    """How long rows may wait in a room; 0 without one."""
    rule: str

    @classmethod
    def of(cls, point: Point) -> _Setting:
        rule = str(dict(point.options).get("rule", "sweep"))
        if rule not in ("sweep", "overdue"):
            raise InvalidSettingError(f"There is no rule {rule!r} for a waiting room: choose sweep or overdue.")
        return cls(point.option("trigger", 1.0), point.option("max_wait"), rule)

    def due(self, page_count: int, unit_pages: int) -> DueRows | None:
        """Return what chooses the rows that leave; None without a room."""
        if not self.max_wait_seconds:
            return None
        if self.rule == "sweep":
            return Sweep(self.max_wait_seconds, page_count)
        return Overdue(self.max_wait_seconds, self.trigger_seconds, unit_pages)


def run(point: Point) -> Row:
    """Measure a steady stream of the point's arrival rate, or with 0 find the highest rate that the trigger sustains.

    The options are `trigger` and `max_wait` in seconds, without a room if the latter is 0, and `rule` of the room. The
    join begins with a cache that has seen a million rows. It is one task; Spark's own time is not counted.
    """
    if point.clock != "model":
        raise InvalidSettingError("Waiting rooms are simulated on the model clock: choose --clock model.")
    joining = _Joining(point, _Setting.of(point))
    return joining.at_rate(point.arrival_rate) if point.arrival_rate else joining.sustainable()


class _Joining:
    """One join of a point, with its cache warm."""

    def __init__(self, point: Point, setting: _Setting) -> None:
        self._setting = setting
        self._clock = ModelClock(rates.costs_of(point))
        assembly = _assembly(point, self._clock, cache=_copied(_warm_cache(_for_cache(point))))
        self._stats = assembly.stats
        chunk_rows = None if setting.max_wait_seconds else _chunk_rows(point)
        self._task = MicroBatchTask(assembly, self._clock, chunk_rows=chunk_rows)
        costs, page_bytes = self._clock.costs, rates.PAGE_BYTES
        latency_bytes = costs.seek_seconds / costs.max_in_flight * costs.bytes_per_second
        self._unit_pages = max(1, int(latency_bytes / page_bytes))
        self._page_count = rates.table(point.master_rows).page_count
        # The stream that has warmed the cache goes on: another seed would have other frequent keys.
        self._keys = _keys(point)
        self._keys.seek(_WARM_BATCHES * _WARM_BATCH_ROWS)

    def at_rate(self, rate: float) -> Row:
        """Return what a stream of a rate sees."""
        self._task.max_seconds = _MAX_SECONDS
        try:
            batches = self._batches(rate)
            settled = _until(batches, self._clock.now() + _SETTLING_SECONDS, fewest=1)
            before = copy(self._stats)
            measured = _until(batches, settled[-1].left.ended + _MEASURED_SECONDS, fewest=2)
        except FellBehindError:
            return {"fell_behind": True, "keeps_up": False}
        return _row(measured, self._stats.since(before), self._setting.trigger_seconds)

    def sustainable(self) -> Row:
        """Return the highest rate at which micro-batches take no longer than the trigger, within a tenth."""
        low, high = 0.0, float("inf")
        rate = _FIRST_RATE
        while rate >= _MIN_RATE:
            if self._sustains(rate):
                low = rate
                if rate >= MAX_RATE or high < float("inf"):
                    break
                rate = min(MAX_RATE, rate * _STEP)
            else:
                high = rate
                if low:
                    break
                rate /= _STEP
        for _ in range(_HALVINGS if low and high < float("inf") else 0):
            rate = (low * high) ** 0.5
            low, high = (rate, high) if self._sustains(rate) else (low, rate)
        return {"sustainable_rate": low, "is_limit": low < MAX_RATE}

    def _sustains(self, rate: float) -> bool:
        trigger, max_wait = self._setting.trigger_seconds, self._setting.max_wait_seconds
        self._task.max_seconds = 2 * trigger
        try:
            batches = self._batches(rate)
            for _ in islice(batches, max(1, round(max_wait / trigger) + 1)):
                pass
            measured = list(islice(batches, max(2, round(max_wait / trigger))))
        except FellBehindError:
            return False
        return float(np.mean([batch.seconds for batch in measured])) <= trigger

    def _batches(self, rate: float) -> Iterator[MicroBatch]:
        """Begin a stream of a rate, without rows of an earlier one."""
        self._task.forget()
        self._task.due = self._setting.due(self._page_count, self._unit_pages)
        return TriggeredStream(self._keys, rate, self._setting.trigger_seconds, self._clock).batches(self._task)


def _until(batches: Iterator[MicroBatch], moment: float, *, fewest: int) -> list[MicroBatch]:
    """Return the next micro-batches, up to the first that ends at a moment or later."""
    taken: list[MicroBatch] = []
    while len(taken) < fewest or taken[-1].left.ended < moment:
        taken.append(next(batches))
    return taken


def _row(batches: list[MicroBatch], done: JoinStats, trigger_seconds: float) -> Row:
    rows = sum(batch.rows for batch in batches)
    seconds = [batch.seconds for batch in batches]
    row: dict[str, Scalar] = {
        "fell_behind": False,
        "keeps_up": float(np.mean(seconds)) <= trigger_seconds,
        "micro_batches": len(batches),
        "rows": rows,
        "rows_per_micro_batch": rows / len(batches),
        "micro_batch_seconds": float(np.mean(seconds)),
        "max_micro_batch_seconds": max(seconds),
        "requests_per_row": done.read_requests / rows,
        "bytes_per_row": done.bytes_read / rows,
        "hit_share": done.cache_hits / max(1, done.tuples_out),
        "waiting_rows": max(batch.waiting for batch in batches),
    }
    lefts = [batch.left for batch in batches]
    for name, waits in (
        ("latency", np.concatenate([left.ended - left.events for left in lefts])),
        ("operator_latency", np.concatenate([left.ended - left.arrivals for left in lefts])),
    ):
        of = Latencies.of(waits)
        row |= {f"{name}_p50": of.p50, f"{name}_p99": of.p99, f"{name}_max": of.max}
    return row


def _assembly(point: Point, clock: ModelClock, cache: CacheStage | None = None) -> TaskAssembly:
    return TaskAssembly(
        algorithm_named(point.algorithm),
        rates.table(point.master_rows),
        MemoryBudget(point.memory_bytes),
        clock,
        accounting="papers",
        seed=point.seed,
        parameters=_parameters(point),
        cache=cache,
    )


def _parameters(point: Point) -> dict[str, float]:
    """Return the knobs of the algorithm, for DEMANDJOIN as they are on Spark: one thread, and memory that stays put.

    Without a room its rows leave in the order they came, and what would be the queue is cache.
    """
    given = rates.parameters_of(point)
    if point.algorithm != OURS:
        return given
    ours: dict[str, float] = {"threads": 1, "balance": 0}
    if not point.option("max_wait"):
        ours["cache_share"] = MAX_CACHE_SHARE
    return {**ours, **given}


def _chunk_rows(point: Point) -> int | None:
    """Return how many rows DEMANDJOIN answers at once without a room; None for the others, whose rows wait.

    The product parts a chunk further if the master rows it finds take too much memory, which is left out: that favours
    a stream without a room where the cache answers little.
    """
    if point.algorithm != OURS:
        return None
    store = rates.table(point.master_rows)
    sizes = ordered_sizes(store, MemoryBudget(point.memory_bytes), store.schema)
    return max(1, sizes.chunk_bytes // (CHUNK_ROW_BYTES + _STREAM_ROW_BYTES))


def _keys(point: Point) -> ZipfKeys:
    """Return the keys of the stream, from its beginning."""
    return ZipfKeys(point.master_rows, point.exponent, seed=point.seed, ranks=point.ranks)


def _for_cache(point: Point) -> Point:
    """Return the point without what does not matter to a cache that is being warmed."""
    room = (("max_wait", 1.0),) if point.option("max_wait") else ()
    return replace(point, profile="ssd", factors=(), arrival_rate=0.0, options=room)


@lru_cache(maxsize=8)
def _warm_cache(point: Point) -> CacheStage | None:
    """Return the cache of a join that has answered a stream which catches up, in large micro-batches."""
    clock = ModelClock(rates.costs_of(point))
    assembly = _assembly(point, clock)
    task = MicroBatchTask(assembly, clock)
    keys = _keys(point)
    for _ in range(_WARM_BATCHES):
        task.join(keys.draw(_WARM_BATCH_ROWS), np.zeros(_WARM_BATCH_ROWS))
    return assembly.shared_cache()


def _copied(cache: CacheStage | None) -> CacheStage | None:
    """Return a copy that has a lock of its own."""
    return deepcopy(cache, {id(cache.guard): Lock()}) if cache is not None else None
