"""Makes output rows of stream rows that are answered, in the order they came and in pieces of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.keys import KeyCodec
from semistream.engine.output.output_plan import OutputPlan
from semistream.engine.rows.merged_rows import NOWHERE, MergedRows
from semistream.engine.rows.row_sizes import RowSizes, cuts

_PAIR_BYTES = 40
"""What a pair of a stream row and a master row takes while it is worked on, without their columns."""


@dataclass(frozen=True)
class Answered:
    """Stream rows and where the master rows of each are."""

    batch: pa.RecordBatch
    places: Int64Array
    """The place of the first master row of each, as `MergedRows` has it."""
    counts: Int64Array | None
    """How many master rows each has, one place after the other; None if none has several."""
    refused: BoolArray | None
    """Which rows are not to leave at all; None if all may."""

    def sliced(self, start: int, end: int) -> Answered:
        """Return some of the rows."""
        return Answered(
            self.batch.slice(start, end - start),
            self.places[start:end],
            self.counts[start:end] if self.counts is not None else None,
            self.refused[start:end] if self.refused is not None else None,
        )


class OrderedOutput:
    """Makes record batches of at most about `piece_bytes`, but for single rows that are larger.

    Columns of the stream are passed on without a copy where no row is left out or repeated. Bytes are counted before
    they are copied, so that a piece ends before it is too large, also in the middle of the matches of one row.
    """

    def __init__(
        self, plan: OutputPlan, codec: KeyCodec, stream: pa.Schema, taken: pa.Schema, piece_bytes: int
    ) -> None:
        self._stream_sizes = RowSizes(stream)
        self._plan = plan
        self._codec = codec
        self._verify = not codec.exact
        self._piece_bytes = piece_bytes
        self._max_pairs = max(64, piece_bytes // _PAIR_BYTES)
        self._key_columns = [taken.get_field_index(name) for name in plan.master_keys] if self._verify else []
        self._column_names = taken.names

    def batches(self, answered: Answered, merged: MergedRows) -> Iterator[pa.RecordBatch]:
        """Yield the output of some rows."""
        if answered.counts is None and not self._verify:
            yield from self._kept(answered, merged, answered.places != NOWHERE)
            return
        counts = answered.counts if answered.counts is not None else (answered.places != NOWHERE).astype(np.int64)
        pairs = np.cumsum(np.maximum(counts, 1))
        start = 0
        while start < len(counts):
            before = int(pairs[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(pairs, before + self._max_pairs, side="right")))
            if end == start + 1 and counts[start] > self._max_pairs:
                yield from self._one_row(answered.sliced(start, end), int(counts[start]), merged)
            else:
                yield from self._rows_at_once(answered.sliced(start, end), counts[start:end], merged)
            start = end

    def _rows_at_once(self, answered: Answered, counts: Int64Array, merged: MergedRows) -> Iterator[pa.RecordBatch]:
        """Yield the output of rows whose pairs may be held together."""
        if not (counts > 1).any() and (not self._verify or self._same_keys(answered, merged).all()):
            yield from self._kept(answered, merged, counts > 0)
            return
        rows, places = _pairs(answered.places, counts)
        if self._verify:
            same = self._verified(answered.batch, rows, places, merged)
            rows, places = rows[same], places[same]
        matched = np.zeros(len(counts), dtype=np.bool_)
        matched[rows] = True
        if self._plan.how in ("semi", "anti"):
            yield from self._kept(answered, merged, matched)
            return
        if self._plan.keeps_unmatched:
            alone = np.flatnonzero(_allowed(~matched, answered.refused))
            rows = np.concatenate([rows, alone])
            places = np.concatenate([places, np.full(len(alone), NOWHERE, dtype=np.int64)])
            order = np.argsort(rows, kind="stable")
            rows, places = rows[order], places[order]
        yield from self._pieces(answered.batch, rows, places, merged)

    def _one_row(self, answered: Answered, count: int, merged: MergedRows) -> Iterator[pa.RecordBatch]:
        """Yield the output of a row with more matches than may be held together."""
        is_matched = False
        for first in range(0, count, self._max_pairs):
            pairs = min(self._max_pairs, count - first)
            places = answered.places[0] - first - np.arange(pairs, dtype=np.int64)
            rows = np.zeros(pairs, dtype=np.int64)
            if self._verify:
                same = self._verified(answered.batch, rows, places, merged)
                rows, places = rows[same], places[same]
            is_matched |= len(rows) > 0
            if self._plan.how in ("semi", "anti"):
                if is_matched:
                    break
            else:
                yield from self._pieces(answered.batch, rows, places, merged)
        if self._plan.how in ("semi", "anti") or not is_matched:
            nowhere = np.full(1, NOWHERE, dtype=np.int64)
            once = Answered(answered.batch, nowhere, None, answered.refused)
            yield from self._kept(once, merged, np.array([is_matched]))

    def _kept(self, answered: Answered, merged: MergedRows, matched: BoolArray) -> Iterator[pa.RecordBatch]:
        """Yield rows that have one master row each, or none, as the kind of join wants."""
        if self._plan.how == "left":
            kept = _allowed(np.ones(len(matched), dtype=np.bool_), answered.refused)
        elif self._plan.keeps_matched:
            kept = matched
        else:
            kept = _allowed(~matched, answered.refused)
        places = np.where(matched, answered.places, NOWHERE) if self._verify else answered.places
        if kept.all():
            yield from self._pieces(answered.batch, None, places, merged)
        else:
            rows = np.flatnonzero(kept)
            yield from self._pieces(answered.batch, rows, places[rows], merged)

    def _pieces(
        self, batch: pa.RecordBatch, rows: Int64Array | None, places: Int64Array, merged: MergedRows
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of a batch, all of them without `rows`, each beside the master row at its place."""
        for start, end in cuts(self._sizes(batch, rows, places, merged), len(places), self._piece_bytes):
            stream = batch.slice(start, end - start) if rows is None else batch.take(pa.array(rows[start:end]))
            master = None
            if self._plan.master_columns:
                arrays = merged.take(places[start:end])
                master = pa.RecordBatch.from_arrays(arrays, names=self._column_names)
            yield self._plan.assemble(stream, master)

    def _sizes(
        self, batch: pa.RecordBatch, rows: Int64Array | None, places: Int64Array, merged: MergedRows
    ) -> Int64Array | None:
        """Return what has to be copied for each row; None if all of it fits into a piece."""
        fixed, sizes = 0, None
        if self._plan.master_columns:
            fixed, sizes = merged.fixed_bytes, merged.variable_bytes(places)
        if rows is not None:  # else the columns of the stream are not copied
            stream = self._stream_sizes
            fixed += stream.fixed_bytes
            if stream.is_variable:
                of_stream = stream.of(batch, rows)
                sizes = of_stream if sizes is None else sizes + of_stream
        total = len(places) * fixed + (int(sizes.sum()) if sizes is not None else 0)
        if total <= self._piece_bytes:
            return None
        return np.full(len(places), fixed, dtype=np.int64) if sizes is None else sizes + fixed

    def _same_keys(self, answered: Answered, merged: MergedRows) -> BoolArray:
        """Say for rows with at most one master row each whether it has the very key of its row, if there is one."""
        answered_rows = np.flatnonzero(answered.places != NOWHERE)
        return self._verified(answered.batch, answered_rows, answered.places[answered_rows], merged)

    def _verified(self, batch: pa.RecordBatch, rows: Int64Array, places: Int64Array, merged: MergedRows) -> BoolArray:
        """Say which pairs of a stream row and a master row have the same key, some at a time."""
        same = np.ones(len(rows), dtype=np.bool_)
        for start, end in cuts(merged.variable_bytes(places), len(rows), self._piece_bytes):
            taken = pa.array(rows[start:end])
            ours = [batch.column(batch.schema.get_field_index(name)).take(taken) for name in self._plan.stream_keys]
            theirs = merged.take(places[start:end], self._key_columns)
            same[start:end] = self._codec.same_key(ours, theirs)
        return same


def _allowed(wanted: BoolArray, refused: BoolArray | None) -> BoolArray:
    return wanted if refused is None else wanted & ~refused


def _pairs(places: Int64Array, counts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return stream rows, each as often as it has master rows, and the places of these."""
    rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    within = np.arange(len(rows), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, places[rows] - within
