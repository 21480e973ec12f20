"""The part of `enrich` that runs in a Python worker: one partition of a micro-batch in, its enriched rows out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from semistream.core.stats import JoinStats
from semistream.engine.output_plan import OutputPlan
from semistream.joining import JoinSession
from semistream.joining.session import typical_row_bytes
from semistream.spark.statistics import TaskStatistics
from semistream.spark.worker import WORKER, HeldJoin, JoinRequest
from semistream.store.paged_file import pins

_OUTPUT_ROWS = 32_768
_ROW = pa.field("row", pa.int64(), nullable=False)
JOIN_SHARE = 0.75
"""What the join itself has of the memory; the rest holds a chunk of rows, before and after it is joined."""


@dataclass(frozen=True)
class Pin:
    """How tasks find the version of the master table: by the ids of the micro-batch, a name given, or not at all."""

    version: int | None = None
    """The version as of the plan, for a DataFrame that is no stream."""
    owner: str | None = None
    batch: int | None = None
    wanted: bool = True

    def resolve(self, table: Path) -> tuple[int, str, int]:
        """Return the version to read, the id of the query and the number of the batch."""
        owner, batch = self.owner, self.batch
        if owner is None or batch is None:
            owner, batch = _micro_batch()
        if owner and self.wanted:
            return pins.pin(table, owner, batch, self.version), owner, batch
        if self.version is not None:
            return self.version, owner, batch
        if self.wanted:
            warnings.warn(
                "Spark gives no id of the micro-batch here, so the newest version of the master table is read: "
                "pass pin=(name, batch_id) to enrich so that a replay gives the same rows.",
                stacklevel=2,
            )
        return pins.current_version(table), owner, batch


@dataclass(frozen=True)
class EnrichTask:
    """Enriches the rows of one partition; made on the driver, called by Spark in a worker.

    Rows are joined chunk by chunk and leave in the order they came, whatever the cache held: a replay writes the same
    rows in the same order. The last row carries the statistics and has nulls in all other columns.
    """

    name: str
    table: Path
    pin: Pin
    algorithm: str
    parameters: dict[str, float]
    plan: OutputPlan
    """Stream columns by their positions; see `positional`."""
    master_schema: pa.Schema
    """The columns that the plan reads, as they were when the query was planned."""
    declared: pa.Schema
    """What Spark was told."""
    memory_bytes: int
    seed: int = field(default=0)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield enriched rows, and at the end the statistics."""
        stopwatch = _Stopwatch(batches)
        first = next((batch for batch in stopwatch if batch.num_rows), None)
        if first is None:
            _, owner, batch_id = None, *_micro_batch()
            counted = TaskStatistics.counted(JoinStats(), version=0, **self._described(owner, batch_id, None, 0, 0.0))
            yield self._carrier(counted)
            return
        version, owner, batch_id = self.pin.resolve(self.table)
        request = JoinRequest(
            self.table,
            self.algorithm,
            self.parameters,
            _with_row(self.plan, first.schema),
            first.schema.append(_ROW),
            self.master_schema,
            int(self.memory_bytes * JOIN_SHARE),
        )
        held, session = WORKER.join_for(request, version, typical_row_bytes(first, self.memory_bytes) + 8)
        before = deepcopy(session.stats)
        rows_out = 0
        finished = False
        try:
            for chunk in self._chunks(first, stopwatch, session):
                for batch in self._ordered(session, chunk):
                    rows_out += batch.num_rows
                    with stopwatch.paused():
                        yield batch
            finished = True
        finally:
            if not finished:
                WORKER.drop(held)
        WORKER.end_task(held)
        counted = TaskStatistics.counted(
            session.stats.since(before),
            version=version,
            **self._described(owner, batch_id, (held, session), rows_out, stopwatch.seconds),
        )
        held.warmed_rows = 0
        yield self._carrier(counted)

    def _chunks(
        self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], session: JoinSession
    ) -> Iterator[list[pa.RecordBatch]]:
        """Yield batches in groups that fit into memory before and after the join, and of which all rows may wait."""
        limit_bytes = (1 - JOIN_SHARE) * self.memory_bytes
        limit_rows = session.assembly.sizes.waiting_slots - first.num_rows
        store = session.store
        master_row_bytes = store.range_bytes(0, store.page_count - 1) / store.row_count if store.row_count else 0
        chunk: list[pa.RecordBatch] = []
        held_bytes = 0.0
        row = chunk_start = 0
        batch: pa.RecordBatch | None = first
        while batch is not None:
            if batch.num_rows:
                held_bytes += 2 * batch.nbytes + batch.num_rows * (8 + master_row_bytes)
                rows = np.arange(row, row + batch.num_rows, dtype=np.int64)
                chunk.append(batch.append_column(_ROW, pa.array(rows)))
                row += batch.num_rows
                if held_bytes >= limit_bytes or row - chunk_start > limit_rows:
                    yield chunk
                    chunk, held_bytes, chunk_start = [], 0.0, row
            batch = next(rest, None)
        if chunk:
            yield chunk

    def _ordered(self, session: JoinSession, chunk: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the output of a chunk in the order of its rows."""
        joined = list(session.run(chunk))
        if not joined:
            return
        whole = joined[0] if len(joined) == 1 else pa.concat_batches(joined)
        joined.clear()
        rows = whole.column(whole.num_columns - 1).to_numpy()
        order = np.argsort(rows, kind="stable")
        for start in range(0, len(order), _OUTPUT_ROWS):
            yield self._as_declared(whole.take(pa.array(order[start : start + _OUTPUT_ROWS])))

    def _as_declared(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            column if column.type == declared.type else column.cast(declared.type)
            for column, declared in zip(rows.columns[:-1], list(self.declared)[:-1], strict=True)
        ]
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(rows.num_rows, pa.string())], schema=self.declared)

    def _carrier(self, counted: TaskStatistics) -> pa.RecordBatch:
        nulls = [pa.nulls(1, declared.type) for declared in list(self.declared)[:-1]]
        return pa.RecordBatch.from_arrays([*nulls, pa.array([counted.as_json()])], schema=self.declared)

    def _described(
        self, owner: str, batch_id: int, used: tuple[HeldJoin, JoinSession] | None, rows_out: int, seconds: float
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


def _with_row(plan: OutputPlan, stream: pa.Schema) -> OutputPlan:
    """Return the plan for a stream whose last column numbers its rows: the output has that column last, too."""
    fields = [
        stream.field(index).with_name(planned.name) if not from_master else planned
        for (from_master, index), planned in zip(plan.sources, plan.schema, strict=True)
    ]
    return OutputPlan(
        plan.how,
        pa.schema([*fields, _ROW]),
        (*plan.sources, (False, len(stream))),
        plan.master_columns,
        plan.stream_keys,
        plan.master_keys,
    )


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
