"""A table of a database as a master table: pages are ranges of its key."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.budget import format_bytes
from semistream.core.errors import RowTooLargeError
from semistream.store.contract import PageSet
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column, Database, Description, ResultTooLargeError
from semistream.store.database.described_table import check_codable, mean_row_bytes, sample
from semistream.store.database.fences import Fences
from semistream.store.database.moment_store import MomentStore
from semistream.store.row_slices import RowSlices
from semistream.store.rows_within import RowsWithin
from semistream.store.sparse_index import SparseIndex

_SAMPLE_PAGES = 16
_SAMPLE_ROW_BYTES = 1 << 16
"""What rows of sampled pages may have, of which nothing is known yet."""
_AS_SENT = 4
"""Rows may take so many times more as they are sent than as they are held: booleans and small integers do."""
_MARGIN_BYTES = 1 << 20
"""A read may bring so much more than twice what was announced before it is refused."""


class DatabaseStore(MomentStore):
    """The rows of a table whose key has an order in its database.

    A page is a range of keys, and neighbouring pages are one query. What a page has in bytes is taken from a sample of
    rows: a read that brings far more is an error that names the option `row_bytes`.
    """

    has_pages = True

    def __init__(
        self, database: Database, described: Description, address: DatabaseAddress, version: int, identity: str
    ) -> None:
        super().__init__(database, described, address, version, identity)
        self._starts = np.concatenate(([0], np.cumsum(self._fences.rows)))
        self._index = SparseIndex(self._fences.first_codes)

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
        count = int((self._starts[last_pages + 1] - self._starts[first_pages]).sum())
        rows, codes = self._read(*_united(first_pages, last_pages, lows, highs), count, self._fences.row_bytes)
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

    def _rows_before(self) -> Int64Array:
        return self._starts

    @property
    def _ordered(self) -> Column:
        """The only column of the key."""
        return self._key[0]

    def _read(
        self, lows: Int64Array, highs: Int64Array, count: int, row_bytes: int
    ) -> tuple[pa.RecordBatch, Int64Array]:
        """Return the rows of ranges that do not overlap, sorted by code, and the codes.

        About `count` rows of `row_bytes` are expected; far more is an error, before it is here.
        """
        if not len(lows):
            return pa.RecordBatch.from_pylist([], self.schema), np.empty(0, dtype=np.int64)
        announced = count * row_bytes
        limit = 2 * announced + _MARGIN_BYTES
        try:
            rows = self._database.in_ranges(self._ordered, self._columns, lows, highs, _AS_SENT * limit)
            taken, needed = rows.nbytes, -(-rows.nbytes // max(1, rows.num_rows))
        except ResultTooLargeError as error:
            taken, needed = error.size_bytes, -(-error.size_bytes // max(1, count))
        if taken > limit:
            raise RowTooLargeError(
                f"Rows of the table {self._address.table_name!r} take {format_bytes(taken)} where "
                f"{format_bytes(announced)} were expected from a sample: give row_bytes={needed} or more in its "
                f"address."
            )
        codes = self._codes_of(rows.column(self.schema.get_field_index(self._ordered.name)))
        if (codes[1:] < codes[:-1]).any():
            order = np.argsort(codes, kind="stable")
            rows, codes = rows.take(pa.array(order)), codes[order]
        return rows, codes

    def _codes_of(self, keys: pa.Array) -> Int64Array:
        return check_codable(keys, self._address.table_name).codes

    def _found_fences(self) -> Fences:
        began = time.monotonic()
        ends = sample(self._database, self._ordered, self._columns, self._address.table_name)
        self._codes_of(ends.column(self._ordered.name))  # so that a key that is too high is refused
        row_bytes = self._address.row_bytes or mean_row_bytes(ends)
        step = max(1, self._address.page_bytes // row_bytes)
        count = self._database.row_count(self._ordered)
        first_keys = self._database.every(self._ordered, step) if count else pa.array([], self._ordered.type)
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
        for page, low, high in zip(pages, *fences.range_of(pages, pages), strict=True):
            rows, _ = self._read(np.array([low]), np.array([high]), int(fences.rows[page]), _SAMPLE_ROW_BYTES)
            largest = max(largest, mean_row_bytes(rows))
        return Fences(fences.first_codes, fences.rows, largest, fences.made, fences.took_seconds)


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
