"""A table of a database as a master table: pages are ranges of its key."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.budget import format_bytes
from semistream.core.errors import KeyTypeError, MasterNotFoundError, RowTooLargeError, UnknownColumnError
from semistream.core.keys import KeyCodec
from semistream.store.contract import Capabilities, MasterStore, PageSet
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column, Database, Description
from semistream.store.database.fences import FENCES, Fences
from semistream.store.database.row_reader import DatabaseRowReader
from semistream.store.found_rows import RowReader
from semistream.store.row_slices import RowSlices
from semistream.store.rows_within import RowsWithin
from semistream.store.sparse_index import SparseIndex

_SAMPLE_ROWS = 200
_SAMPLE_PAGES = 16
_MARGIN_BYTES = 1 << 20
"""A read may bring so much more than twice what was announced before it is refused."""


class DatabaseStore(MasterStore):
    """The rows of a table as they are when they are read; there are no versions, so `version` is a moment.

    A page is a range of keys, and neighbouring pages are one query. What a page has in bytes is taken from a sample of
    rows: a read that brings far more is an error that names the option `row_bytes`.
    """

    def __init__(self, database: Database, address: DatabaseAddress, version: int, identity: str) -> None:
        self._database = database
        self._address = address
        self._identity = identity
        described = database.describe()
        self._columns = described.columns
        self.schema = described.schema
        self.key = address.key
        self._key = _checked_key(described, address)
        self.codec = KeyCodec([self._key.type])
        self.version = version
        self.unique = described.unique
        self.capabilities = Capabilities(snapshot=False)
        known_by = (address, tuple((column.name, str(column.type)) for column in described.columns))
        self._fences = FENCES.of(known_by, self._found_fences)
        self.row_count = self._fences.row_count
        self.page_count = len(self._fences.first_codes)
        self._starts = np.concatenate(([0], np.cumsum(self._fences.rows)))
        self._index = SparseIndex(self._fences.first_codes)

    @property
    def identity(self) -> str:
        """The table and the moment."""
        return self._identity

    @property
    def index_bytes(self) -> int:
        """The fences of the pages, and how many rows lie between them."""
        return self._index.size_bytes + self._fences.rows.nbytes + self._starts.nbytes

    @property
    def largest_page_bytes(self) -> int:
        """The page with the most rows, of the size that rows are taken to have."""
        return int(self._fences.rows.max(initial=0)) * self._fences.row_bytes

    @property
    def first_codes(self) -> Int64Array:
        """The first code of each page."""
        return self._index.first_codes

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the page of each code."""
        return self._index.locate(codes)

    def page_bytes(self) -> Int64Array:
        """Return what each page is taken to have."""
        sizes: Int64Array = self._fences.rows * self._fences.row_bytes
        return sizes

    def range_bytes(self, first_page: int, last_page: int) -> int:
        """Return what the rows of these pages are taken to have."""
        return int(self._starts[last_page + 1] - self._starts[first_page]) * self._fences.row_bytes

    def ranges_bytes(self, first_pages: Int64Array, last_pages: Int64Array) -> int:
        """Return what the rows of all ranges are taken to have."""
        return int((self._starts[last_pages + 1] - self._starts[first_pages]).sum()) * self._fences.row_bytes

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Read ranges of pages; ranges that overlap or touch are read once, as one range."""
        lows, highs = self._fences.range_of(first_pages, last_pages)
        rows, codes = self._read(*_united(first_pages, last_pages, lows, highs))
        self._check_size(rows, first_pages, last_pages)
        starts = np.searchsorted(codes, lows, side="left").astype(np.int64)
        sizes = np.searchsorted(codes, highs, side="right") - starts
        bounds = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        chosen = np.repeat(starts - bounds[:-1], sizes) + np.arange(bounds[-1])
        table = pa.Table.from_batches([rows])
        counters: dict[tuple[str, ...], RowsWithin] = {}

        def counter(columns: tuple[str, ...]) -> RowsWithin:
            if columns not in counters:
                counters[columns] = RowsWithin([rows.column(name) for name in columns])
            return counters[columns]

        return RowSlices(codes[chosen], bounds, table, starts, counter, rows.nbytes)

    def row_reader(self, columns: Sequence[str], max_bytes: int) -> RowReader:
        """Return what asks for sets of keys, and only for these columns."""
        for name in columns:
            if name not in self.schema.names:
                raise UnknownColumnError(f"The table {self._address.table_name!r} has no column {name!r}.")
        chosen = [next(column for column in self._columns if column.name == name) for name in columns]
        return DatabaseRowReader(self._database, self._key, chosen, self.codec, max_bytes, self._fences.row_bytes)

    def close(self) -> None:
        """Close connections that are not in use."""
        self._database.close()

    def _read(self, lows: Int64Array, highs: Int64Array) -> tuple[pa.RecordBatch, Int64Array]:
        """Return the rows of ranges that do not overlap, sorted by code, and the codes."""
        if not len(lows):
            return pa.RecordBatch.from_pylist([], self.schema), np.empty(0, dtype=np.int64)
        rows = self._database.in_ranges(self._key, self._columns, lows, highs)
        codes = self._codes_of(rows.column(self.schema.get_field_index(self._key.name)))
        if (codes[1:] < codes[:-1]).any():
            order = np.argsort(codes, kind="stable")
            rows, codes = rows.take(pa.array(order)), codes[order]
        return rows, codes

    def _codes_of(self, keys: pa.Array) -> Int64Array:
        encoded = self.codec.encode([keys])
        if encoded.usable is not None:
            raise KeyTypeError(
                f"A key of the table {self._address.table_name!r} is above 2**63 - 1: make a view that casts it, "
                f"and name the view."
            )
        return encoded.codes

    def _check_size(self, rows: pa.RecordBatch, first_pages: Int64Array, last_pages: Int64Array) -> None:
        announced = self.ranges_bytes(first_pages, last_pages)
        if rows.nbytes <= 2 * announced + _MARGIN_BYTES:
            return
        needed = -(-rows.nbytes // max(1, rows.num_rows))
        raise RowTooLargeError(
            f"Rows of the table {self._address.table_name!r} take {format_bytes(rows.nbytes)}, but a "
            f"sample suggested {format_bytes(announced)}: give row_bytes={needed} or more in its address."
        )

    def _found_fences(self) -> Fences:
        began = time.monotonic()
        ends = self._database.ends(self._key, self._columns, _SAMPLE_ROWS)
        self._codes_of(ends.column(self._key.name))  # so that a key that is too high is refused
        row_bytes = self._address.row_bytes or _row_bytes(ends)
        step = max(1, self._address.page_bytes // row_bytes)
        count = self._database.row_count(self._key)
        first_keys = self._database.every(self._key, step) if count else pa.array([], self._key.type)
        codes, firsts = np.unique(np.sort(self._codes_of(first_keys)), return_index=True)
        # The nth of these keys is that of row n times step; rows may have come or gone since they were counted.
        starts = firsts.astype(np.int64) * step
        rows = np.diff(starts, append=max(count, int(starts[-1]) + 1)) if len(starts) else starts
        fences = Fences(codes, rows, row_bytes, time.monotonic(), time.monotonic() - began)
        if self._address.row_bytes is None and len(codes):
            fences = self._sampled(fences)
        return Fences(fences.first_codes, fences.rows, fences.row_bytes, time.monotonic(), time.monotonic() - began)

    def _sampled(self, fences: Fences) -> Fences:
        """Return the fences with the largest mean size of a row on some pages from everywhere."""
        pages = np.unique(np.linspace(0, len(fences.first_codes) - 1, _SAMPLE_PAGES).astype(np.int64))
        largest = fences.row_bytes
        for low, high in zip(*fences.range_of(pages, pages), strict=True):
            rows, _ = self._read(np.array([low]), np.array([high]))
            largest = max(largest, _row_bytes(rows))
        return Fences(fences.first_codes, fences.rows, largest, fences.made, fences.took_seconds)


def _row_bytes(rows: pa.RecordBatch) -> int:
    return max(1, -(-rows.nbytes // rows.num_rows)) if rows.num_rows else 64


def _checked_key(described: Description, address: DatabaseAddress) -> Column:
    """Return the key column, or raise an error if it cannot be the key of pages."""
    name, names = address.table_name, [column.name for column in described.columns]
    for key in address.key:
        if key not in names:
            raise MasterNotFoundError(f"The table {name!r} has no column {key!r}: name its key column by key=.")
    key_column = described.column(address.key[0])
    if len(address.key) > 1 or not KeyCodec([key_column.type]).exact or not _is_ordered(key_column.type):
        kinds = ", ".join(f"{key} ({described.column(key).declared})" for key in address.key)
        raise KeyTypeError(
            f"The key of the table {name!r} is {kinds}, but a table that is read in its database must have a key of "
            f"one column of integers, dates or timestamps: copy it with MasterTable.build, and use the copy."
        )
    if not described.indexed:
        raise KeyTypeError(
            f"The table {name!r} has no index on {address.key[0]!r}, so each look-up would read the whole table: "
            f"create an index, or copy it with MasterTable.build."
        )
    return key_column


def _is_ordered(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(data_type) or types.is_date(data_type) or types.is_timestamp(data_type))


def _united(
    first_pages: Int64Array, last_pages: Int64Array, lows: Int64Array, highs: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the ranges of codes without overlaps, ascending; those of neighbouring pages are one."""
    order = np.lexsort((last_pages, first_pages))
    last = np.maximum.accumulate(last_pages[order])
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = first_pages[order][1:] > last[:-1] + 1
    at = np.flatnonzero(begins)
    ends = np.append(at[1:], len(order)) - 1
    return lows[order][at], np.maximum.accumulate(highs[order])[ends] if len(ends) else highs
