"""Builds output rows from stream rows and the master rows they match."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import RLock

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.errors import RowTooLargeError
from semistream.core.keys import KeyCodec
from semistream.engine.gather import concatenate
from semistream.engine.matching import run_lengths
from semistream.engine.output_plan import OutputPlan
from semistream.engine.stream_rows import StreamRows
from semistream.engine.tuple_cache import TupleCache
from semistream.store.contract import PageSet

DeadLetters = Callable[[pa.RecordBatch, str], None]
"""Takes stream rows that cannot be processed, and the reason."""


@dataclass(frozen=True)
class _Untaken:
    """Master rows that are still in their pages, because there are too many for one batch."""

    pages: PageSet
    rows: Int64Array


@dataclass(frozen=True)
class _Waited:
    """Tuples that waited, by their slots, each with a master row."""

    slots: Int64Array
    master: pa.RecordBatch | _Untaken | None
    done: Int64Array
    """The slots that are not needed after these: a tuple with many master rows may go on in the next piece."""


@dataclass
class _Pending:
    """What has been found and is not yet handed out."""

    waited: deque[_Waited] = field(default_factory=deque)
    arrived: list[tuple[pa.RecordBatch, pa.RecordBatch | None]] = field(default_factory=list)
    """Rows that were answered on arrival, and their master rows."""
    unmatched_waited: list[Int64Array] = field(default_factory=list)
    unmatched_arrived: list[pa.RecordBatch] = field(default_factory=list)
    size_bytes: int = 0
    slots: int = 0


class Output:
    """Collects what the phases of a join find and hands out record batches of about `batch_bytes`.

    Master rows are copied out of their pages at once, unless one read has answered more than a batch; rows of waiting
    tuples are left in their slots until a batch is complete or `most_slots` are held. Where keys are hashed, a match
    counts only if the keys themselves are equal. May be called from two threads.
    """

    def __init__(
        self,
        plan: OutputPlan,
        stream_rows: StreamRows,
        codec: KeyCodec,
        *,
        unique: bool,
        batch_bytes: int,
        most_slots: int,
        stream_row_bytes: float,
        master_row_bytes: float,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self._plan = plan
        self._rows = stream_rows
        self._codec = codec
        self._verify = not codec.exact
        self._expand = not (codec.exact and unique)
        self._batch_bytes = batch_bytes
        self._most_slots = most_slots
        self._stream_row_bytes = stream_row_bytes
        self.dead_letters = dead_letters
        self._lock = RLock()
        self._pending = _Pending()
        self._master_batches = 0
        self._master_row_bytes = max(1.0, master_row_bytes)
        self.taken_columns = self.columns_of(plan, verify=self._verify)
        """The master columns that rows are taken with: those of the output, then those that verify a match."""

    @staticmethod
    def columns_of(plan: OutputPlan, *, verify: bool) -> tuple[str, ...]:
        """Return the master columns that the output needs."""
        needed = plan.master_columns if plan.how in ("inner", "left") else ()
        return (*needed, *(name for name in plan.master_keys if verify and name not in needed))

    @property
    def is_due(self) -> bool:
        """Whether a batch of the wanted size can be handed out."""
        pending = self._pending
        if pending.size_bytes >= self._batch_bytes or pending.slots >= self._most_slots:
            return True
        return pending.slots > 0 and not self._rows.free_slots  # what has been answered takes the room of what waits

    @property
    def is_overdue(self) -> bool:
        """Whether so much waits to be handed out that no more should be found for now."""
        return self._pending.size_bytes >= 2 * self._batch_bytes

    # Tuples that waited.

    def answered(self, slots: Int64Array, pages: PageSet, rows: Int64Array) -> None:
        """Join tuples that waited with rows of pages; row -1 means that the key is absent."""
        found = rows >= 0
        if not found.all():
            self._leave_unmatched(slots[~found])
            slots, rows = slots[found], rows[found]
        if not len(rows):
            return
        slots, rows = self._expanded(slots, rows, pages)
        if self._verify:
            same = self._verified(slots, pages, rows)
            if not same.all():
                self._leave_unmatched(np.setdiff1d(slots[~same], slots[same]))
                slots, rows = slots[same], rows[same]
        if self._plan.how in ("semi", "anti"):
            slots = self._each_once(slots)
        if not len(slots):
            return
        if not self._plan.keeps_matched:
            self._rows.free(slots)
        elif not self._plan.master_columns:
            self._collect(_Waited(slots, None, self._each_once(slots)))
        else:
            step = max(1, int(self._batch_bytes / self._master_row_bytes))
            if len(slots) <= step:
                self._collect(_Waited(slots, pages.take(rows, self.taken_columns), self._each_once(slots)))
                return
            for start in range(0, len(slots), step):
                piece = slots[start : start + step]
                done = self._each_once(piece)
                following = slots[start + step : start + step + 1]
                self._collect(
                    _Waited(
                        piece,
                        _Untaken(pages, rows[start : start + step]),
                        done if not len(following) else done[done != following[0]],
                    )
                )

    def _each_once(self, slots: Int64Array) -> Int64Array:
        return np.unique(slots) if self._expand else slots

    def _collect(self, waited: _Waited) -> None:
        with self._lock:
            self._pending.waited.append(waited)
            self._count(len(waited.slots), waited.master, slots=len(waited.slots))

    def _leave_unmatched(self, slots: Int64Array) -> None:
        if not len(slots):
            return
        if self._plan.keeps_unmatched:
            with self._lock:
                self._pending.unmatched_waited.append(slots)
                self._count(len(slots), None, slots=len(slots))
        else:
            self._rows.free(slots)

    # Tuples that leave on arrival.

    def answered_on_arrival(
        self, batch: pa.RecordBatch, stream_rows: Int64Array, pages: PageSet, rows: Int64Array
    ) -> None:
        """Join arriving tuples with rows of pages; row -1 means that the key is absent."""
        found = rows >= 0
        self.unmatched_on_arrival(batch, stream_rows[~found])
        stream_rows, rows = stream_rows[found], rows[found]
        if len(rows):
            stream_rows, rows = self._expanded(stream_rows, rows, pages)
            self._join_arrived(batch, stream_rows, pages.take(rows, self.taken_columns) if self.taken_columns else None)

    def cached(self, batch: pa.RecordBatch, stream_rows: Int64Array, slots: Int64Array, cache: TupleCache) -> None:
        """Join arriving tuples with cached rows."""
        absent = cache.is_absent(slots)
        if absent.any():
            self.unmatched_on_arrival(batch, stream_rows[absent])
            stream_rows, slots = stream_rows[~absent], slots[~absent]
        if not len(slots):
            return
        self._join_arrived(batch, stream_rows, cache.take(slots) if self.taken_columns else None)

    def unmatched_on_arrival(self, batch: pa.RecordBatch, stream_rows: Int64Array) -> None:
        """Let arriving tuples leave without a match."""
        if len(stream_rows) and self._plan.keeps_unmatched:
            with self._lock:
                self._pending.unmatched_arrived.append(batch.take(pa.array(stream_rows)))
                self._count(len(stream_rows), None)

    def refused(self, batch: pa.RecordBatch, stream_rows: Int64Array, reason: str) -> None:
        """Hand arriving tuples to the dead letters, or raise if nobody takes them."""
        if not len(stream_rows):
            return
        if self.dead_letters is None:
            raise RowTooLargeError(reason)
        self.dead_letters(batch.take(pa.array(stream_rows)), reason)

    def _join_arrived(self, batch: pa.RecordBatch, stream_rows: Int64Array, master: pa.RecordBatch | None) -> None:
        stream = None
        if self._verify:
            assert master is not None
            stream = batch.take(pa.array(stream_rows))
            same = self._same_key(stream, master, self.taken_columns)
            if not same.all():
                self.unmatched_on_arrival(batch, np.setdiff1d(stream_rows[~same], stream_rows[same]))
                kept = pa.array(same)
                stream_rows, stream, master = stream_rows[same], stream.filter(kept), master.filter(kept)
        if not self._plan.keeps_matched or not len(stream_rows):
            return
        if self._plan.how == "semi":
            master = None
            if self._expand:
                stream_rows, stream = np.unique(stream_rows), None
        if stream is None:
            stream = batch.take(pa.array(stream_rows))
        with self._lock:
            self._pending.arrived.append((stream, master))
            self._count(stream.num_rows, master)

    # What is handed out.

    def ready(self, *, flush: bool = False) -> Iterator[pa.RecordBatch]:
        """Hand out what is due, or with `flush` all there is, in batches of about the wanted size."""
        if not (flush or self.is_due):
            return
        with self._lock:
            pending, self._pending = self._pending, _Pending()
        while pending.waited:
            yield self._next_waited(pending.waited)
        if pending.arrived:
            stream = concatenate([stream for stream, _ in pending.arrived])
            masters = [master for _, master in pending.arrived if master is not None]
            pending.arrived = []
            yield self._plan.assemble(stream, concatenate(masters) if masters else None)
        if pending.unmatched_waited:
            slots = np.concatenate(pending.unmatched_waited)
            yield self._plan.assemble(self._leave(slots, slots), None)
        if pending.unmatched_arrived:
            yield self._plan.assemble(concatenate(pending.unmatched_arrived), None)

    def _next_waited(self, waited: deque[_Waited]) -> pa.RecordBatch:
        """Assemble the first of the rows that waited."""
        pieces: list[_Waited] = []
        masters: list[pa.RecordBatch] = []
        per_row = 16 + self._stream_row_bytes + self._master_row_bytes
        rows = 0
        while waited and (not rows or (rows + len(waited[0].slots)) * per_row <= 1.25 * self._batch_bytes):
            piece = waited.popleft()
            rows += len(piece.slots)
            pieces.append(piece)
            master = piece.master
            if isinstance(master, _Untaken):
                master = master.pages.take(master.rows, self.taken_columns)
                self._master_row_bytes = max(1.0, master.nbytes / max(1, master.num_rows))
            if master is not None:
                masters.append(master)
        slots = np.concatenate([piece.slots for piece in pieces])
        stream = self._leave(slots, np.concatenate([piece.done for piece in pieces]))
        return self._plan.assemble(stream, concatenate(masters) if masters else None)

    def _leave(self, slots: Int64Array, done: Int64Array) -> pa.RecordBatch:
        stream = self._rows.take(slots)
        self._rows.free(done)
        return stream

    # What both kinds of tuples need.

    def _expanded(self, tuples: Int64Array, rows: Int64Array, pages: PageSet) -> tuple[Int64Array, Int64Array]:
        """Repeat tuples for every row that has their code."""
        if not self._expand:
            return tuples, rows
        lengths = run_lengths(pages.codes, pages.bounds, rows)
        if not (lengths > 1).any():
            return tuples, rows
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(tuples, lengths), np.repeat(rows, lengths) + within

    def _verified(self, slots: Int64Array, pages: PageSet, rows: Int64Array) -> BoolArray:
        """Say which tuples that waited have the very key of their master row, a piece at a time."""
        step = max(256, int(self._batch_bytes / (16 + self._stream_row_bytes)))
        same = [
            self._same_key(
                self._rows.take(slots[start : start + step]),
                pages.take(rows[start : start + step], self._plan.master_keys),
                self._plan.master_keys,
            )
            for start in range(0, len(slots), step)
        ]
        return same[0] if len(same) == 1 else np.concatenate(same)

    def _same_key(self, stream: pa.RecordBatch, master: pa.RecordBatch, columns: tuple[str, ...]) -> BoolArray:
        ours = [stream.column(stream.schema.get_field_index(name)) for name in self._plan.stream_keys]
        theirs = [master.column(columns.index(name)) for name in self._plan.master_keys]
        return self._codec.same_key(ours, theirs)

    def _count(self, rows: int, master: pa.RecordBatch | _Untaken | None, *, slots: int = 0) -> None:
        if isinstance(master, pa.RecordBatch):
            # To ask a batch for its size takes longer than to fill it, so most are estimated.
            self._master_batches += 1
            if self._master_batches % 16 == 1:
                self._master_row_bytes = max(1.0, master.nbytes / max(1, rows))
        per_row = 16 + self._stream_row_bytes + (self._master_row_bytes if master is not None else 0)
        self._pending.size_bytes += int(rows * per_row)
        self._pending.slots += slots
