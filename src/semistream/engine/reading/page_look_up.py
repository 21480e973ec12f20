"""Looks up master rows by code in the pages that any store reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.engine.reading.matching import match, run_lengths
from semistream.engine.rows.gather import concatenate
from semistream.store.contract import MasterStore
from semistream.store.found_rows import FoundRows, RowReader, found_column


class PageRowReader(RowReader):
    """Reads the pages of some codes, about `read_bytes` at a time, and takes their rows, within about `max_bytes`."""

    def __init__(self, store: MasterStore, columns: Sequence[str], *, max_bytes: int, read_bytes: int) -> None:
        self._store = store
        self._columns = tuple(columns)
        self._max_bytes = max_bytes
        self._read_bytes = read_bytes

    def look_up(self, codes: Int64Array, pages: Int32Array) -> FoundRows:
        """Return the rows of the codes, or of those on the first pages whose rows fit."""
        starts = np.flatnonzero(np.diff(pages, prepend=-1))
        needed = pages[starts].astype(np.int64)
        ends = np.append(starts[1:], len(codes))
        sizes = np.array([self._store.range_bytes(page, page) for page in needed.tolist()], dtype=np.int64)
        bounds = [np.zeros(1, dtype=np.int64)]
        taken: list[pa.RecordBatch] = []
        held_bytes = row_count = first = expected = 0
        while first < len(needed) and (not first or held_bytes <= self._max_bytes):
            if first == expected:
                expected = min(len(needed), first + self._store.max_expected_pages)
                self._store.expect(needed[first:expected])
            step = max(1, int(np.searchsorted(np.cumsum(sizes[first:]), self._read_bytes, side="right")))
            last = min(expected, first + step)
            span = slice(int(starts[first]), int(ends[last - 1]))
            batch, counts = self._read(codes[span], needed[first:last], starts[first:last] - starts[first])
            bounds.append(row_count + np.cumsum(counts))
            taken.append(batch)
            row_count += batch.num_rows
            held_bytes += batch.nbytes
            first = last
        rows = concatenate(taken)
        code_count = int(ends[first - 1])
        return FoundRows(np.concatenate(bounds), tuple(found_column(column) for column in rows.columns), code_count)

    def _read(self, codes: Int64Array, pages: Int64Array, starts: Int64Array) -> tuple[pa.RecordBatch, Int64Array]:
        """Return the rows of codes on some pages, and how many rows each code has."""
        breaks = np.flatnonzero(np.diff(pages, prepend=-2) > 1)
        first, last = pages[breaks], pages[np.append(breaks[1:], len(pages)) - 1]
        read = self._store.read(first, last)
        self.page_reads += len(pages)
        self.read_requests += len(first)
        self.bytes_read += self._store.ranges_bytes(first, last)
        rows, _ = match(read.codes, read.bounds, codes, np.append(starts[breaks], len(codes)))
        counts = np.zeros(len(codes), dtype=np.int64)
        is_present = rows >= 0
        counts[is_present] = run_lengths(read.codes, read.bounds, rows[is_present])
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return read.take(np.repeat(rows, counts) + within, self._columns), counts
