"""Leaves out of arriving changes what the table has already, so that a repeated change costs no page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.row_equality import equal_rows
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.write.changes import Changes, aligned_changes, dropped_rows, parted_by_pages
from semistream.store.paged.write.coding import Progress
from semistream.store.paged.write.duplicates import whole_codes
from semistream.store.paged.write.packing import codes_of
from semistream.store.paged.write.table_rows import read_rows, rows_by_code


class Difference:
    """Turns sorted coded rows of a source into the changes that bring a table in step with it, and counts them.

    Rows are compared in groups of one code: a group that differs in anything is replaced as a whole.
    """

    def __init__(self, old: PagedFileStore, memory_bytes: int, progress: Progress) -> None:
        self._old = old
        self._layout = old.layout
        self._portion_bytes = max(1 << 16, memory_bytes // 8)
        self._progress = progress
        self._done = 0
        self.upserted_rows = 0
        """Rows that were inserted or replaced."""
        self.deleted_rows = 0
        """Rows whose key has none any more."""

    def from_all_rows(self, rows: Iterable[pa.RecordBatch]) -> Iterator[Changes]:
        """Yield what differs between the table and a source that gives all its rows; costs a read of the table."""
        for both in aligned_changes(iter(rows), rows_by_code(self._old, self._portion_bytes)):
            yield from self._changed(both, both.upserts, both.deletes)

    def from_changes(self, upserts: Iterable[pa.RecordBatch], deletes: Iterable[pa.RecordBatch]) -> Iterator[Changes]:
        """Yield what is new in some upserts and deletes; costs a read of the pages that they touch."""
        for changes in aligned_changes(iter(upserts), whole_codes(deletes)):
            for _, part in parted_by_pages(changes, self._old, self._portion_bytes):
                yield from self._new_in(part)

    def _new_in(self, part: Changes) -> Iterator[Changes]:
        table = self._rows_of(part.codes)
        # What is deleted and inserted again counts as replaced.
        again = np.isin(codes_of(part.upserts), codes_of(part.deletes))
        stays = np.isin(codes_of(table), codes_of(part.deletes))
        same, same_in_table = _same_groups(part.upserts, table)
        upserts = part.upserts.filter(pa.array(~same | again))
        old = table.filter(pa.array(~same_in_table | stays))
        gone = dropped_rows(self._layout, old, Changes(upserts.slice(0, 0), part.deletes, part.last_code))
        if upserts.num_rows:
            gone &= ~dropped_rows(self._layout, old, Changes(upserts, part.deletes.slice(0, 0), part.last_code))
        yield from self._counted(upserts, self._keys(old.filter(pa.array(gone))), part.last_code)

    def _changed(self, both: Changes, rows: pa.RecordBatch, table: pa.RecordBatch) -> Iterator[Changes]:
        same, same_in_table = _same_groups(rows, table)
        upserts, old = rows.filter(pa.array(~same)), table.filter(pa.array(~same_in_table))
        self._done += table.num_rows
        self._progress("comparing", self._done, self._old.row_count)
        if old.num_rows and upserts.num_rows:
            replaced = dropped_rows(self._layout, old, Changes(upserts, old.slice(0, 0), both.last_code))
            old = old.filter(pa.array(~replaced))
        yield from self._counted(upserts, self._keys(old), both.last_code)

    def _counted(self, upserts: pa.RecordBatch, deletes: pa.RecordBatch, last_code: int) -> Iterator[Changes]:
        self.upserted_rows += upserts.num_rows
        self.deleted_rows += deletes.num_rows
        if upserts.num_rows or deletes.num_rows:
            yield Changes(upserts, deletes, last_code)

    def _keys(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return coded rows as deletes: the code and the key."""
        if not rows.num_rows:
            return rows.select([0])
        columns = [rows.column(0), *self._layout.key_columns(rows)]
        return pa.RecordBatch.from_arrays(columns, names=[rows.schema.names[0], *self._layout.key])

    def _rows_of(self, codes: Int64Array) -> pa.RecordBatch:
        """Return the coded rows of the table that have one of these codes."""
        if not self._old.page_count or not len(codes):
            return pa.RecordBatch.from_arrays(
                [pa.array([], field.type) for field in self._layout.coded_schema], schema=self._layout.coded_schema
            )
        pages = np.unique(self._old.locate(np.unique(codes)).astype(np.int64))
        starts = np.flatnonzero(np.diff(pages, prepend=-2) > 1)
        ends = np.append(starts[1:], len(pages)) - 1
        rows = read_rows(self._old, pages[starts], pages[ends])
        return rows.filter(pa.array(np.isin(codes_of(rows), codes)))


def checked_at_the_end(changes: Iterable[Changes], check: Callable[[], None] | None) -> Iterator[Changes]:
    """Yield changes, then call what may refuse them by raising: nothing is committed yet."""
    yield from changes
    if check is not None:
        check()


def _same_groups(rows: pa.RecordBatch, table: pa.RecordBatch) -> tuple[BoolArray, BoolArray]:
    """Say for each row on both sides whether all rows of its code are the same on the other side; both are sorted."""
    same, same_in_table = np.zeros(rows.num_rows, dtype=np.bool_), np.zeros(table.num_rows, dtype=np.bool_)
    if not rows.num_rows or not table.num_rows:
        return same, same_in_table
    ours, our_starts, our_counts = np.unique(codes_of(rows), return_index=True, return_counts=True)
    theirs, their_starts, their_counts = np.unique(codes_of(table), return_index=True, return_counts=True)
    _, at, there = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    as_many = our_counts[at] == their_counts[there]
    at, there = at[as_many], there[as_many]
    counts = our_counts[at]
    places, their_places = _expanded(our_starts[at], counts), _expanded(their_starts[there], counts)
    if not len(places):
        return same, same_in_table
    compared = equal_rows(_columns(rows, places), _columns(table, their_places))
    groups = np.logical_and.reduceat(compared, np.cumsum(counts) - counts)
    equal = np.repeat(groups, counts)
    same[places[equal]] = True
    same_in_table[their_places[equal]] = True
    return same, same_in_table


def _columns(rows: pa.RecordBatch, places: Int64Array) -> list[pa.Array]:
    chosen = rows if len(places) == rows.num_rows else rows.take(pa.array(places))
    columns: list[pa.Array] = chosen.columns[1:]
    return columns


def _expanded(starts: Int64Array, counts: Int64Array) -> Int64Array:
    """Return the numbers of all rows of groups that start there and have so many rows."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(int(ends[-1]) if len(ends) else 0)
