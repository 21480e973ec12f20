"""Merges changed rows into a table: pages that they touch are written anew, all others are shared."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.core.budget import parse_bytes
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions.heat_classes import class_bounds
from semistream.store.paged.versions.manifest import Manifest, TableFile
from semistream.store.paged.versions.new_version import NewVersion, repeated
from semistream.store.paged.versions.page_index import PageIndex, in_order
from semistream.store.paged.write.arriving_changes import ArrivingChanges
from semistream.store.paged.write.changes import Changes, aligned_changes, dropped_rows, parted_by_pages
from semistream.store.paged.write.coding import Progress, silent
from semistream.store.paged.write.compaction import copy_pages, files_to_fold, live_bytes_of
from semistream.store.paged.write.duplicates import DuplicateFilter, whole_codes
from semistream.store.paged.write.packing import codes_of
from semistream.store.paged.write.writer import AppendFile, PageWriter, new_data_file
from semistream.store.places.choice import PlaceOrAddress, place_of


def merge(
    where: PlaceOrAddress,
    upserts: Any = None,
    deletes: Any = None,
    *,
    memory: int | str = "256MB",
    progress: Progress | None = None,
) -> int:
    """Delete rows by key, then insert or replace rows by key, as the next version; return the number of the version.

    Upserts have the columns of the table and no others, deletes at least its key columns. Of several upserts of a key
    the last one counts, but a table built with "all" keeps them all, in place of every row that the key had. A merge
    that changes nothing makes no version.
    """
    memory_bytes = parse_bytes(memory)
    place, report = place_of(where), progress or silent
    with ExitStack() as cleanup:
        # Half of the memory sorts the upserts, half the deletes; the merge itself comes after both.
        arriving = ArrivingChanges(place, memory_bytes // 2, report, cleanup)

        def attempt() -> int:
            with NewVersion(place) as version, PagedFileStore(place, version=version.base) as old:
                arriving.are_for(old.layout, version.token)
                filtering = DuplicateFilter(old.layout, "all" if old.manifest.on_duplicate == "all" else "latest")
                changes = arriving.upserts(upserts), arriving.deletes(deletes)
                return apply_changes(version, old, filtering, *changes, memory_bytes, report)

        return repeated(place, attempt)


def apply_changes(
    version: NewVersion,
    old: PagedFileStore,
    filtering: DuplicateFilter,
    upserts: Iterable[pa.RecordBatch],
    deletes: Iterable[pa.RecordBatch],
    memory_bytes: int,
    progress: Progress,
) -> int:
    """Write the pages that sorted coded changes touch, commit them, and return the number of the version."""
    aligned = aligned_changes(filtering.filtered(upserts), whole_codes(deletes))
    return apply_aligned(version, old, filtering, aligned, memory_bytes, progress, old.manifest.mirror)


def apply_aligned(
    version: NewVersion,
    old: PagedFileStore,
    filtering: DuplicateFilter,
    aligned: Iterable[Changes],
    memory_bytes: int,
    progress: Progress,
    mirror: Mapping[str, Any] | None,
) -> int:
    """Write the pages that changes touch, commit them with what they are a mirror of, and return the version.

    There is no new version if neither changes.
    """
    file = new_data_file(version.place.new_object(version.data_name))
    try:
        task = _Merge(old, file, progress)
        for changes in aligned:
            for number, part in parted_by_pages(changes, old, max(1 << 16, memory_bytes // 8)):
                task.apply(number, part)
        task.finish()
        if not task.rewritten.any() and not task.row_count:
            file.discard()
            if mirror == old.manifest.mirror:
                return old.version
            return version.commit(replace(old.manifest, mirror=mirror), old.entries)
        described, index = _merged(old, task, file)
        if described.files and described.files[-1].name == file.name:
            file.finish()
        else:
            file.discard()
    finally:
        file.close()
    unique = old.manifest.unique and not filtering.kept_duplicates
    return version.commit(replace(described, unique=unique, mirror=mirror), index)


def _merged(old: PagedFileStore, task: _Merge, file: AppendFile) -> tuple[Manifest, PageIndex]:
    """Return the files and the index of the next version: pages that stay, that were copied, and that are new."""
    manifest, rewritten, classes = old.manifest, task.rewritten, old.entries.classes
    live_bytes = live_bytes_of(old.entries.chosen(np.flatnonzero(~rewritten)), len(manifest.files))
    folded = files_to_fold(live_bytes, [file.name for file in manifest.files], file.size_bytes)
    copied = np.flatnonzero(~rewritten & folded[old.entries.files])
    staying = np.flatnonzero(~rewritten & ~folded[old.entries.files])
    kept = old.entries.chosen(staying)
    used = np.unique(kept.files)
    new_numbers = np.zeros(len(manifest.files), dtype=np.int64)
    new_numbers[used] = np.arange(len(used))
    parts = [(kept.renumbered(new_numbers), _classes_of(old, staying))]
    files = [manifest.files[number] for number in used.tolist()]
    copies = dict(manifest.copied)
    parts += task.indexes(len(files))
    if len(copied):
        copies[file.name] = file.size_bytes
        parts.append((copy_pages(old, copied, file, len(files)), _classes_of(old, copied)))
    if task.row_count or len(copied):
        files.append(TableFile(file.name, file.size_bytes))
    by_use = manifest.by_use and replace(manifest.by_use, same_rows_as=())
    return replace(manifest, files=tuple(files), copied=copies, by_use=by_use), in_order(parts, classes)


def _classes_of(old: PagedFileStore, pages: Int64Array) -> UInt8Array:
    classes = old.entries.classes
    return np.zeros(len(pages), dtype=np.uint8) if classes is None else classes.of_pages(pages)


class _Merge:
    """Merges each heat class by itself, all of them into one file; a table in one order has one class."""

    def __init__(self, old: PagedFileStore, file: AppendFile, progress: Progress) -> None:
        self._progress = progress
        self._done = 0
        self.rewritten = np.zeros(old.page_count, dtype=np.bool_)
        """Which of the old pages are not in the next version."""
        bounds = class_bounds(old.entries.classes, old.page_count).tolist()
        self._classes = [
            _MergeOfClass(old, first, after, PageWriter(file, old.layout, old.manifest.page_bytes), self.rewritten)
            for first, after in itertools.pairwise(bounds)
        ]

    @property
    def row_count(self) -> int:
        """How many rows were written."""
        return sum(one.writer.row_count for one in self._classes)

    def apply(self, number: int, changes: Changes) -> None:
        """Apply changes of a class, with codes above all before in it, and complete up to `changes.last_code`."""
        self._classes[number].apply(changes)
        self._done += changes.upserts.num_rows + changes.deletes.num_rows
        self._progress("merging", self._done, None)

    def finish(self) -> None:
        """Write all rows that are still held."""
        for one in self._classes:
            one.finish()

    def indexes(self, file_number: int) -> list[tuple[PageIndex, UInt8Array]]:
        """Return the entries of the new pages, in a data file of this number, and their classes."""
        written = [one.writer.index(file_number) for one in self._classes if one.writer.row_count]
        numbers = [number for number, one in enumerate(self._classes) if one.writer.row_count]
        return [
            (index, np.full(len(index), number, dtype=np.uint8)) for index, number in zip(written, numbers, strict=True)
        ]


class _MergeOfClass:
    """Reads the pages that changes touch, in order, and writes what they become.

    Rows of the last touched page whose codes are above those of the changes so far are carried along, since the next
    changes may fall between them.
    """

    def __init__(
        self, old: PagedFileStore, first_page: int, after_page: int, writer: PageWriter, rewritten: BoolArray
    ) -> None:
        self._old = old
        self._has_pages = after_page > first_page
        self._layout = old.layout
        self.writer = writer
        self._carried = _no_rows(self._layout.coded_schema)
        self._last_read = first_page - 1
        self._last_written = first_page - 1
        self._rewritten = rewritten

    def apply(self, changes: Changes) -> None:
        """Apply changes whose codes are above all before and complete up to `changes.last_code`."""
        rows = self._touched_rows(changes)
        codes = codes_of(rows)
        count = int(np.searchsorted(codes, changes.last_code, side="right"))
        entered = self._pages(codes_of(self._carried)[:1])
        now, left = rows.slice(0, count), rows.slice(count)
        dropped = dropped_rows(self._layout, now, changes)
        now_pages = self._pages(codes_of(now))
        upserted = self._pages(codes_of(changes.upserts))
        changed = np.unique(np.concatenate([upserted, now_pages[dropped], entered]))
        # A page on which deletes found nothing stays as it is; if later changes touch it, it is read again.
        survivors = now.filter(pa.array(~dropped & np.isin(now_pages, changed)))
        self._write(_in_order(survivors, changes.upserts))
        self._carried = left if np.isin(self._pages(codes_of(left)[:1]), changed).any() else left.slice(0, 0)
        if len(changed):
            self._last_read = int(changed[-1])
        self._rewritten[changed] = True

    def finish(self) -> None:
        """Write the rows that were carried along, and all that the writer holds."""
        self._write(self._carried)
        self.writer.write_rest()

    def _touched_rows(self, changes: Changes) -> pa.RecordBatch:
        pages = np.unique(self._pages(changes.codes))
        pages = pages[pages > self._last_read]
        if not len(pages):
            return self._carried
        starts = np.flatnonzero(np.diff(pages, prepend=-2) > 1)
        ends = np.append(starts[1:], len(pages)) - 1
        touched = self._old.read(pages[starts], pages[ends])
        columns = touched.take(np.arange(len(touched.codes)), self._layout.order).columns
        read = pa.RecordBatch.from_arrays([pa.array(touched.codes), *columns], schema=self._layout.coded_schema)
        return pa.concat_batches([self._carried, read])

    def _pages(self, codes: Int64Array) -> Int64Array:
        if not self._has_pages:
            return np.zeros(0, dtype=np.int64)
        return self._old.locate(codes).astype(np.int64)

    def _write(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        pages = self._pages(codes_of(rows))
        if not len(pages):
            self.writer.add(rows)
            return
        # A new page must not reach over an old one that stays.
        breaks = np.diff(pages, prepend=self._last_written) > 1
        self._last_written = int(pages[-1])
        self.writer.add(rows, breaks)


def _in_order(survivors: pa.RecordBatch, upserts: pa.RecordBatch) -> pa.RecordBatch:
    if not survivors.num_rows or not upserts.num_rows:
        return survivors if survivors.num_rows else upserts
    codes = np.concatenate([codes_of(survivors), codes_of(upserts)])
    return pa.concat_batches([survivors, upserts]).take(pa.array(np.argsort(codes, kind="stable")))


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
