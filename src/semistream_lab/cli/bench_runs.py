"""Runs a bench: one measurement after the other, each on the same master table and the same stream."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field

import pyarrow as pa

from semistream.algorithms.registry import ALGORITHMS
from semistream.cli.json_output import Scalar
from semistream.cli.progress import Progress
from semistream.core.arrays import Int64Array
from semistream.core.budget import format_bytes
from semistream.core.errors import BudgetTooSmallError
from semistream.engine.recipe import Recipe
from semistream.engine.sizing.sizes import ROW_SHARE
from semistream.generator import Workload
from semistream.joining import join
from semistream.store.contract import MasterStore
from semistream_lab.cli import bench_keys, bench_tables
from semistream_lab.cli.bench_plan import BenchPlan, ClockKind
from semistream_lab.cost import Situation, tuned_parameters
from semistream_lab.cost.profile_files import find_profile
from semistream_lab.measurement import WITHOUT_A_QUEUE, Measurement, measure

_BATCH_ROWS = 1 << 14
_STREAM_PAYLOAD_BYTES = 12
_LONGEST_STREAM_TUPLES = 1 << 33
_WARM_UP_QUEUES = 3
_MAX_WARM_UP_QUEUES = 60


@dataclass(frozen=True)
class Result:
    """What was measured of one algorithm."""

    plan: BenchPlan
    table: TableSize
    algorithm: str
    measurement: Measurement

    def row(self) -> dict[str, Scalar]:
        """Return the result as one flat object."""
        plan, table, measured, stats = self.plan, self.table, self.measurement, self.measurement.stats
        return {
            "algorithm": self.algorithm,
            "clock": plan.clock.value,
            "accounting": plan.accounting.value,
            "profile": plan.profile,
            "store": plan.store.value,
            "direct": plan.direct,
            "payload": plan.payload,
            "master_rows": table.rows,
            "row_bytes": table.row_bytes,
            "page_bytes": table.page_bytes,
            "memory_bytes": plan.memory_bytes,
            "zipf": plan.zipf,
            "ranks": plan.ranks.value,
            "absent_share": plan.absent,
            "tuned": plan.tuned,
            "tuples": stats.tuples_out,
            "seconds": measured.seconds,
            "service_rate": measured.service_rate,
            "cache_hits": stats.cache_hits,
            "read_hits": stats.read_hits,
            "absent": stats.absent,
            "iterations": stats.iterations,
            "page_reads": stats.page_reads,
            "read_requests": stats.read_requests,
            "bytes_read": stats.bytes_read,
            "peak_memory_bytes": measured.peak_memory_bytes,
            "mean_wait_seconds": stats.mean_wait_seconds,
            "max_wait_seconds": stats.max_wait_seconds,
            "waiting_slots": measured.waiting_slots,
            "warm_up_tuples": measured.warm_up_tuples,
            "long_enough": measured.is_long_enough,
            "wall_seconds": measured.wall_seconds,
            "seed": plan.seed,
        }


@dataclass(frozen=True)
class TableSize:
    """How big the master table of a bench is."""

    rows: int
    row_bytes: int
    page_bytes: int

    @classmethod
    def of(cls, store: MasterStore) -> TableSize:
        """Return the mean sizes of a store."""
        total = store.size_bytes
        return cls(store.row_count, round(total / store.row_count), round(total / store.page_count))


@dataclass
class Results:
    """What a bench has measured so far."""

    plan: BenchPlan
    table: TableSize
    measured: list[Result] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Why algorithms of the whole family could not run."""


def run(plan: BenchPlan, progress: Progress) -> Results:
    """Measure every algorithm of the plan."""
    with ExitStack() as cleanup:
        store = bench_tables.open_table(plan, progress, cleanup)
        _check_pages(store, plan.memory_bytes)
        table_keys = bench_tables.keys_of(store, progress) if plan.master is not None else None
        size = TableSize(plan.master_rows, plan.row_bytes, plan.page_bytes)
        results = Results(plan, TableSize.of(store) if plan.master is not None else size)
        bench = _Bench(plan, store, table_keys, progress)
        for number, name in enumerate(plan.algorithms, 1):
            what = f"{name} ({number} of {len(plan.algorithms)})" if len(plan.algorithms) > 1 else name
            try:
                measurement = bench.measure(ALGORITHMS[name], what)
            except BudgetTooSmallError as error:
                results.left_out[name] = str(error)
                if not plan.whole_family or len(results.left_out) == len(plan.algorithms):
                    raise
                continue
            results.measured.append(Result(plan, results.table, name, measurement))
        return results


def _check_pages(store: MasterStore, memory_bytes: int) -> None:
    """Refuse pages that no join of this memory may read, so that no tuple waits for them for ever."""
    needed = store.largest_page_bytes * ROW_SHARE
    if needed > memory_bytes:
        raise BudgetTooSmallError(
            f"{format_bytes(memory_bytes)} of memory is too little for pages of "
            f"{format_bytes(store.largest_page_bytes)}: give at least {format_bytes(needed * 1.01)}."
        )


class _Bench:
    """One master table and one stream, for one algorithm after the other."""

    def __init__(self, plan: BenchPlan, store: MasterStore, table_keys: Int64Array | None, progress: Progress) -> None:
        self._plan = plan
        self._store = store
        self._table_keys = table_keys
        self._progress = progress
        self._drawn: Int64Array | None = None
        self._batches: list[pa.RecordBatch] = []
        if plan.clock is ClockKind.WALL:
            progress.update("Drawing the keys of the stream", 0, None)
            self._drawn = bench_keys.draw_all(plan, bench_keys.key_source(plan, table_keys))
        if plan.payload:
            self._batches = self._stream_batches()

    def measure(self, recipe: Recipe, what: str) -> Measurement:
        """Measure one algorithm."""
        self._progress.update(f"{what}, warming up", 0, None)
        if self._plan.payload:
            return self._measure_batches(recipe, what)
        plan = self._plan
        keys = (
            bench_keys.key_source(plan, self._table_keys) if self._drawn is None else bench_keys.DrawnKeys(self._drawn)
        )
        return measure(
            recipe,
            self._store,
            Workload(keys),
            memory=plan.memory_bytes,
            tuples=plan.tuples or 0,
            seconds=plan.seconds,
            profile=find_profile(plan.profile or "papers") if plan.clock is ClockKind.MODEL else None,
            accounting=plan.accounting.value,
            seed=plan.seed,
            parameters=self._parameters(recipe),
            progress=self._reporting(what),
        )

    def _parameters(self, recipe: Recipe) -> dict[str, float]:
        plan, given = self._plan, self._plan.parameters_of(recipe.parameters)
        if not plan.tuned:
            return given
        size = TableSize.of(self._store)
        situation = Situation(
            size.rows,
            plan.memory_bytes,
            plan.zipf,
            plan.ranks.value,
            row_bytes=size.row_bytes,
            page_bytes=size.page_bytes,
            accounting=plan.accounting.value,
        )
        costs = find_profile(plan.profile or ("papers" if plan.clock is ClockKind.MODEL else "ssd"))
        return {**tuned_parameters(recipe.name, situation, costs), **given}

    def _reporting(self, what: str) -> Callable[[int, int], None]:
        plan, update = self._plan, self._progress.update
        if plan.seconds is None:
            return lambda done, _: update(what, done, plan.tuples)
        if plan.clock is ClockKind.MODEL:
            return lambda done, _: update(what, done, None)
        seconds, began = math.ceil(plan.seconds), time.perf_counter()
        return lambda _, __: update(f"{what}, seconds", int(time.perf_counter() - began), seconds)

    def _stream_batches(self) -> list[pa.RecordBatch]:
        assert self._drawn is not None
        workload = Workload(bench_keys.DrawnKeys(self._drawn))
        key = self._store.schema.field(self._store.key[0])
        batches = workload.batches(_BATCH_ROWS, len(self._drawn), _STREAM_PAYLOAD_BYTES, key_name=key.name)
        schema = pa.schema([pa.field(key.name, key.type), pa.field("tuple", pa.binary(_STREAM_PAYLOAD_BYTES))])
        return [
            pa.RecordBatch.from_arrays([batch.column(0).cast(key.type), batch.column(1)], schema=schema)
            for batch in batches
        ]

    def _measure_batches(self, recipe: Recipe, what: str) -> Measurement:
        """Measure the join of Arrow batches as users call it.

        The queue is not to be seen from here: it is taken to hold the most tuples that were inside at one time.
        """
        plan = self._plan
        repeats = _LONGEST_STREAM_TUPLES // sum(batch.num_rows for batch in self._batches) + 1
        began = time.perf_counter()
        joined = join(
            self._batches * repeats,
            self._store,
            on=self._store.key[0],
            how="left" if plan.absent else "inner",
            algorithm=recipe.name,
            memory=plan.memory_bytes,
            suffix="_master",
            parameters=self._parameters(recipe),
            seed=plan.seed,
        )
        inside = 0
        for _ in joined:
            stats = joined.stats
            inside = max(inside, stats.tuples_in - stats.tuples_out)
            if stats.read_hits + stats.absent >= _WARM_UP_QUEUES * inside:
                break
            if stats.tuples_out >= _MAX_WARM_UP_QUEUES * inside:
                break
        before, started = copy(joined.stats), time.perf_counter()
        report = self._reporting(what)
        for _ in joined:
            stats = joined.stats
            inside = max(inside, stats.tuples_in - stats.tuples_out)
            done = stats.tuples_out - before.tuples_out
            report(done, 0)
            if plan.seconds is not None and time.perf_counter() - started >= plan.seconds:
                break
            if plan.tuples is not None and done >= plan.tuples:
                break
        after, ended = copy(joined.stats), time.perf_counter()
        joined.close()
        return Measurement(
            after.since(before),
            ended - started,
            inside,
            before.tuples_out,
            ended - began,
            peak_memory_bytes=sum(after.memory_bytes.values()),
            fills_a_queue=recipe.name not in WITHOUT_A_QUEUE,
        )
