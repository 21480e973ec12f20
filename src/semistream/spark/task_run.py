"""One task of `enrich`: a partition of a micro-batch goes through one or several dimensions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from semistream.core.latencies import Latencies
from semistream.core.side_by_side import all_at_once
from semistream.core.stats import JoinStats
from semistream.joining.ordered_session import OrderedSession
from semistream.joining.session import typical_row_bytes
from semistream.spark.dead_letter_files import DeadLetterFiles
from semistream.spark.held_join import HeldJoin, Session
from semistream.spark.shared_reads import SharedReads
from semistream.spark.task_clock import Stopwatch
from semistream.spark.worker import WORKER, Wanted
from semistream.store.address import LOCAL
from semistream.store.tables import table_at

if TYPE_CHECKING:
    from semistream.spark.task import EnrichTask


def enriched(tasks: Sequence[EnrichTask], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition after all dimensions, and at the end rows with the statistics of each."""
    stopwatch, declared = Stopwatch(batches), tasks[-1].declared
    first = next((batch for batch in stopwatch if batch.num_rows), None)
    if first is None:
        nowhere = (*tasks[0].micro_batch(), 0)
        clocks = [stopwatch, *(Stopwatch() for _ in tasks[1:])]
        told = [task.told(JoinStats(), clock, nowhere, None, 0) for task, clock in zip(tasks, clocks, strict=True)]
        yield carriers(told, declared)
        return
    runs = _started(tasks, first, stopwatch)
    finished = False
    try:
        yield from _through(runs, 0, chain([first], stopwatch))
        stopwatch.work()
        for run in runs:
            run.letters.commit()
        finished = True
    finally:
        if not finished:
            for run in runs:
                WORKER.drop(run.held)
                run.letters.discard()
    WORKER.end_task(*(run.held for run in runs))
    yield carriers([run.told() for run in runs], declared)
    for run in runs:
        run.held.warmed_rows = 0


def carriers(told: Sequence[str], declared: pa.Schema) -> pa.RecordBatch:
    """Return rows that carry statistics and have nulls in all other columns."""
    nulls = [pa.nulls(len(told), field.type) for field in list(declared)[:-1]]
    return pa.RecordBatch.from_arrays([*nulls, pa.array(told, pa.string())], schema=declared)


class DimensionRun:
    """The rows of one task on their way through one dimension."""

    def __init__(
        self,
        task: EnrichTask,
        batch: tuple[str, int, int],
        held: HeldJoin,
        session: Session,
        stopwatch: Stopwatch,
        *,
        takes_from: DimensionRun | None,
        is_last: bool,
    ) -> None:
        self.task = task
        self.held = held
        self.session = session
        self.stopwatch = stopwatch
        self._batch = batch
        self._takes_from = takes_from
        self._is_last = is_last
        self._before = replace(session.stats)
        self._latencies = Latencies()
        self._rows_out = 0
        self._arrived = time.monotonic()
        self._tally = task.tally()
        self.letters = DeadLetterFiles(task.dead_letters, task.stream_names, *batch[:2], task.table.name)
        session.dead_letters = self.letters.refused
        if isinstance(session, OrderedSession):
            session.unmatched = self._tally.count_unmatched if self._tally is not None else None

    def arriving(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches that come from Spark, or from the dimension before."""
        taken = self.stopwatch.taking(batches) if self._takes_from is not None else batches
        return taken if self._tally is None else self._tally.counting(taken)

    def leaving(self, joined: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield joined rows as Spark or the next dimension takes them, but for those that must not leave."""
        task, stopwatch = self.task, self.stopwatch
        stopwatch.work()
        for rows in joined:
            kept = self._with_match(rows) if task.flag_at is not None else rows
            self._rows_out += kept.num_rows
            self._latencies.add(time.monotonic() - self._arrived, kept.num_rows)
            if self._is_last or kept.num_rows:
                shown = task.as_declared(kept) if self._is_last else task.as_stream(kept)
                with stopwatch.handing_on():
                    yield shown
        stopwatch.wait()

    def told(self) -> str:
        """Return the statistics of the run, which has ended."""
        counters = self.session.stats.since(self._before)
        if counters.tuples_in:
            self.held.kept_share = self._rows_out / counters.tuples_in
        self.stopwatch.forget_neighbours(before=self._takes_from is not None, after=not self._is_last)
        return self.task.told(
            counters, self.stopwatch, self._batch, self.held, self._rows_out, self._latencies, tally=self._tally
        )

    def _with_match(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        kept, unmatched = self.task.parted(rows)
        self.task.check_may_lack_match(unmatched)
        if unmatched.num_rows:
            self.letters.put_unmatched(unmatched)
        return kept


def _started(tasks: Sequence[EnrichTask], first: pa.RecordBatch, stopwatch: Stopwatch) -> list[DimensionRun]:
    """Pin the versions of a micro-batch, and get the joins of all dimensions from the worker."""
    tables = [table_at(task.table, disk_bytes=task.disk_bytes) for task in tasks]
    found: dict[int, tuple[int, str, int]] = {}

    def resolve(place: int) -> None:
        found[place] = tasks[place].pin.resolve(tables[place])

    far = [place for place, task in enumerate(tasks) if task.table.scheme != LOCAL]
    for place in set(range(len(tasks))) - set(far):
        resolve(place)
    all_at_once([lambda place=place: resolve(place) for place in far])  # type: ignore[misc]
    wanted: list[Wanted] = []
    for place, task in enumerate(tasks):
        alike = sum(_shares_a_cache(task, other) for other in tasks[:place])
        request = task.request(first.schema if not place else tasks[place - 1].next_stream, alike)
        row_bytes = typical_row_bytes(first, task.memory_bytes)
        wanted.append(Wanted(request, tables[place], found[place][0], row_bytes))
    runs: list[DimensionRun] = []
    for place, (held, session) in enumerate(WORKER.joins_for(wanted)):
        version, owner, batch = found[place]
        before, is_last = runs[-1] if runs else None, place == len(tasks) - 1
        clock = Stopwatch() if runs else stopwatch
        if runs:
            clock.wait()
        told = (owner, batch, version)
        runs.append(DimensionRun(tasks[place], told, held, session, clock, takes_from=before, is_last=is_last))
    return runs


def _shares_a_cache(task: EnrichTask, other: EnrichTask) -> bool:
    """Say whether two dimensions might have one cache, were they not run at the same time."""
    columns, others = (one.plan.taken_columns(verify=True) for one in (task, other))
    return task.table == other.table and columns == others


def _through(runs: Sequence[DimensionRun], place: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows after all dimensions from a place on.

    Where several dimensions can read together, a chunk of the first goes through all that follow before the next one.
    """
    if place == len(runs):
        yield from batches
        return
    run = runs[place]
    arriving = run.arriving(batches)
    together = [other for other in runs if other.task.asked_from == place]
    if len(together) < 2 or not isinstance(run.session, OrderedSession):
        yield from _through(runs, place + 1, run.leaving(run.session.run(arriving)))
        return
    reads = SharedReads(runs, place)
    for chunk in run.session.chunks(arriving):
        run.stopwatch.work()
        reads.before(chunk)
        yield from _through(runs, place + 1, run.leaving(run.session.joined(chunk)))
    reads.end()
