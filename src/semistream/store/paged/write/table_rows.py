"""Coded rows out of the pages of a table: some pages at a time, or all rows in the order of their codes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions.heat_classes import class_bounds
from semistream.store.paged.write.sorting import merged_by_code


def read_rows(old: PagedFileStore, first_pages: Int64Array, last_pages: Int64Array) -> pa.RecordBatch:
    """Return the coded rows of ranges of pages."""
    read = old.read(first_pages, last_pages)
    columns = read.take(np.arange(len(read.codes)), old.layout.order).columns
    return pa.RecordBatch.from_arrays([pa.array(read.codes), *columns], schema=old.layout.coded_schema)


def rows_by_code(old: PagedFileStore, portion_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield all coded rows of a table in the order of their codes, of each heat class some pages at a time."""
    bounds = class_bounds(old.entries.classes, old.page_count).tolist()
    portion_bytes = max(1 << 16, portion_bytes // (len(bounds) - 1))
    classes = [PagesInOrder(old, first, after, portion_bytes) for first, after in itertools.pairwise(bounds)]
    if len(classes) == 1:
        yield from classes[0]
    else:
        yield from merged_by_code(classes)


class PagesInOrder(Iterator[pa.RecordBatch]):
    """The coded rows of neighbouring pages, in portions."""

    def __init__(self, old: PagedFileStore, first_page: int, after_page: int, portion_bytes: int) -> None:
        self._old = old
        self._first = self._page = first_page
        self._after = after_page
        self._ends = np.cumsum(old.page_bytes()[first_page:after_page])
        self._portion_bytes = portion_bytes

    @property
    def has_more(self) -> bool:
        """Whether there is another portion."""
        return self._page < self._after

    def next_block(self) -> pa.RecordBatch:
        """Return the next portion."""
        first = self._page
        before = int(self._ends[first - self._first - 1]) if first > self._first else 0
        within = int(np.searchsorted(self._ends, before + self._portion_bytes, side="right"))
        self._page = max(first + 1, self._first + within)
        return read_rows(self._old, np.array([first]), np.array([self._page - 1]))

    def __next__(self) -> pa.RecordBatch:
        if not self.has_more:
            raise StopIteration
        return self.next_block()
