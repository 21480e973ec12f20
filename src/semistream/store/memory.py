"""A master table in memory: for tests, for experiments on the model clock, and as an upper bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.errors import DuplicateKeyError, KeyTypeError, NullKeyError, UnknownColumnError
from semistream.core.keys import KeyCodec
from semistream.store.contract import Capabilities, MasterStore, PageSet
from semistream.store.row_slices import RowSlices, only_chunk
from semistream.store.rows_within import RowsWithin
from semistream.store.sparse_index import SparseIndex


class MemoryStore(MasterStore):
    """A master table that is one sorted Arrow table; a read is a slice.

    `row_bytes` is what a row counts on a read; by default it is the mean size of a row. With `on_duplicate` "error" a
    repeated key is refused, with "all" every row of it is a match.
    """

    def __init__(
        self,
        rows: pa.Table,
        key: str | Sequence[str],
        *,
        rows_per_page: int = 64,
        row_bytes: int | None = None,
        on_duplicate: str = "error",
    ) -> None:
        self.key = (key,) if isinstance(key, str) else tuple(key)
        for name in self.key:
            if name not in rows.schema.names:
                raise UnknownColumnError(f"The master table has no column {name!r}: name its key column.")
        self.codec = KeyCodec([rows.schema.field(name).type for name in self.key])
        encoded = self.codec.encode([rows.column(name).combine_chunks() for name in self.key])
        if encoded.null_count:
            raise NullKeyError(f"{encoded.null_count} master rows have a null key: remove them or give them a key.")
        if encoded.usable is not None:
            raise KeyTypeError("A master row has an unsigned key above 2**63 - 1: cast the key to a string or decimal.")
        order = np.argsort(encoded.codes, kind="stable")
        self._codes = encoded.codes[order]
        if np.array_equal(order, np.arange(len(order))):
            self._rows = rows.combine_chunks()
        else:
            self._rows = rows.take(pa.array(order)).combine_chunks()
        self.unique = not self._has_duplicates()
        if not self.unique and on_duplicate == "error":
            raise DuplicateKeyError(f"The key {self._first_duplicate()} occurs in several master rows.")
        self.schema = rows.schema
        self.version = 1
        self.row_count = len(self._codes)
        self._starts = _page_starts(self._codes, rows_per_page)
        self.page_count = len(self._starts) - 1
        self.capabilities = Capabilities(snapshot=True)
        self._counters: dict[tuple[str, ...], RowsWithin] = {}
        self._row_bytes = row_bytes or max(1, round(rows.nbytes / max(1, len(rows))))
        self._index = SparseIndex(self._codes[self._starts[:-1]])

    @classmethod
    def of_codes(cls, row_count: int, *, row_bytes: int, page_bytes: int = 8192) -> MemoryStore:
        """Return a table of the keys 1 to `row_count` and nothing else, whose rows count `row_bytes` on a read."""
        rows = pa.table({"key": np.arange(1, row_count + 1, dtype=np.int64)})
        return cls(rows, "key", rows_per_page=max(1, page_bytes // row_bytes), row_bytes=row_bytes)

    @property
    def index_bytes(self) -> int:
        """The size of the sparse index."""
        return self._index.size_bytes

    @property
    def largest_page_bytes(self) -> int:
        """The most rows on a page, in bytes."""
        return int(np.diff(self._starts).max(initial=0)) * self._row_bytes

    @property
    def first_codes(self) -> Int64Array:
        """The first code of each page."""
        return self._index.first_codes

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the page of each code."""
        return self._index.locate(codes)

    def range_bytes(self, first_page: int, last_page: int) -> int:
        """Return the size of the rows on these pages."""
        return int(self._starts[last_page + 1] - self._starts[first_page]) * self._row_bytes

    def ranges_bytes(self, first_pages: Int64Array, last_pages: Int64Array) -> int:
        """Return the size of the rows on the pages of all ranges."""
        return int((self._starts[last_pages + 1] - self._starts[first_pages]).sum()) * self._row_bytes

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Return the rows of these pages without copying them when they are one range."""
        starts = self._starts[first_pages]
        if len(starts) == 1:
            base, end = int(starts[0]), int(self._starts[last_pages[0] + 1])
            return RowSlices(self._codes[base:end], np.array([0, end - base]), self._rows, starts, self._counter)
        sizes = self._starts[last_pages + 1] - starts
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.repeat(starts - bounds[:-1], sizes) + np.arange(bounds[-1])
        return RowSlices(self._codes[rows], bounds, self._rows, starts, self._counter)

    def _counter(self, columns: tuple[str, ...]) -> RowsWithin:
        """Return what counts the bytes of rows of some columns; looked up in one step, so threads may share it."""
        counter = self._counters.get(columns)
        if counter is None:
            counter = RowsWithin([only_chunk(self._rows.column(name)) for name in columns])
            self._counters[columns] = counter
        return counter

    def _has_duplicates(self) -> bool:
        same_code = np.flatnonzero(self._codes[1:] == self._codes[:-1])
        if self.codec.exact or not len(same_code):
            return bool(len(same_code))
        left, right = (
            [pc.take(self._rows.column(name), pa.array(same_code + shift)).combine_chunks() for name in self.key]
            for shift in (0, 1)
        )
        return bool(self.codec.same_key(left, right).any())

    def _first_duplicate(self) -> str:
        row = int(np.flatnonzero(self._codes[1:] == self._codes[:-1])[0])
        return ", ".join(f"{name}={self._rows.column(name)[row]}" for name in self.key)


def _page_starts(codes: Int64Array, rows_per_page: int) -> Int64Array:
    """Return where pages start, and the row count: every `rows_per_page` rows, moved back so as not to part a code."""
    starts = np.arange(0, len(codes), rows_per_page, dtype=np.int64)
    starts = np.searchsorted(codes, codes[starts], side="left").astype(np.int64)
    return np.append(starts[np.diff(starts, prepend=-1) > 0], len(codes))
