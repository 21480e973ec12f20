"""Builds output rows from stream rows and the master rows they match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


class Output:
    """Collects what the phases of a join find and hands out record batches of about `batch_bytes`.

    Master rows are copied out of their pages at once, stream rows only when a batch is complete. With `verify`, keys
    are hashed: a match counts only if the keys themselves are equal. With `expand`, several master rows may have one
    code. May be called from two threads.
    """

    def __init__(
        self,
        plan: OutputPlan,
        stream_rows: StreamRows,
        codec: KeyCodec,
        *,
        unique: bool,
        batch_bytes: int,
    ) -> None:
        self._plan = plan
        self._rows = stream_rows
        self._codec = codec
        self._verify = not codec.exact
        self._expand = not (codec.exact and unique)
        self._batch_bytes = batch_bytes
        self._dead_letters: DeadLetters | None = None
        self._lock = RLock()
        self._matched: list[tuple[Int64Array, pa.RecordBatch | None]] = []
        self._unmatched: list[Int64Array] = []
        self._pending_bytes = 0
        self.taken_columns = self.columns_of(plan, verify=self._verify)
        """The master columns that rows are taken with: those of the output, then those that verify a match."""

    @staticmethod
    def columns_of(plan: OutputPlan, *, verify: bool) -> tuple[str, ...]:
        """Return the master columns that the output needs."""
        needed = plan.master_columns if plan.how in ("inner", "left") else ()
        return (*needed, *(name for name in plan.master_keys if verify and name not in needed))

    @property
    def lock(self) -> RLock:
        """Guards the stream rows, too."""
        return self._lock

    @property
    def is_due(self) -> bool:
        """Whether a batch of the wanted size can be handed out."""
        return self._pending_bytes >= self._batch_bytes

    @property
    def is_overdue(self) -> bool:
        """Whether so much waits to be handed out that no more should be found for now."""
        return self._pending_bytes >= 2 * self._batch_bytes

    def answered(self, positions: Int64Array, pages: PageSet, rows: Int64Array) -> None:
        """Join stream tuples with rows of pages; row -1 means that the key is absent."""
        found = rows >= 0
        if not found.all():
            self.unmatched(positions[~found])
            positions, rows = positions[found], rows[found]
        if not len(rows):
            return
        if self._expand:
            lengths = run_lengths(pages.codes, rows)
            if (lengths > 1).any():
                within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
                positions, rows = np.repeat(positions, lengths), np.repeat(rows, lengths) + within
        self._match(positions, pages.take(rows, self.taken_columns) if self.taken_columns else None)

    def cached(self, positions: Int64Array, slots: Int64Array, cache: TupleCache) -> None:
        """Join stream tuples with cached rows."""
        absent = cache.is_absent(slots)
        if absent.any():
            self.unmatched(positions[absent])
            positions, slots = positions[~absent], slots[~absent]
        if not len(slots):
            return
        if self.taken_columns:
            rows, order = cache.take(slots)
            self._match(positions[order], rows)
        else:
            self._match(positions, None)

    def unmatched(self, positions: Int64Array) -> None:
        """Let stream tuples leave without a match."""
        if not len(positions):
            return
        with self._lock:
            if self._plan.keeps_unmatched:
                self._unmatched.append(positions)
                self._count(len(positions), 0)
            else:
                self._rows.release(positions)

    def send_dead_letters_to(self, take: DeadLetters) -> None:
        """Hand stream rows that cannot be processed to `take`."""
        self._dead_letters = take

    def refused(self, positions: Int64Array, reason: str) -> None:
        """Hand stream tuples to the dead letters, or raise if nobody takes them."""
        if not len(positions):
            return
        if self._dead_letters is None:
            raise RowTooLargeError(reason)
        with self._lock:
            letters = self._rows.gather(positions, release=True)
        self._dead_letters(letters, reason)

    def ready(self, *, flush: bool = False) -> Iterator[pa.RecordBatch]:
        """Hand out what is due, or with `flush` all there is."""
        with self._lock:
            if not (flush or self.is_due):
                return
            matched, self._matched = self._matched, []
            unmatched, self._unmatched = self._unmatched, []
            self._pending_bytes = 0
            made = list(self._assemble(matched, unmatched))
        yield from made

    def _match(self, positions: Int64Array, master: pa.RecordBatch | None) -> None:
        with self._lock:
            if self._verify:
                assert master is not None
                same = self._same_key(positions, master)
                if not same.all():
                    lost = np.setdiff1d(positions[~same], positions[same])
                    self.unmatched(lost)
                    positions, master = positions[same], master.filter(pa.array(same))
                    if not len(positions):
                        return
            if not self._plan.keeps_matched:
                self._rows.release(np.unique(positions) if self._expand else positions)
                return
            if self._plan.how == "semi":
                master = None
                positions = np.unique(positions) if self._expand else positions
            self._matched.append((positions, master))
            self._count(len(positions), master.nbytes if master is not None else 0)

    def _same_key(self, positions: Int64Array, master: pa.RecordBatch) -> BoolArray:
        stream = self._rows.gather(positions, release=False)
        ours = [stream.column(stream.schema.get_field_index(name)) for name in self._plan.stream_keys]
        theirs = [master.column(self.taken_columns.index(name)) for name in self._plan.master_keys]
        return self._codec.same_key(ours, theirs)

    def _count(self, rows: int, master_bytes: int) -> None:
        self._pending_bytes += master_bytes + int(rows * (16 + self._rows.mean_row_bytes))

    def _assemble(
        self, matched: list[tuple[Int64Array, pa.RecordBatch | None]], unmatched: list[Int64Array]
    ) -> Iterator[pa.RecordBatch]:
        if matched:
            positions = np.concatenate([positions for positions, _ in matched])
            stream = self._rows.gather(positions, release=not self._expand)
            if self._expand:
                self._rows.release(np.unique(positions))
            parts = [master for _, master in matched if master is not None]
            yield self._plan.assemble(stream, concatenate(parts) if parts else None)
        if unmatched:
            positions = np.concatenate(unmatched)
            yield self._plan.assemble(self._rows.gather(positions, release=True), None)
