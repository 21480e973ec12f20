"""The part of `enrich` that runs in a Python worker: one partition of a micro-batch in, its enriched rows out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.latencies import Latencies
from semistream.core.stats import JoinStats
from semistream.engine.output.output_plan import OutputPlan
from semistream.spark.held_join import HeldJoin, JoinRequest, Order
from semistream.spark.key_tally import KeyTally
from semistream.spark.pinning import Pin
from semistream.spark.room.run import RoomRun
from semistream.spark.room.visit import RoomNumbers, RoomUse
from semistream.spark.statistics import CACHE_SIZES, TaskStatistics
from semistream.spark.task_clock import Stopwatch
from semistream.spark.task_run import enriched
from semistream.spark.unmatched_rows import Unmatched, UnmatchedRowError
from semistream.store.address import Address


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
    """The last column of the output is a key of the master table; Spark is told whether there is one."""
    hot_keys: int = 0
    """How many of the most frequent keys, and of the most frequent absent ones, the statistics name."""
    shown: tuple[int, ...] | None = None
    """The columns of joined rows that are in the output, where the plan has all; see `widened`."""
    flag_at: int | None = None
    """The column of joined rows that is null where there is no match, if that matters."""
    unmatched: Unmatched = "drop"
    """What becomes of rows without a match, if the plan of the join does not say it."""
    keeps_null_keys: bool = False
    """Rows with a null in their key leave although they have no match."""
    room: RoomUse | None = None
    """Where rows wait between micro-batches."""
    asked_from: int = 0
    """The dimension of a star whose stream already has the keys of this one, so that both can read together."""
    asked_columns: tuple[int, ...] = ()
    """Where the keys are in that stream."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield enriched rows, and at the end the statistics."""
        if self.room is not None:
            yield from RoomRun(self, batches).rows()
        else:
            yield from enriched((self,), batches)

    def request(self, stream: pa.Schema, number: int = 0) -> JoinRequest:
        """Return what is asked of the worker for rows with these columns, for the join of that number of its kind."""
        return JoinRequest(
            self.table,
            self.algorithm,
            self.parameters,
            self.order,
            _as_streamed(self.plan, stream),
            stream,
            self.master_schema,
            self.memory_bytes,
            number,
        )

    def as_stream(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return joined rows as the next dimension takes them."""
        return pa.RecordBatch.from_arrays(self._columns(rows), schema=self.next_stream)

    @cached_property
    def next_stream(self) -> pa.Schema:
        """The columns of joined rows as the next dimension takes them: by their positions."""
        return pa.schema([field.with_name(f"c{place}") for place, field in enumerate(list(self.declared)[:-1])])

    def as_declared(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return joined rows as Spark was told."""
        return pa.RecordBatch.from_arrays(
            [*self._columns(rows), pa.nulls(rows.num_rows, pa.string())], schema=self.declared
        )

    def _columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of joined rows that are in the output, of the types that were declared."""
        arrived = rows.columns if self.shown is None else [rows.column(index) for index in self.shown]
        if self.tells_matches:
            arrived = [*arrived[:-1], arrived[-1].is_valid()]
        return [
            column if column.type == declared.type else column.cast(declared.type)
            for column, declared in zip(arrived, list(self.declared)[:-1], strict=True)
        ]

    def parted(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the joined rows that leave, and those with a whole key that have no match."""
        assert self.flag_at is not None
        matched = rows.column(self.flag_at).is_valid()
        if matched.true_count == len(matched):
            return rows, rows.slice(0, 0)
        keys = [rows.column(int(name[1:])) for name in self.plan.stream_keys]
        has_null = reduce(pc.or_, (key.is_null() for key in keys))
        unmatched = rows.filter(pc.invert(pc.or_(matched, has_null)))
        return rows.filter(pc.or_(matched, has_null) if self.keeps_null_keys else matched), unmatched

    def check_may_lack_match(self, rows: pa.RecordBatch) -> None:
        """Raise an error if there is a row without a match, and that is not to be."""
        if rows.num_rows and self.unmatched == "fail":
            key = ", ".join(str(rows.column(int(name[1:]))[0].as_py())[:100] for name in self.plan.stream_keys)
            raise UnmatchedRowError(
                f"{rows.num_rows} rows have no match in the master table {self.table.name}, among them one with key "
                f"{key}: set `unmatched` to something else than 'fail', or add the key; a micro-batch of a stream "
                f"keeps the version of the table that it began with."
            )

    def told(
        self,
        counters: JoinStats,
        stopwatch: Stopwatch,
        batch: tuple[str, int, int],
        held: HeldJoin | None,
        rows_out: int,
        latencies: Latencies | None = None,
        numbers: RoomNumbers | None = None,
        tally: KeyTally | None = None,
    ) -> str:
        """Return the statistics as they are carried; `batch` is the query, the micro-batch and the version."""
        latencies = latencies or Latencies()
        owner, batch_id, version = batch
        counted = TaskStatistics.counted(
            counters,
            name=self.name,
            query_id=owner,
            batch_id=batch_id,
            version=version,
            rows_out=rows_out,
            seconds=stopwatch.seconds,
            input_seconds=stopwatch.input_seconds,
            output_seconds=stopwatch.output_seconds,
            memory_bytes=held.memory_bytes if held is not None else 0,
            budget_bytes=self.memory_bytes,
            cached_rows=held.cached_rows if held is not None else 0,
            warm_rows=held.warmed_rows if held is not None else 0,
            hits_by_size=held.hits_by_size_now_and_then(CACHE_SIZES) if held is not None else (),
            hot_keys=tally.hottest() if tally is not None else (),
            unmatched_keys=tally.most_unmatched() if tally is not None else (),
            latencies=latencies.counts(),
            max_latency_seconds=latencies.max_seconds,
            **asdict(numbers or RoomNumbers()),
        )
        return counted.as_json()

    def tally(self) -> KeyTally | None:
        """Return what counts the keys of a task, if they are asked for."""
        return KeyTally(self.plan.stream_keys, self.hot_keys) if self.hot_keys else None


@dataclass(frozen=True)
class StarTask:
    """Enriches the rows of one partition by several dimensions, one after the other in the same operator."""

    dimensions: tuple[EnrichTask, ...]
    """Each takes the rows of the one before; the last one declares what Spark was told."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield enriched rows, and at the end a row with the statistics of each dimension."""
        yield from enriched(self.dimensions, batches)


def _as_streamed(plan: OutputPlan, stream: pa.Schema) -> OutputPlan:
    """Return the plan with the types that the stream's columns have when they come from Spark."""
    fields = [
        stream.field(index).with_name(planned.name) if not from_master else planned
        for (from_master, index), planned in zip(plan.sources, plan.schema, strict=True)
    ]
    return replace(plan, schema=pa.schema(fields))
