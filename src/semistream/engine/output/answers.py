"""Tuples that have been answered, whose output rows are made piece by piece as there is room for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.compile import kernel
from semistream.core.keys import KeyCodec
from semistream.engine.output.output_plan import OutputPlan
from semistream.engine.rows.row_sizes import count_within, fixed_row_bytes
from semistream.engine.rows.tuple_rows import TupleRows
from semistream.store.contract import PageSet

_PAIR_BYTES = 48
"""What a pair of a tuple and a master row takes while its output row is made."""
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Matching:
    """What is to be known of a join to turn matches into output rows."""

    plan: OutputPlan
    codec: KeyCodec
    expand: bool
    """Several master rows may have the code of a tuple."""
    verify: bool
    """A match counts only if the keys themselves are equal, because their codes are hashed."""
    stream_keys_at: tuple[int, ...]
    stream_row_bytes: int
    """What a stream row takes in the output besides its variable columns."""

    @cached_property
    def row_bytes(self) -> int:
        """What an output row takes besides its variable columns."""
        return fixed_row_bytes([field.type for field in self.plan.schema])

    @cached_property
    def once(self) -> bool:
        """Whether a tuple is in the output at most once, however many master rows it matches."""
        return self.plan.how in ("semi", "anti")

    def same_key(self, stream: pa.RecordBatch, master: pa.RecordBatch) -> BoolArray:
        """Say which rows have the same key; both batches have the key columns alone."""
        return self.codec.same_key(stream.columns, master.columns)


@dataclass(frozen=True)
class Piece:
    """Some output rows: stream rows by their numbers, and beside each its master row, if they have one."""

    source: TupleRows
    tuples: Int64Array
    master: pa.RecordBatch | None
    done: Int64Array
    """The tuples of which no more output rows follow."""
    size_bytes: int
    unmatched: Int64Array
    """Tuples that have turned out to have no match."""


class Answer:
    """Tuples with the first master row that has their code, of which pieces of output rows are made.

    It may stop anywhere, also among the master rows of one tuple. Without pages the tuples have no match, and leave
    with nulls.
    """

    def __init__(
        self, matching: Matching, source: TupleRows, tuples: Int64Array, pages: PageSet | None, rows: Int64Array
    ) -> None:
        self.source = source
        self.pages = pages
        self._matching = matching
        self._tuples = tuples
        self._rows = rows
        self._at = 0
        self._within = 0
        """Of the tuple that is next, so many master rows have been looked at."""
        self._matched = False
        """Whether one of them has its key."""

    @property
    def is_finished(self) -> bool:
        """Whether all output rows have been made."""
        return self._at == len(self._tuples)

    @property
    def tuples_left(self) -> int:
        """How many tuples have output rows to come."""
        return len(self._tuples) - self._at

    def piece(self, limit_bytes: int) -> Piece:
        """Make the next output rows, as many as take about so many bytes; at least one, if some are left."""
        matching = self._matching
        if self.pages is None or not matching.expand or (matching.once and not matching.verify):
            return self._one_row_each(max(1, limit_bytes // matching.row_bytes), limit_bytes)
        return self._all_rows(max(1, limit_bytes // (matching.row_bytes + _PAIR_BYTES)), limit_bytes, self.pages)

    def _one_row_each(self, max_rows: int, limit_bytes: int) -> Piece:
        """Make a piece where a tuple has at most one output row."""
        tuples = self._tuples[self._at : self._at + max_rows]
        if self.pages is not None and not self._matching.plan.keeps_matched:
            self._at += len(tuples)
            return Piece(self.source, _NONE, None, tuples, 0, _NONE)
        sizes = self.source.variable_bytes(tuples)
        if sizes is not None:
            tuples = tuples[: count_within(sizes, limit_bytes)]
        master, master_bytes = None, 0
        if self.pages is not None and self._matching.plan.master_columns:
            rows = self._rows[self._at : self._at + len(tuples)]
            master, master_bytes = self.pages.take_within(rows, self._matching.plan.master_columns, limit_bytes)
            tuples = tuples[: master.num_rows]
        self._at += len(tuples)
        stream_bytes = 0 if sizes is None else int(sizes[: len(tuples)].sum())
        each_bytes = self._matching.stream_row_bytes if master is not None else self._matching.row_bytes
        return Piece(self.source, tuples, master, tuples, each_bytes * len(tuples) + stream_bytes + master_bytes, _NONE)

    def _all_rows(self, max_rows: int, limit_bytes: int, pages: PageSet) -> Piece:
        """Make a piece where a tuple may have several master rows, or none that has its key."""
        matching, first = self._matching, self._at
        of, rows = np.empty(max_rows, dtype=np.int64), np.empty(max_rows, dtype=np.int64)
        count, after, within = _pair(pages.codes, pages.bounds, self._rows, first, self._within, of, rows)
        fitting = self.source.count_within(self._tuples[of[:count]], limit_bytes)
        if fitting < count:
            count, after, within = fitting, *self._place_of(int(of[fitting]), int(rows[fitting]))
        of, rows = of[:count], rows[:count]
        same: BoolArray | None = None
        if matching.verify:
            keys, _ = pages.take_within(rows, matching.plan.master_keys, limit_bytes)
            if keys.num_rows < count:
                count = keys.num_rows
                after, within = self._place_of(int(of[count]), int(rows[count]))
                of, rows = of[:count], rows[:count]
            same = matching.same_key(self.source.take(self._tuples[of], matching.stream_keys_at), keys)
            of, rows = of[same], rows[same]
        chosen = of
        if matching.once:
            chosen = np.unique(of)
            if self._matched and len(chosen) and chosen[0] == first:
                chosen = chosen[1:]
        master, master_bytes = None, 0
        if matching.plan.master_columns and len(chosen):
            master, master_bytes = pages.take_within(rows, matching.plan.master_columns, limit_bytes)
            if master.num_rows < len(rows):
                after, within = self._place_of(int(of[master.num_rows]), int(rows[master.num_rows]))
                of = chosen = of[: master.num_rows]
        done, unmatched = self._tuples[first:after], _NONE
        if same is not None:
            has_match = self._settle(of, after)
            done, unmatched = done[has_match], done[~has_match]
        self._at, self._within = after, within
        if not matching.plan.keeps_matched:
            return Piece(self.source, _NONE, None, done, 0, unmatched)
        tuples = self._tuples[chosen]
        sizes = self.source.variable_bytes(tuples)
        stream_bytes = 0 if sizes is None else int(sizes.sum())
        size_bytes = matching.stream_row_bytes * len(tuples) + stream_bytes + master_bytes
        return Piece(self.source, tuples, master, done, size_bytes, unmatched)

    def _place_of(self, tuple_at: int, row: int) -> tuple[int, int]:
        """Return which tuple is next if a pair is, and how many of its master rows come before."""
        return tuple_at, row - int(self._rows[tuple_at])

    def _settle(self, matched: Int64Array, after: int) -> BoolArray:
        """Say which tuples up to `after` have a match, and remember whether the next one has one so far."""
        has_match = np.zeros(after - self._at + 1, dtype=np.bool_)
        has_match[matched - self._at] = True
        has_match[0] |= self._matched
        self._matched = bool(has_match[-1])
        return has_match[:-1]


@kernel
def _pair(
    codes: Int64Array, bounds: Int64Array, firsts: Int64Array, at: Any, within: Any, of: Int64Array, rows: Int64Array
) -> tuple[int, int, int]:
    """Fill in pairs of a tuple and a master row of its code, from a place among them on.

    Returns their number and where to go on: a tuple, and how many of its rows have been paired.
    """
    count = 0
    while at < firsts.shape[0]:
        first = firsts[at]
        end = bounds[np.searchsorted(bounds, first, side="right")]
        row = first + within
        while row < end and codes[row] == codes[first]:
            if count == of.shape[0]:
                return count, at, row - first
            of[count] = at
            rows[count] = row
            count += 1
            row += 1
        at += 1
        within = 0
    return count, at, 0
