"""Builds output rows from stream rows and the master rows they match."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.errors import RowTooLargeError
from semistream.core.keys import KeyCodec
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.output.answers import Answer, Matching
from semistream.engine.output.output_plan import OutputPlan
from semistream.engine.output.pending_rows import MadeRows, PendingRows
from semistream.engine.rows.gather import concatenate
from semistream.engine.rows.stream_rows import StreamRows
from semistream.engine.rows.tuple_rows import ArrivedRows, TupleRows, WaitedRows
from semistream.store.contract import PageSet

DeadLetters = Callable[[pa.RecordBatch, str], None]
"""Takes stream rows that cannot be processed, and the reason."""

_AHEAD = 1.5
"""Output rows of so many batches are made at once; the others when these have been handed out."""
_ROWS_WEIGHT = 0.1
_NONE = np.empty(0, dtype=np.int64)


class Output:
    """Collects what the phases of a join find and hands out record batches of about `batch_bytes`.

    Bytes are counted as rows are made. As long as there is room for its rows an answer is made into rows at once; rows
    of waiting tuples are left in their slots until a batch is complete or `max_slots` are held. What has no room stays
    what it is, tuples and pages, until it is handed out piece by piece; meanwhile no more should be found. Where keys
    are hashed, a match counts only if the keys themselves are equal. May be called from two threads.
    """

    def __init__(
        self,
        plan: OutputPlan,
        stream_rows: StreamRows,
        codec: KeyCodec,
        *,
        unique: bool,
        batch_bytes: int,
        max_slots: int,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self._plan = plan
        self._rows = stream_rows
        self._waited_rows = WaitedRows(stream_rows)
        self._batch_bytes = max(1, batch_bytes)
        self._max_slots = max_slots
        self.dead_letters = dead_letters
        self._lock = RLock()
        self._pending = PendingRows()
        self._held_bytes = 0
        """What has been made and not been handed out, be it pending or just on its way."""
        self._unfinished = 0
        self.at_room: Callable[[], None] | None = None
        """Called when more may be found again after so much was held that none should be."""
        verify = not codec.exact
        keys_at = tuple(stream_rows.schema.get_field_index(name) for name in plan.stream_keys)
        row_bytes = stream_rows.sizes.fixed_bytes
        self._matching = Matching(plan, codec, not (codec.exact and unique), verify, keys_at, row_bytes)
        self._mean_row_bytes = float(self._matching.row_bytes)
        self.taken_columns = plan.taken_columns(verify=verify)
        """The master columns that cached rows have: those of the output, then those that verify a match."""
        self._keys_in_taken = [self.taken_columns.index(name) for name in plan.master_keys] if verify else []

    @property
    def is_due(self) -> bool:
        """Whether a batch of the wanted size can be handed out, or something must be so that the join can go on."""
        pending = self._pending
        if pending.size_bytes >= self._batch_bytes or pending.slots >= self._max_slots or pending.unfinished:
            return True
        return pending.slots > 0 and self._rows.is_full  # what has been answered takes the room of what waits

    @property
    def is_overdue(self) -> bool:
        """Whether so much waits to be handed out that no more should be found for now."""
        return self._unfinished > 0 or self._held_bytes >= 2 * self._batch_bytes

    @property
    def room_bytes(self) -> float:
        """How many bytes of rows may be made at once."""
        return _AHEAD * self._batch_bytes - self._pending.size_bytes

    @property
    def mean_row_bytes(self) -> float:
        """The mean size of recent output rows."""
        return self._mean_row_bytes

    # Tuples that waited.

    def answered(self, slots: Int64Array, pages: PageSet, rows: Int64Array) -> None:
        """Join tuples that waited with rows of pages; row -1 means that the key is absent."""
        is_matched = rows >= 0
        if not is_matched.all():
            self._leave_unmatched(self._waited_rows, slots[~is_matched])
            slots, rows = slots[is_matched], rows[is_matched]
        if len(rows):
            self._add(Answer(self._matching, self._waited_rows, slots, pages, rows))

    def _leave_unmatched(self, source: TupleRows, tuples: Int64Array, pending: PendingRows | None = None) -> None:
        if not len(tuples):
            return
        if self._plan.keeps_unmatched:
            self._add(Answer(self._matching, source, tuples, None, _NONE), pending)
        else:
            source.free(tuples)

    # Tuples that leave on arrival.

    def answered_on_arrival(
        self, batch: pa.RecordBatch, stream_rows: Int64Array, pages: PageSet, rows: Int64Array
    ) -> None:
        """Join arriving tuples with rows of pages; row -1 means that the key is absent."""
        is_matched = rows >= 0
        self.unmatched_on_arrival(batch, stream_rows[~is_matched])
        if is_matched.any():
            source = ArrivedRows(batch, self._rows.sizes)
            self._add(Answer(self._matching, source, stream_rows[is_matched], pages, rows[is_matched]))

    def unmatched_on_arrival(self, batch: pa.RecordBatch, stream_rows: Int64Array) -> None:
        """Let arriving tuples leave without a match."""
        if len(stream_rows) and self._plan.keeps_unmatched:
            self._leave_unmatched(ArrivedRows(batch, self._rows.sizes), stream_rows)

    def cached(
        self,
        batch: pa.RecordBatch,
        stream_rows: Int64Array,
        slots: Int64Array,
        cache: TupleCache,
        *,
        has_absent: bool,
    ) -> None:
        """Join arriving tuples with cached rows; who calls must see to it that there is room for them.

        `has_absent` says that some slots stand for keys that the master table does not have.
        """
        if has_absent:
            absent = cache.is_absent(slots)
            self.unmatched_on_arrival(batch, stream_rows[absent])
            stream_rows, slots = stream_rows[~absent], slots[~absent]
        if not len(slots):
            return
        source = ArrivedRows(batch, self._rows.sizes)
        master = cache.take(slots) if self.taken_columns else None
        stream = None
        if self._matching.verify:
            assert master is not None
            stream = source.take(stream_rows)
            keys = stream.select(list(self._matching.stream_keys_at))
            same = self._matching.same_key(keys, master.select(self._keys_in_taken))
            if not same.all():
                self._leave_unmatched(source, stream_rows[~same])
                stream_rows, slots = stream_rows[same], slots[same]
                stream, master = stream.filter(pa.array(same)), master.filter(pa.array(same))
        if not self._plan.keeps_matched or not len(stream_rows):
            return
        if stream is None:
            stream = source.take(stream_rows)
        size_bytes = len(slots) * self._matching.stream_row_bytes + _sum(source.variable_bytes(stream_rows))
        if not self._plan.master_columns:
            master = None
        elif master is not None:
            master = master.select(range(len(self._plan.master_columns)))
            size_bytes += master.nbytes
        self._collect(MadeRows(_NONE, stream, master, _NONE, size_bytes), None, waited=False, matched=True)

    def arrival_bytes(self, batch: pa.RecordBatch, stream_rows: Int64Array) -> Int64Array | int:
        """Return what the output row of each arriving tuple takes besides variable columns of the master table."""
        sizes = ArrivedRows(batch, self._rows.sizes).variable_bytes(stream_rows)
        return self._matching.row_bytes if sizes is None else sizes + self._matching.row_bytes

    def refused(self, batch: pa.RecordBatch, stream_rows: Int64Array, reason: str) -> None:
        """Hand arriving tuples to the dead letters, large ones without a copy, or raise if nobody takes them."""
        if not len(stream_rows):
            return
        if self.dead_letters is None:
            raise RowTooLargeError(reason)
        source = ArrivedRows(batch, self._rows.sizes)
        if _sum(source.variable_bytes(stream_rows)) <= self._batch_bytes:
            self.dead_letters(source.take(stream_rows), reason)
            return
        for run in np.split(stream_rows, np.flatnonzero(np.diff(stream_rows) != 1) + 1):
            self.dead_letters(batch.slice(int(run[0]), len(run)), reason)

    # What is handed out.

    def ready(self, *, flush: bool = False) -> Iterator[pa.RecordBatch]:
        """Hand out what is due, or with `flush` all there is, in batches of about the wanted size."""
        if not (flush or self.is_due):
            return
        with self._lock:
            pending, self._pending = self._pending, PendingRows()
        while True:
            while made := pending.made():
                yield self._assembled(made)
            if not pending.unfinished:
                return
            self._go_on(pending)

    def _go_on(self, pending: PendingRows) -> None:
        """Make rows of unfinished answers until they fill a batch."""
        pending.size_bytes = 0
        while pending.unfinished and pending.size_bytes < self._batch_bytes:
            answer = pending.unfinished.popleft()
            self._make(answer, self._batch_bytes - pending.size_bytes, pending)
            if not answer.is_finished:
                pending.unfinished.appendleft(answer)
                continue
            with self._released():
                self._unfinished -= 1

    def _assembled(self, made: deque[MadeRows]) -> pa.RecordBatch:
        """Return one batch of the first rows of a kind."""
        parts = [made.popleft()]
        size_bytes = parts[0].size_bytes
        while made and size_bytes + made[0].size_bytes <= 1.25 * self._batch_bytes:
            parts.append(made.popleft())
            size_bytes += parts[-1].size_bytes
        masters = [rows.master for rows in parts if rows.master is not None]
        streams = [rows.stream for rows in parts if rows.stream is not None]
        if streams:
            stream = concatenate(streams)
        else:
            stream = self._rows.take(_joined([rows.tuples for rows in parts]))
            self._rows.free(_joined([rows.done for rows in parts]))
        with self._released():
            self._held_bytes -= size_bytes
            self._mean_row_bytes += (size_bytes / stream.num_rows - self._mean_row_bytes) * _ROWS_WEIGHT
        return self._plan.assemble(stream, concatenate(masters) if masters else None)

    @contextmanager
    def _released(self) -> Iterator[None]:
        """Hold the lock while less is held than before, and tell whoever waits for that."""
        with self._lock:
            was_overdue = self.is_overdue
            yield
            is_free = was_overdue and not self.is_overdue
        if is_free and self.at_room is not None:
            self.at_room()

    # How rows are made.

    def _add(self, answer: Answer, pending: PendingRows | None = None) -> None:
        """Make the rows of an answer, as many as there is room for; the others are made when they are handed out."""
        room_bytes = int(self.room_bytes)
        if pending is None and room_bytes > 0 and not self._pending.unfinished:
            self._make(answer, room_bytes, None)
        if answer.is_finished:
            return
        with self._lock:
            into = self._pending if pending is None else pending
            into.unfinished.append(answer)
            into.slots += answer.tuples_left if answer.source.waited else 0
            self._unfinished += 1

    def _make(self, answer: Answer, limit_bytes: int, pending: PendingRows | None) -> None:
        """Make rows of an answer, for what is on its way to be handed out or else for what is pending."""
        piece = answer.piece(limit_bytes)
        source, matched = piece.source, answer.pages is not None
        if not len(piece.tuples):
            if source.waited and len(piece.done):
                self._free_later(piece.done, pending)
        elif source.waited:
            made = MadeRows(piece.tuples, None, piece.master, piece.done, piece.size_bytes)
            self._collect(made, pending, waited=True, matched=matched)
        else:
            made = MadeRows(_NONE, source.take(piece.tuples), piece.master, _NONE, piece.size_bytes)
            self._collect(made, pending, waited=False, matched=matched)
        self._leave_unmatched(source, piece.unmatched, pending)

    def _free_later(self, slots: Int64Array, pending: PendingRows | None) -> None:
        """Free slots once the rows have been handed out that were made of them before."""
        with self._lock:
            waited = (self._pending if pending is None else pending).waited
            if waited:
                waited[-1] = replace(waited[-1], done=np.concatenate([waited[-1].done, slots]))
                return
        self._rows.free(slots)

    def _collect(self, made: MadeRows, pending: PendingRows | None, *, waited: bool, matched: bool) -> None:
        with self._lock:
            into = self._pending if pending is None else pending
            into.queue(waited=waited, matched=matched).append(made)
            into.size_bytes += made.size_bytes
            into.slots += len(made.done)
            self._held_bytes += made.size_bytes


def _joined(arrays: list[Int64Array]) -> Int64Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _sum(sizes: Int64Array | None) -> int:
    return 0 if sizes is None else int(sizes.sum())
