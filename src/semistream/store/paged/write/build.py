"""Builds a version of a table from all its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream.store.paged.format.page import decode
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.versions.manifest import Manifest, TableFile
from semistream.store.paged.versions.new_version import NewVersion
from semistream.store.paged.versions.page_index import PageIndex
from semistream.store.paged.write.coding import Progress, coded_rows, silent
from semistream.store.paged.write.duplicates import DuplicateFilter, check_rule
from semistream.store.paged.write.packing import codes_of
from semistream.store.paged.write.row_sources import Source, open_source
from semistream.store.paged.write.sorting import ExternalSort, Run, piece_bytes_for
from semistream.store.paged.write.writer import PageWriter, new_data_file
from semistream.store.places.choice import PlaceOrAddress, place_of
from semistream.store.places.place import NewObject

PAGE_BYTES, PAGE_BYTES_OF_SMALL_TABLES = 8192, 4096
_SMALL_TABLE_BYTES = 1 << 30
SMALLEST_PAGE_BYTES = 512
LARGEST_TARGET_BYTES = 64 << 20


def build(
    data: Any,
    where: PlaceOrAddress,
    key: str | Sequence[str],
    *,
    page_bytes: int | None = None,
    on_duplicate: str = "error",
    memory: int | str = "256MB",
    progress: Progress | None = None,
    mirror: Mapping[str, Any] | None = None,
    check: Callable[[], None] | None = None,
) -> int:
    """Write all rows of `data` as the next version of the table at a place and return its number.

    Rows may come in any order and be far larger than `memory`; rows that come sorted by key are written at once. The
    version before stays current until the new one is complete, and readable until it is vacuumed. Without `page_bytes`
    pages are small if the table is. `mirror` says what the rows are a mirror of. `check` is called before
    the commit, and may refuse by raising.
    """
    check_settings(page_bytes, on_duplicate)
    memory_bytes = parse_bytes(memory)
    source = open_source(data)
    layout = RowLayout(source.schema, (key,) if isinstance(key, str) else key)
    with NewVersion(place_of(where), create=True) as version:
        task = _Build(version, layout, source, page_bytes, on_duplicate, memory_bytes, progress or silent)
        pages = task.run()
        unique = not pages.kept_duplicates
        if check is not None:
            check()
        return commit_build(
            version, layout, task.page_bytes, on_duplicate, [pages.file], pages.index, unique=unique, mirror=mirror
        )


def page_bytes_for(table_bytes: float | None) -> int:
    """Return how large the pages of a table of this size should be; None if nobody knows its size.

    A look-up costs a page, so small pages are better as long as their index is small beside the memory of a join: in
    pages of 4 kB it takes at most 9 MB.
    """
    is_small = table_bytes is not None and table_bytes <= _SMALL_TABLE_BYTES
    return PAGE_BYTES_OF_SMALL_TABLES if is_small else PAGE_BYTES


@dataclass(frozen=True)
class WrittenPages:
    """A data file with the index of its pages, in which the file has the number 0."""

    file: TableFile
    index: PageIndex
    kept_duplicates: bool
    """Whether rows of one key are in it."""


def check_settings(page_bytes: int | None, on_duplicate: str) -> None:
    """Raise InvalidSettingError unless a table can be built with these settings."""
    check_rule(on_duplicate)
    check_page_bytes(page_bytes)


def check_page_bytes(page_bytes: int | None) -> None:
    """Raise InvalidSettingError unless pages can have this size; None is one that suits the table."""
    if page_bytes is not None and not SMALLEST_PAGE_BYTES <= page_bytes <= LARGEST_TARGET_BYTES:
        raise InvalidSettingError(
            f"page_bytes is {page_bytes}: choose from {SMALLEST_PAGE_BYTES} to {LARGEST_TARGET_BYTES}."
        )


def write_pages(
    target: NewObject, layout: RowLayout, page_bytes: int, on_duplicate: str, batches: Iterable[pa.RecordBatch]
) -> WrittenPages:
    """Write sorted coded rows into a new data file, or leave no file behind if that fails."""
    return _UnfinishedPages(target, layout, page_bytes, on_duplicate, batches).finished()


class _UnfinishedPages:
    """Sorted coded rows in a new data file that is not yet there for good; on an error no file is left behind."""

    def __init__(
        self,
        target: NewObject,
        layout: RowLayout,
        page_bytes: int,
        on_duplicate: str,
        batches: Iterable[pa.RecordBatch],
    ) -> None:
        self._filtering = DuplicateFilter(layout, on_duplicate)
        self._file = new_data_file(target)
        self._writer = PageWriter(self._file, layout, page_bytes)
        try:
            for rows in self._filtering.filtered(batches):
                self._writer.add(rows)
            self._writer.write_rest()
        except BaseException:
            self._file.discard()
            raise

    def finished(self) -> WrittenPages:
        """Make the file last."""
        try:
            file = self._file.finish()
        except BaseException:
            self._file.discard()
            raise
        return WrittenPages(file, self._writer.index(0), self._filtering.kept_duplicates)

    def set_aside(self, label: str) -> tuple[NewObject, PageIndex]:
        """Return the pages as a temporary object, and where they lie in it."""
        try:
            written = self._file.set_aside(label)
        except BaseException:
            self._file.discard()
            raise
        return written, self._writer.index(0)


def commit_build(
    version: NewVersion,
    layout: RowLayout,
    page_bytes: int,
    on_duplicate: str,
    files: Sequence[TableFile],
    index: PageIndex,
    *,
    unique: bool,
    mirror: Mapping[str, Any] | None = None,
) -> int:
    """Make a version of data files that hold all rows of a table, and return its number."""
    described = Manifest(
        version=version.number,
        schema=layout.schema,
        key=layout.key,
        page_bytes=page_bytes,
        on_duplicate=on_duplicate,
        unique=unique,
        row_count=0,
        page_count=0,
        index=TableFile("", 0),
        files=tuple(files),
        mirror=mirror,
    )
    return version.commit(described, index, replaces_all=True)


class _Build:
    def __init__(
        self,
        version: NewVersion,
        layout: RowLayout,
        source: Source,
        page_bytes: int | None,
        on_duplicate: str,
        memory_bytes: int,
        progress: Progress,
    ) -> None:
        self._version = version
        self._layout = layout
        self._source = source
        self.page_bytes = page_bytes or PAGE_BYTES
        self._is_page_size_open = page_bytes is None
        self._on_duplicate = on_duplicate
        self._memory_bytes = memory_bytes
        self._progress = progress
        self._read_count = 0
        self._unsorted: pa.RecordBatch | None = None

    def run(self) -> WrittenPages:
        """Write the data file."""
        arriving = self._arriving()
        pages = self._written(self._sorted_start(arriving))
        if self._unsorted is None:
            return pages.finished()
        # What has been written is sorted, but more follows that belongs between: it becomes the first run of a sort.
        token = self._version.token
        sort = ExternalSort(self._version.place, token, self._layout.coded_schema, self._memory_bytes)
        try:
            sort.adopt(self._as_run(*pages.set_aside(f"{token}-sorted")))
            sort.add(self._unsorted)
            for rows in arriving:
                sort.add(rows)
            return self._written(self._counted(sort.sorted_rows())).finished()
        finally:
            sort.close()

    def _arriving(self) -> Iterator[pa.RecordBatch]:
        for rows in coded_rows(self._layout, self._source, piece_bytes_for(self._memory_bytes)):
            if self._is_page_size_open and not self._read_count:
                self.page_bytes = page_bytes_for(self._expected_bytes(rows))
            self._read_count += rows.num_rows
            self._progress("reading", self._read_count, self._source.row_count)
            yield rows

    def _expected_bytes(self, first: pa.RecordBatch) -> float | None:
        """Return the size of all rows, if they are like the first ones."""
        count = self._source.row_count
        return None if count is None else first.nbytes * count / max(1, first.num_rows)

    def _sorted_start(self, arriving: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows as long as they come sorted; the first batch that does not is put aside."""
        last: int | None = None
        for rows in arriving:
            codes = codes_of(rows)
            if (last is not None and codes[0] < last) or (codes[1:] < codes[:-1]).any():
                self._unsorted = rows
                return
            last = int(codes[-1])
            yield rows

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done = 0
        for rows in batches:
            done += rows.num_rows
            self._progress("writing", done, self._read_count)
            yield rows

    def _written(self, batches: Iterator[pa.RecordBatch]) -> _UnfinishedPages:
        # The size of pages is known with the first rows.
        first = next(batches, None)
        rest = batches if first is None else chain([first], batches)
        target = self._version.place.new_object(self._version.data_name)
        return _UnfinishedPages(target, self._layout, self.page_bytes, self._on_duplicate, rest)

    def _as_run(self, written: NewObject, index: PageIndex) -> Run:
        """Return a data file as a run of blocks of many pages."""
        piece_bytes = piece_bytes_for(self._memory_bytes)
        ends = (index.offsets + index.lengths).tolist()
        blocks: list[tuple[int, int, list[int]]] = []
        starts: list[int] = []
        for start, end in zip(index.offsets.tolist(), ends, strict=True):
            starts.append(start)
            if end - starts[0] >= piece_bytes or end == ends[-1]:
                blocks.append((starts[0], end - starts[0], [start - starts[0] for start in starts]))
                starts = []
        return Run(written, blocks, self._read_pages)

    def _read_pages(self, buffer: pa.Buffer, starts: list[int]) -> pa.RecordBatch:
        rows = pa.concat_batches(decode(buffer, starts, self._layout.page_schema))
        if self._layout.hidden_code:
            return rows
        encoded = self._layout.codec.encode([rows.column(0)])
        return self._layout.coded_rows(pa.array(np.ascontiguousarray(encoded.codes)), rows)
