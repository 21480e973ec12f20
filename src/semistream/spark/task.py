"""The part of `enrich` that runs in a Python worker: one partition of a micro-batch in, its enriched rows out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from semistream.core.stats import JoinStats
from semistream.engine.output.output_plan import OutputPlan
from semistream.joining.session import typical_row_bytes
from semistream.spark.refused_rows import RefusedRows
from semistream.spark.statistics import TaskStatistics
from semistream.spark.worker import WORKER, HeldJoin, JoinRequest, Order, Session
from semistream.store.address import Address
from semistream.store.contract import StoredTable
from semistream.store.tables import table_at


@dataclass(frozen=True)
class Pin:
    """How tasks find the version of the master table: by the ids of the micro-batch, a name given, or not at all."""

    version: int | None = None
    """The version as of the plan, for a DataFrame that is no stream."""
    owner: str | None = None
    batch: int | None = None
    wanted: bool = True

    def resolve(self, table: StoredTable) -> tuple[int, str, int]:
        """Return the version to read, the id of the query and the number of the batch."""
        owner, batch = self.owner, self.batch
        if owner is None or batch is None:
            owner, batch = _micro_batch()
        if owner and self.wanted:
            return table.pin(owner, batch, self.version), owner, batch
        if self.version is not None:
            return self.version, owner, batch
        if self.wanted:
            warnings.warn(
                "Spark gives no id of the micro-batch here, so the newest version of the master table is read: "
                "pass pin=(name, batch_id) to enrich so that a replay gives the same rows.",
                stacklevel=2,
            )
        return table.current_version(), owner, batch


@dataclass(frozen=True)
class EnrichTask:
    """Enriches the rows of one partition; made on the driver, called by Spark in a worker.

    All rows of the partition are one run of a join. With `order` "input" they leave in the order they came, whatever
    the cache held; with "any" they leave when they are answered, and what waits when the input has ended is answered
    by reads of just the pages it needs. The last row carries the statistics and has nulls in all other columns.
    """

    name: str
    table: Address
    pin: Pin
    algorithm: str
    parameters: dict[str, float]
    order: Order
    plan: OutputPlan
    """Stream columns by their positions; see `positional`."""
    master_schema: pa.Schema
    """The columns that the plan reads, as they were when the query was planned."""
    declared: pa.Schema
    """What Spark was told."""
    memory_bytes: int
    disk_bytes: int | None = None
    """What copies of blocks of the master table may take on the disk of the executor; None for none."""
    stream_names: tuple[str, ...] = ()
    """What users call the columns of the stream."""
    dead_letters: Path | None = None
    """Where rows go that are too large for the memory; without it they are an error."""
    tells_matches: bool = False
    """The last column of the plan is a key of the master table; Spark is told whether there is one."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield enriched rows, and at the end the statistics."""
        stopwatch = _Stopwatch(batches)
        first = next((batch for batch in stopwatch if batch.num_rows), None)
        if first is None:
            owner, batch_id = _micro_batch()
            counted = TaskStatistics.counted(JoinStats(), version=0, **self._described(owner, batch_id, None, 0, 0.0))
            yield self._carrier(counted)
            return
        table = table_at(self.table, disk_bytes=self.disk_bytes)
        version, owner, batch_id = self.pin.resolve(table)
        request = JoinRequest(
            self.table,
            self.algorithm,
            self.parameters,
            self.order,
            _as_streamed(self.plan, first.schema),
            first.schema,
            self.master_schema,
            self.memory_bytes,
        )
        held, session = WORKER.join_for(request, table, version, typical_row_bytes(first, self.memory_bytes))
        before = replace(session.stats)
        rows_out = 0
        finished = False
        refused = None
        if self.dead_letters is not None:
            refused = RefusedRows(self.dead_letters, self.stream_names, owner, batch_id)
        session.dead_letters = refused.put if refused is not None else None
        try:
            for batch in session.run(chain([first], stopwatch)):
                rows_out += batch.num_rows
                with stopwatch.paused():
                    yield self._as_declared(batch)
            if refused is not None:
                refused.commit()
            finished = True
        finally:
            if not finished:
                WORKER.drop(held)
                if refused is not None:
                    refused.discard()
        WORKER.end_task(held)
        counted = TaskStatistics.counted(
            session.stats.since(before),
            version=version,
            **self._described(owner, batch_id, (held, session), rows_out, stopwatch.seconds),
        )
        held.warmed_rows = 0
        yield self._carrier(counted)

    def _as_declared(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        arrived = [*rows.columns[:-1], rows.columns[-1].is_valid()] if self.tells_matches else rows.columns
        columns = [
            column if column.type == declared.type else column.cast(declared.type)
            for column, declared in zip(arrived, list(self.declared)[:-1], strict=True)
        ]
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(rows.num_rows, pa.string())], schema=self.declared)

    def _carrier(self, counted: TaskStatistics) -> pa.RecordBatch:
        nulls = [pa.nulls(1, declared.type) for declared in list(self.declared)[:-1]]
        return pa.RecordBatch.from_arrays([*nulls, pa.array([counted.as_json()])], schema=self.declared)

    def _described(
        self, owner: str, batch_id: int, used: tuple[HeldJoin, Session] | None, rows_out: int, seconds: float
    ) -> dict[str, object]:
        return {
            "name": self.name,
            "query_id": owner,
            "batch_id": batch_id,
            "rows_out": rows_out,
            "seconds": seconds,
            "memory_bytes": used[1].budget.used_bytes if used else 0,
            "budget_bytes": self.memory_bytes,
            "cached_rows": used[0].cached_rows if used else 0,
            "warm_rows": used[0].warmed_rows if used else 0,
        }


def _as_streamed(plan: OutputPlan, stream: pa.Schema) -> OutputPlan:
    """Return the plan with the types that the stream's columns have when they come from Spark."""
    fields = [
        stream.field(index).with_name(planned.name) if not from_master else planned
        for (from_master, index), planned in zip(plan.sources, plan.schema, strict=True)
    ]
    return replace(plan, schema=pa.schema(fields))


def _micro_batch() -> tuple[str, int]:
    """Return the id of the streaming query and the number of its micro-batch, or an empty text and -1."""
    context = TaskContext.get()
    if context is None:
        return "", -1
    owner = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    return (owner, int(batch)) if owner and batch else ("", -1)


class _Stopwatch(Iterator[pa.RecordBatch]):
    """Measures the time a task spends on its own, not in taking batches from Spark or handing them over."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._elsewhere_seconds = 0.0
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time so far."""
        return time.perf_counter() - self._start - self._elsewhere_seconds

    def __next__(self) -> pa.RecordBatch:
        with self.paused():
            return next(self._batches)

    def paused(self) -> _Pause:
        """Return a context whose time is not counted."""
        return _Pause(self)

    def leave_out(self, seconds: float) -> None:
        """Leave some time out of the count."""
        self._elsewhere_seconds += seconds


class _Pause:
    def __init__(self, stopwatch: _Stopwatch) -> None:
        self._stopwatch = stopwatch

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._stopwatch.leave_out(time.perf_counter() - self._since)
