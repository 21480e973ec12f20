"""One task of `enrich`: a partition of a micro-batch goes through one or several dimensions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from semistream.core.compile import load_compiler
from semistream.core.latencies import Latencies
from semistream.core.stats import JoinStats
from semistream.joining.ordered_session import OrderedSession
from semistream.joining.session import typical_row_bytes
from semistream.spark.dead_letter_files import DeadLetterFiles
from semistream.spark.held_join import HeldJoin, Session
from semistream.spark.pinning import OtherVersionError, PinOnItsWay, RememberedInput
from semistream.spark.shared_reads import SharedReads
from semistream.spark.task_clock import Stopwatch
from semistream.spark.worker import WORKER, Wanted
from semistream.store.tables import table_at

if TYPE_CHECKING:
    from semistream.spark.task import EnrichTask


def enriched(tasks: Sequence[EnrichTask], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition after all dimensions, and at the end rows with the statistics of each."""
    stopwatch, declared = Stopwatch(batches), tasks[-1].declared
    first = next((batch for batch in stopwatch if batch.num_rows), None)
    if first is None:
        clocks = [stopwatch, *(Stopwatch() for _ in tasks[1:])]
        told = [
            task.told(JoinStats(), clock, (*task.pin.micro_batch(), 0), None, 0)
            for task, clock in zip(tasks, clocks, strict=True)
        ]
        yield carriers(told, declared)
        return
    run = TaskRun(tasks, first, stopwatch)
    yield from run.rows()
    yield carriers(run.told(), declared)


def carriers(told: Sequence[str], declared: pa.Schema) -> pa.RecordBatch:
    """Return rows that carry statistics and have nulls in all other columns."""
    nulls = [pa.nulls(len(told), field.type) for field in list(declared)[:-1]]
    return pa.RecordBatch.from_arrays([*nulls, pa.array(told, pa.string())], schema=declared)


class TaskRun:
    """The rows of one task on their way through all dimensions.

    Where it takes long to find the versions of the master tables, rows are looked up meanwhile in those that this
    worker used last. Nothing leaves before all versions are certain; if one of them is another one after all, what was
    done is forgotten, and done again from the first row on.
    """

    def __init__(self, tasks: Sequence[EnrichTask], first: pa.RecordBatch, stopwatch: Stopwatch) -> None:
        self._tasks = tasks
        self._arriving = RememberedInput(chain([first], stopwatch))
        self._arrived = time.monotonic()
        self._clocks = [stopwatch, *(Stopwatch() for _ in tasks[1:])]
        self._begin_to_work()
        self._runs: list[DimensionRun] = []
        self._wanted = [_wanted_by(tasks[: place + 1], first) for place in range(len(tasks))]
        self._on_their_way = {
            place: PinOnItsWay(task.pin, one.table, opens=not WORKER.has_joined(one.request))
            for place, (task, one) in enumerate(zip(tasks, self._wanted, strict=True))
            if task.pin.takes_long(one.table)
        }
        for place, one in enumerate(self._wanted):
            if place not in self._on_their_way:
                self._wanted[place] = replace(one, version=tasks[place].pin.resolve(one.table)[0])

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows after all dimensions."""
        if self._on_their_way and self._tasks[0].order == "input":
            joins = WORKER.joins_as_before(self._wanted)
            if joins is not None:
                try:
                    yield from self._joined(joins)
                except OtherVersionError:
                    self._arriving.from_the_beginning()
                else:
                    return
            del joins, self._runs[:]  # their memory is needed for those with the right versions
        if self._on_their_way:
            load_compiler()
        for place, pin in self._on_their_way.items():
            version, _ = pin.found()
            self._wanted[place] = replace(self._wanted[place], version=version, opened=pin.opened)
        yield from self._joined(WORKER.joins_for(self._wanted))

    def told(self) -> list[str]:
        """Return the statistics of each dimension, after all rows have left."""
        told: list[str] = []
        for place, run in enumerate(self._runs):
            run.stopwatch.forget_neighbours(before=place > 0, after=place < len(self._runs) - 1)
            told.append(run.told())
        return told

    def _begin_to_work(self) -> None:
        """Let the first dimension work and the others wait for its rows."""
        self._clocks[0].work()
        for clock in self._clocks[1:]:
            clock.wait()

    def _joined(self, joins: Sequence[tuple[HeldJoin, Session]]) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or raise OtherVersionError before the first one leaves."""
        self._begin_to_work()
        self._runs = runs = [
            DimensionRun(task, one.version, *join, clock, self._arrived)
            for task, one, join, clock in zip(self._tasks, self._wanted, joins, self._clocks, strict=True)
        ]
        entry = runs[0].session
        if isinstance(entry, OrderedSession) and any(run.version is None for run in runs):
            # What is remembered is in the chunk that the session holds anyway, unless chunks have no output.
            self._arriving.remember(entry.sizes.chunk_bytes // 2, self._make_certain)
        finished = is_useful = False
        try:
            yield from _through(runs, 0, self._arriving, self._make_certain)
            self._clocks[0].work()
            self._make_certain()
            for run in runs:
                run.letters.commit()
            finished = True
        except OtherVersionError:
            is_useful = True  # for later tasks, as is what was cached in it
            raise
        except Exception:
            self._make_certain()  # it may not have happened with the right versions
            raise
        finally:
            if not finished:
                for run in runs:
                    run.letters.discard()
                    if not is_useful:
                        WORKER.drop(run.held)
        WORKER.end_task(*(run.held for run in runs))

    def _make_certain(self) -> None:
        """Wait for the versions that are on their way; raise OtherVersionError if rows were looked up in another."""
        for place, run in enumerate(self._runs):
            if run.version is None:
                version, identity = self._on_their_way[place].found()
                if run.session.store.identity != identity:
                    raise OtherVersionError
                run.version = version
        self._arriving.forget()


class DimensionRun:
    """The rows of one task on their way through one dimension."""

    def __init__(
        self,
        task: EnrichTask,
        version: int | None,
        held: HeldJoin,
        session: Session,
        stopwatch: Stopwatch,
        arrived: float,
    ) -> None:
        self.task = task
        self.version = version
        """That of the master table; None until it is certain that the session has it."""
        self.held = held
        self.session = session
        self.stopwatch = stopwatch
        self._arrived = arrived
        self._before = replace(session.stats)
        self._latencies = Latencies()
        self._rows_out = 0
        self._tally = task.tally()
        self.letters = DeadLetterFiles(task.dead_letters, task.stream_names, *task.pin.micro_batch(), task.table.name)
        session.dead_letters = self.letters.refused
        if isinstance(session, OrderedSession):
            session.unmatched = self._tally.count_unmatched if self._tally is not None else None

    def arriving(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches that come from Spark, or from the dimension before, as they are counted."""
        return batches if self._tally is None else self._tally.counting(batches)

    def leaving(
        self, joined: Iterator[pa.RecordBatch], make_certain: Callable[[], None] | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield joined rows but for those that must not leave.

        They go to Spark once they are certain; without `make_certain` the next dimension takes them.
        """
        task, stopwatch = self.task, self.stopwatch
        stopwatch.work()
        for rows in joined:
            kept = self._with_match(rows) if task.flag_at is not None else rows
            if make_certain is not None:
                make_certain()
            self._rows_out += kept.num_rows
            self._latencies.add(time.monotonic() - self._arrived, kept.num_rows)
            if make_certain is not None or kept.num_rows:
                shown = task.as_declared(kept) if make_certain is not None else task.as_stream(kept)
                with stopwatch.handing_on():
                    yield shown
        if make_certain is not None:
            stopwatch.wait()
        else:
            stopwatch.hand_on()  # the next dimension may still work on what it has taken

    def told(self) -> str:
        """Return the statistics of the run, which has ended."""
        assert self.version is not None
        counters = self.session.stats.since(self._before)
        if counters.tuples_in:
            self.held.kept_share = self._rows_out / counters.tuples_in
        batch = (*self.task.pin.micro_batch(), self.version)
        text = self.task.told(
            counters, self.stopwatch, batch, self.held, self._rows_out, self._latencies, tally=self._tally
        )
        self.held.warmed_rows = 0
        return text

    def _with_match(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        kept, unmatched = self.task.parted(rows)
        self.task.check_may_lack_match(unmatched)
        if unmatched.num_rows:
            self.letters.put_unmatched(unmatched)
        return kept


def _wanted_by(tasks: Sequence[EnrichTask], first: pa.RecordBatch) -> Wanted:
    """Return what the last of some dimensions asks of the worker, without the version."""
    *before, task = tasks
    alike = sum(_shares_a_cache(task, other) for other in before)
    request = task.request(before[-1].next_stream if before else first.schema, alike)
    table = table_at(task.table, disk_bytes=task.disk_bytes)
    return Wanted(request, table, typical_row_bytes(first, task.memory_bytes))


def _shares_a_cache(task: EnrichTask, other: EnrichTask) -> bool:
    """Say whether two dimensions might have one cache, were they not run at the same time."""
    columns, others = (one.plan.taken_columns(verify=True) for one in (task, other))
    return task.table == other.table and columns == others


def _through(
    runs: Sequence[DimensionRun], place: int, batches: Iterator[pa.RecordBatch], make_certain: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    """Yield rows after all dimensions from a place on, once they are certain.

    Where several dimensions can read together, a chunk of the first goes through all that follow before the next one.
    """
    if place == len(runs):
        yield from batches
        return
    run, before_leaving = runs[place], make_certain if place == len(runs) - 1 else None
    arriving = run.arriving(run.stopwatch.taking(batches) if place else batches)
    together = [other for other in runs if other.task.asked_from == place]
    if len(together) < 2 or not isinstance(run.session, OrderedSession):
        joined = run.leaving(run.session.run(arriving), before_leaving)
        yield from _through(runs, place + 1, joined, make_certain)
        return
    reads = SharedReads(runs, place)
    for chunk in run.session.chunks(arriving):
        reads.before(chunk)
        joined = run.leaving(run.session.joined(chunk), before_leaving)
        yield from _through(runs, place + 1, joined, make_certain)
        run.stopwatch.work()
    run.stopwatch.wait()
    reads.end()
