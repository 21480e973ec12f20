"""One task of a query that has a room: its stream rows and the rows that waited for it, and what stays for the next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from semistream.core.arrays import BoolArray, Float64Array, Int64Array
from semistream.core.latencies import Latencies
from semistream.core.stats import JoinStats
from semistream.joining.session import JoinSession, typical_row_bytes
from semistream.policies.contract import Staying
from semistream.policies.staying import Sweep
from semistream.spark.held_join import HeldJoin
from semistream.spark.room.arriving_rows import ArrivingRows, several_slots, slot_of
from semistream.spark.room.kept_rows import KeptRows, bury, dead_letters, parked_before
from semistream.spark.room.pinned_rows import PinnedRows
from semistream.spark.room.room import Room, RoomError
from semistream.spark.room.room_file import SINCE, TRIES, Kind, RoomHead
from semistream.spark.room.visit import RoomNumbers, Visit
from semistream.spark.task_clock import Stopwatch
from semistream.spark.task_run import carriers
from semistream.spark.worker import WORKER
from semistream.store.contract import MasterStore, StoredTable
from semistream.store.tables import table_at

if TYPE_CHECKING:
    from semistream.spark.task import EnrichTask

_TAKEN_BYTES = 1 << 20
_claimed: set[tuple[str, str]] = set()
"""The rooms that this process knows to belong to a query."""


class RoomRun:
    """The rows of one slot in one micro-batch.

    The first attempt decides which rows leave, and pins that by putting a file of those that stay; whoever finds the
    file lets exactly the others leave. Of two attempts at once one loses the put and fails, so that Spark throws its
    rows away.
    """

    def __init__(self, task: EnrichTask, batches: Iterator[pa.RecordBatch]) -> None:
        assert task.room is not None
        self._task = task
        self._use = task.room
        self._room = Room(task.room.address)
        self._stopwatch = Stopwatch(batches)
        self._tally = task.tally()
        self._now = time.time()
        self._numbers = RoomNumbers()
        self._latencies = Latencies()
        self._pinned: PinnedRows | None = None
        self._store: MasterStore | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that leave, and at the end the statistics."""
        task = self._task
        first = next((batch for batch in self._stopwatch if batch.num_rows), None)
        if first is None:
            yield self._idle()
            return
        table = table_at(task.table, disk_bytes=task.disk_bytes)
        visit = self._visit(first, table)
        self._kept = KeptRows(visit)
        arriving = ArrivingRows(
            visit, self._kept, self._numbers, self._pinned, lambda: self._opened(table, visit), task.plan.stream_keys
        )
        streamed: Iterator[pa.RecordBatch] = chain([first], self._stopwatch)
        incoming = arriving.rows(streamed if self._tally is None else self._tally.counting(streamed))
        joined = next(incoming, None)
        held: HeldJoin | None = None
        stats, rows_out, finished = JoinStats(), 0, False
        refused = dead_letters(visit, task.dead_letters, task.stream_names)
        try:
            if joined is not None:
                row_bytes = typical_row_bytes(joined, task.memory_bytes)
                held, session = WORKER.join_for(task.request(joined.schema), table, visit.version, row_bytes)
                assert isinstance(session, JoinSession)
                self._store = session.store
                before = replace(session.stats)
                session.dead_letters = refused.put if refused is not None else None
                staying = None if self._pinned is not None else session.staying(_Due(visit, arriving), SINCE.name)
                for rows in session.run(chain([joined], incoming), staying=staying):
                    leaving = self._leaving(rows, visit)
                    rows_out += leaving.num_rows
                    if leaving.num_rows:
                        with self._stopwatch.handing_on():
                            yield task.as_declared(leaving)
                if staying is not None:
                    for rows in staying.take(_TAKEN_BYTES):
                        self._kept.keep(rows, Kind.WAITING)
                stats = session.stats.since(before)
            head = self._pinned_or_put(visit)
            if head.dead:
                bury(visit, task.dead_letters, task.stream_names)
            if refused is not None:
                refused.commit()
            finished = True
        finally:
            self._kept.close()
            if not finished:
                if held is not None:
                    WORKER.drop(held)
                if refused is not None:
                    refused.discard()
        if held is not None:
            WORKER.end_task(held)
        told = (visit.query, visit.batch, visit.version)
        yield self._carrier(stats, told, held, rows_out)
        if held is not None:
            held.warmed_rows = 0

    def _idle(self) -> pa.RecordBatch:
        """Return what is parked; a slot without rows has nothing else to tell."""
        context = TaskContext.get()
        if self._use.parks and context is not None:
            parked, oldest = parked_before(self._room, context.partitionId(), None)
            self._numbers.parked = parked
            self._numbers.oldest_seconds = max(0.0, self._now - oldest) if oldest is not None else 0.0
        told = (*self._task.pin.micro_batch(), 0)
        return self._carrier(JoinStats(), told, None, 0)

    def _carrier(
        self, counters: JoinStats, batch: tuple[str, int, int], held: HeldJoin | None, rows_out: int
    ) -> pa.RecordBatch:
        """Return the row that carries the statistics."""
        clock, latencies = self._stopwatch, self._latencies
        told = self._task.told(counters, clock, batch, held, rows_out, latencies, self._numbers, self._tally)
        return carriers([told], self._task.declared)

    def _visit(self, first: pa.RecordBatch, table: StoredTable) -> Visit:
        """Find out whose turn it is, and whether an earlier attempt has decided which rows leave."""
        task, room = self._task, self._room
        version, owner, batch = task.pin.resolve(table)
        if not owner:
            raise RoomError("A room needs the number of the micro-batch, which Spark does not give here: leave it out.")
        if (str(self._use.address), owner) not in _claimed:
            room.claim(owner)
            _claimed.add((str(self._use.address), owner))
        width = len(task.stream_names)
        slot = slot_of(first, width)
        if slot < 0:
            raise several_slots(room.shown())
        of_stream = [field.with_nullable(True) for field in list(first.schema)[:width]]
        schema = pa.schema([*of_stream, SINCE, TRIES])
        if room.head(batch, slot) is not None:
            self._pinned = PinnedRows(room.rows(batch, slot, *Kind), width)
        return Visit(room, self._use, owner, batch, slot, self._now, version, table.identity(version), schema)

    def _opened(self, table: StoredTable, visit: Visit) -> MasterStore:
        if self._store is None:
            self._store = table.open(visit.version)
        return self._store

    def _leaving(self, rows: pa.RecordBatch, visit: Visit) -> pa.RecordBatch:
        """Return joined rows that leave now, and keep the others."""
        if self._task.flag_at is not None:
            rows, unmatched = self._task.parted(rows)
            if unmatched.num_rows:
                self._without_match(unmatched, visit)
        since = rows.column(visit.width).cast(pa.int64()).to_numpy(zero_copy_only=False)
        self._latencies.add_all(np.maximum(0.0, time.time() - since / 1e6))
        if self._use.parks:
            self._numbers.released += int(pc.sum(pc.greater(rows.column(visit.width + 1), 0)).as_py() or 0)
        return rows

    def _without_match(self, rows: pa.RecordBatch, visit: Visit) -> None:
        """Keep joined rows that have no match."""
        self._task.check_may_lack_match(rows)
        if self._pinned is not None:
            raise RoomError(
                f"A row of a replayed micro-batch has no match, but was not kept back when it first came: the stream "
                f"or the master table does not replay the same rows; mend that, and begin with a new checkpoint and a "
                f"new room instead of {self._room.shown()}."
            )
        tries_at = visit.width + 1
        stream = rows.select(range(tries_at + 1)).rename_columns(visit.schema.names).cast(visit.schema)
        tries = pc.add(stream.column(tries_at), pa.scalar(1, TRIES.type))
        stream = stream.set_column(tries_at, TRIES, tries)
        if self._use.parks:
            self._kept.park(stream)
        else:
            self._kept.keep(stream, Kind.DEAD)

    def _pinned_or_put(self, visit: Visit) -> RoomHead:
        """Pin which rows stay, unless an earlier attempt has; of several attempts the first one counts."""
        if self._pinned is None:
            head = self._kept.put()
        else:
            self._check_met(visit)
            found = self._room.head(visit.batch, visit.slot)
            assert found is not None
            head = found
        numbers = self._numbers
        numbers.waiting, numbers.parked, numbers.dead = head.waiting, head.parked_in_all, head.dead
        oldest = [seconds for seconds in (head.oldest_seconds, head.oldest_parked_seconds) if seconds is not None]
        numbers.oldest_seconds = max(0.0, self._now - min(oldest)) if oldest else 0.0
        return head

    def _check_met(self, visit: Visit) -> None:
        if self._pinned is not None and self._pinned.unmet:
            raise RoomError(
                f"{self._pinned.unmet} rows that micro-batch {visit.batch} kept back are not among its rows now, but "
                f"in {self._room.shown(visit.batch, visit.slot)}: the stream does not replay the same rows (uuid(), "
                f"rand() or a table that changes before the join), or two operators share the room; mend that, and "
                f"begin with a new checkpoint and a new room."
            )


class _Due(Staying):
    """Lets rows leave whose turn it is; all of them if the stream was silent, which only the end of the input tells."""

    def __init__(self, visit: Visit, arriving: ArrivingRows) -> None:
        self._visit = visit
        self._arriving = arriving

    def due(self, page_groups: Int64Array, oldest_seconds: Float64Array, page_group_count: int) -> BoolArray:
        """Say which page groups are read now."""
        visit = self._visit
        if not self._arriving.stream_rows:
            return np.ones(len(page_groups), dtype=np.bool_)
        swept = visit.now_seconds
        for ticket in self._arriving.tickets:
            head = visit.room.head(ticket.waiting, visit.slot) if ticket.waiting >= 0 else None
            swept = min(swept, head.swept_seconds) if head is not None else swept
        sweep = Sweep(before_seconds=swept, now_seconds=visit.now_seconds, max_wait_seconds=visit.use.max_wait_seconds)
        return sweep.due(page_groups, oldest_seconds, page_group_count)
