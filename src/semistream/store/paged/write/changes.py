"""Upserts and deletes side by side, in the order of their codes, in portions that fit the memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.keys import KeyCodec
from semistream.store.paged.format.row_layout import CODE_FIELD, RowLayout
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.write.duplicates import distinct_keys
from semistream.store.paged.write.packing import codes_of

_NONE = pa.RecordBatch.from_arrays([pa.array([], pa.int64())], schema=pa.schema([CODE_FIELD]))


@dataclass(frozen=True)
class Changes:
    """All upserts and deletes with codes above those before and up to `last_code`."""

    upserts: pa.RecordBatch
    deletes: pa.RecordBatch
    last_code: int

    @property
    def codes(self) -> Int64Array:
        """The codes of both, not in order."""
        return np.concatenate([codes_of(self.upserts), codes_of(self.deletes)])


def aligned_changes(upserts: Iterator[pa.RecordBatch], deletes: Iterator[pa.RecordBatch]) -> Iterator[Changes]:
    """Yield both together; each must come sorted, with all rows of one code in one batch."""
    above, below = _next(upserts), _next(deletes)
    while above.num_rows or below.num_rows:
        last_code = min(int(codes_of(rows)[-1]) for rows in (above, below) if rows.num_rows)
        taken_above, above = _parted(above, last_code)
        taken_below, below = _parted(below, last_code)
        yield Changes(taken_above, taken_below, last_code)
        above = above if above.num_rows else _next(upserts)
        below = below if below.num_rows else _next(deletes)


def parted_by_pages(changes: Changes, old: PagedFileStore, limit_bytes: int) -> Iterator[tuple[int, Changes]]:
    """Yield changes in portions that touch at most about `limit_bytes` of pages, each with the heat class it is of.

    A table in one order has one class.
    """
    for number, of_class in _parted_by_class(changes, old):
        yield from ((number, part) for part in _parted_by_pages(of_class, old, limit_bytes))


def _parted_by_class(changes: Changes, old: PagedFileStore) -> Iterator[tuple[int, Changes]]:
    classes = old.entries.classes
    if classes is None:
        yield 0, changes
        return
    above, below = (classes.heat_map.class_of(codes_of(rows)) for rows in (changes.upserts, changes.deletes))
    for number in np.flatnonzero(np.bincount(np.concatenate([above, below]))).tolist():
        upserts, deletes = (
            rows.filter(pa.array(of_rows == number))
            for rows, of_rows in ((changes.upserts, above), (changes.deletes, below))
        )
        yield number, Changes(upserts, deletes, changes.last_code)


def _parted_by_pages(changes: Changes, old: PagedFileStore, limit_bytes: int) -> Iterator[Changes]:
    if not old.page_count:
        yield changes
        return
    pages = np.unique(old.locate(changes.codes))
    portions = np.cumsum(old.entries.lengths[pages].astype(np.int64)) // limit_bytes
    above, below = changes.upserts, changes.deletes
    for page in pages[1:][np.diff(portions) > 0].tolist():
        last_code = int(old.entries.first_codes[page]) - 1
        taken_above, above = _parted(above, last_code)
        taken_below, below = _parted(below, last_code)
        yield Changes(taken_above, taken_below, last_code)
    yield Changes(above, below, changes.last_code)


def dropped_rows(layout: RowLayout, rows: pa.RecordBatch, changes: Changes) -> BoolArray:
    """Say for each sorted coded row whether a change has its key."""
    dropped = np.zeros(rows.num_rows, dtype=np.bool_)
    if not rows.num_rows:
        return dropped
    keys = layout.key_columns(rows)
    if changes.upserts.num_rows:
        dropped |= _matched(layout.codec, codes_of(rows), keys, changes.upserts, layout.key_columns(changes.upserts))
    if changes.deletes.num_rows:
        dropped |= _matched(layout.codec, codes_of(rows), keys, changes.deletes, changes.deletes.columns[1:])
    return dropped


def _matched(
    codec: KeyCodec, codes: Int64Array, keys: list[pa.Array], changes: pa.RecordBatch, change_keys: list[pa.Array]
) -> BoolArray:
    wanted, wanted_keys = distinct_keys(codec, codes_of(changes), change_keys)
    first = np.searchsorted(wanted, codes, side="left")
    counts = np.searchsorted(wanted, codes, side="right") - first
    matched: BoolArray = counts > 0
    if codec.exact or not matched.any():
        return matched
    # Rows of one code need not have one key: compare each with all wanted keys of its code.
    ours = np.repeat(np.arange(len(codes)), counts)
    theirs = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(ours))
    left, right = pa.array(ours), pa.array(theirs)
    same = codec.same_key([key.take(left) for key in keys], [key.take(right) for key in wanted_keys])
    matched[:] = False
    matched[ours[same]] = True
    return matched


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    return next((rows for rows in batches if rows.num_rows), _NONE)


def _parted(rows: pa.RecordBatch, last_code: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    count = int(np.searchsorted(codes_of(rows), last_code, side="right"))
    return rows.slice(0, count), rows.slice(count)
