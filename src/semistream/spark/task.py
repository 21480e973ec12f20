"""The part of `enrich` that runs in a Python worker: one partition of a micro-batch in, its enriched rows out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.compile import load_compiler
from semistream.core.latencies import Latencies
from semistream.core.stats import JoinStats
from semistream.engine.output.output_plan import OutputPlan
from semistream.joining.ordered_session import OrderedSession
from semistream.joining.session import typical_row_bytes
from semistream.spark.dead_letter_files import DeadLetterFiles
from semistream.spark.key_tally import KeyTally
from semistream.spark.pinning import OtherVersionError, Pin, PinOnItsWay, RememberedInput, micro_batch
from semistream.spark.room.run import RoomRun
from semistream.spark.room.visit import RoomNumbers, RoomUse
from semistream.spark.statistics import CACHE_SIZES, TaskStatistics
from semistream.spark.task_clock import Stopwatch
from semistream.spark.unmatched_rows import Unmatched, UnmatchedRowError
from semistream.spark.worker import WORKER, HeldJoin, JoinRequest, Order, Session
from semistream.store.address import Address
from semistream.store.tables import table_at


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

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield enriched rows, and at the end the statistics."""
        if self.room is not None:
            yield from RoomRun(self, batches).rows()
            return
        stopwatch = Stopwatch(batches)
        first = next((batch for batch in stopwatch if batch.num_rows), None)
        if first is None:
            yield self.counted(JoinStats(), stopwatch, (*self.micro_batch(), 0), None, 0)
            return
        arriving, arrived = RememberedInput(chain([first], stopwatch)), time.monotonic()
        run = self._begun(first, arriving)
        latencies, rows_out, finished = Latencies(), 0, False
        try:
            for rows in run.rows:
                leaving = self._matched(rows, run.letters) if self.flag_at is not None else rows
                rows_out += leaving.num_rows
                latencies.add(time.monotonic() - arrived, leaving.num_rows)
                with stopwatch.handing_on():
                    yield self.as_declared(leaving)
            run.letters.commit()
            finished = True
        finally:
            if not finished:
                WORKER.drop(run.held)
                run.letters.discard()
        held = run.held
        WORKER.end_task(held)
        told = (*self.pin.owner_and_batch(), run.version)
        yield self.counted(run.counters(), stopwatch, told, held, rows_out, latencies, tally=run.tally)
        held.warmed_rows = 0

    def _begun(self, first: pa.RecordBatch, arriving: RememberedInput) -> TaskRun:
        """Begin the join; no row of it leaves before the version is certain.

        Where it takes long to find the version, rows are looked up meanwhile in the one that this worker used last. If
        it was another one after all, that is forgotten and done again.
        """
        request, row_bytes = self.request(first.schema), typical_row_bytes(first, self.memory_bytes)
        table = table_at(self.table, disk_bytes=self.disk_bytes)
        if self.order == "input" and self.pin.takes_long(table):
            on_its_way = PinOnItsWay(self.pin, table, opens=not WORKER.has_joined(request))
            before = WORKER.join_as_before(request, row_bytes)
            run = self._run_if_certain(*before, arriving, on_its_way) if before is not None else None
            if run is not None:
                return run
            load_compiler()
            version, _ = on_its_way.found()
            opened = on_its_way.opened
        else:
            version, _, _ = self.pin.resolve(table)
            opened = None
        return self._run(*WORKER.join_for(request, table, version, row_bytes, opened), arriving, version)

    def _run_if_certain(
        self, held: HeldJoin, session: Session, arriving: RememberedInput, on_its_way: PinOnItsWay
    ) -> TaskRun | None:
        """Begin a join while its version is being found out; None if it is another one."""

        def make_certain() -> int:
            version, identity = on_its_way.found()
            if held.store is None or held.store.identity != identity:
                raise OtherVersionError
            arriving.forget()
            return version

        # What is remembered is in the chunk that the session holds anyway, unless chunks have no output.
        assert isinstance(session, OrderedSession)
        arriving.remember(session.sizes.chunk_bytes // 2, make_certain)
        run = self._run(held, session, arriving, 0)
        rows = run.rows
        try:
            found = next(rows, None)
            run.version = make_certain()
        except Exception as error:
            run.letters.discard()
            try:
                make_certain()
            except OtherVersionError:
                arriving.from_the_beginning()
                return None
            finally:
                if not isinstance(error, OtherVersionError):
                    WORKER.drop(held)
            raise
        run.rows = rows if found is None else chain([found], rows)
        return run

    def _run(self, held: HeldJoin, session: Session, arriving: Iterator[pa.RecordBatch], version: int) -> TaskRun:
        letters, tally = DeadLetterFiles(self, *self.pin.owner_and_batch()), self.tally()
        session.dead_letters = letters.refused
        if isinstance(session, OrderedSession):
            session.unmatched = tally.count_unmatched if tally is not None else None
        before = replace(session.stats)
        rows = session.run(arriving if tally is None else tally.counting(arriving))
        return TaskRun(held, session, version, letters, tally, before, rows)

    def request(self, stream: pa.Schema) -> JoinRequest:
        """Return what is asked of the worker for rows with these columns."""
        return JoinRequest(
            self.table,
            self.algorithm,
            self.parameters,
            self.order,
            _as_streamed(self.plan, stream),
            stream,
            self.master_schema,
            self.memory_bytes,
        )

    def as_declared(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return joined rows as Spark was told."""
        arrived = rows.columns if self.shown is None else [rows.column(index) for index in self.shown]
        if self.tells_matches:
            arrived = [*arrived[:-1], arrived[-1].is_valid()]
        columns = [
            column if column.type == declared.type else column.cast(declared.type)
            for column, declared in zip(arrived, list(self.declared)[:-1], strict=True)
        ]
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(rows.num_rows, pa.string())], schema=self.declared)

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

    def _matched(self, rows: pa.RecordBatch, letters: DeadLetterFiles) -> pa.RecordBatch:
        leaving, unmatched = self.parted(rows)
        self.check_may_lack_match(unmatched)
        if unmatched.num_rows:
            letters.put_unmatched(unmatched)
        return leaving

    def counted(
        self,
        counters: JoinStats,
        stopwatch: Stopwatch,
        batch: tuple[str, int, int],
        held: HeldJoin | None,
        rows_out: int,
        latencies: Latencies | None = None,
        numbers: RoomNumbers | None = None,
        tally: KeyTally | None = None,
    ) -> pa.RecordBatch:
        """Return the row that carries the statistics; `batch` is the query, the micro-batch and the version."""
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
        nulls = [pa.nulls(1, declared.type) for declared in list(self.declared)[:-1]]
        return pa.RecordBatch.from_arrays([*nulls, pa.array([counted.as_json()])], schema=self.declared)

    def tally(self) -> KeyTally | None:
        """Return what counts the keys of a task, if they are asked for."""
        return KeyTally(self.plan.stream_keys, self.hot_keys) if self.hot_keys else None

    def micro_batch(self) -> tuple[str, int]:
        """Return the id of the streaming query and the number of its micro-batch, or an empty text and -1."""
        return micro_batch()


@dataclass
class TaskRun:
    """A run of a join over the rows of a task."""

    held: HeldJoin
    session: Session
    version: int
    letters: DeadLetterFiles
    tally: KeyTally | None
    before: JoinStats
    rows: Iterator[pa.RecordBatch]

    def counters(self) -> JoinStats:
        """Return what the run has counted."""
        return self.session.stats.since(self.before)


def _as_streamed(plan: OutputPlan, stream: pa.Schema) -> OutputPlan:
    """Return the plan with the types that the stream's columns have when they come from Spark."""
    fields = [
        stream.field(index).with_name(planned.name) if not from_master else planned
        for (from_master, index), planned in zip(plan.sources, plan.schema, strict=True)
    ]
    return replace(plan, schema=pa.schema(fields))
