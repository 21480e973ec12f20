"""Cuts sorted rows into pages that come near a target size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.arrow_row_sizes import padding_bytes, row_bits
from semistream.core.compile import kernel
from semistream.store.paged.format.page import encode, head_bytes
from semistream.store.paged.format.row_layout import RowLayout

_NO_BREAKS = np.zeros(0, dtype=np.bool_)


class PagePacker:
    """Turns sorted coded rows into pages; rows that may still share a page with later ones are held back.

    A page exceeds `page_bytes` only where the rows of a single code do.
    """

    def __init__(self, layout: RowLayout, page_bytes: int) -> None:
        self._layout = layout
        self._page_bytes = page_bytes
        self._held: pa.RecordBatch | None = None

    def add(self, rows: pa.RecordBatch, breaks: BoolArray | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the first code and the rows of each page that is full; where `breaks` is set a page must start."""
        if not rows.num_rows:
            return
        if self._held is not None:
            if breaks is not None:
                breaks = np.concatenate([np.zeros(self._held.num_rows, dtype=np.bool_), breaks])
            rows = pa.concat_batches([self._held, rows])
        codes = codes_of(rows)
        page_rows = self._layout.page_rows(rows)
        starts = self._starts(codes, page_rows, _NO_BREAKS if breaks is None else breaks)
        for start, end in pairwise(starts):
            yield int(codes[start]), page_rows.slice(start, end - start)
        self._held = rows.slice(starts[-1])

    def finish(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the last page."""
        if self._held is not None:
            yield int(codes_of(self._held)[0]), self._layout.page_rows(self._held)
            self._held = None

    def _starts(self, codes: Int64Array, page_rows: pa.RecordBatch, breaks: BoolArray) -> list[int]:
        room_bytes = self._page_bytes - head_bytes(encode(page_rows.slice(0, 1))) - padding_bytes(page_rows)
        sizes = np.concatenate(([0], np.cumsum(row_bits(page_rows))))
        starts = np.empty(len(codes), dtype=np.int64)
        count = _cut(codes, sizes, breaks, max(1, room_bytes * 8), starts)
        first_rows: list[int] = starts[:count].tolist()
        return first_rows


def codes_of(coded: pa.RecordBatch) -> Int64Array:
    """Return the codes of coded rows without copying them."""
    codes: Int64Array = coded.column(0).to_numpy()
    return codes


@kernel
def _cut(codes: Int64Array, sizes: Int64Array, breaks: BoolArray, room: int, starts: Int64Array) -> int:
    """Fill `starts` with where pages start and return how many there are; the last page is still open."""
    starts[0] = 0
    count = 1
    start = 0
    boundary = 0
    rows = codes.shape[0]
    for row in range(1, rows + 1):
        if row < rows and codes[row] == codes[row - 1]:
            continue
        # The rows of one code end before `row`; if they do not fit, their page starts with them.
        if sizes[row] - sizes[start] > room and boundary > start:
            start = boundary
            starts[count] = start
            count += 1
        boundary = row
        if row < rows and breaks.shape[0] > 0 and breaks[row]:
            start = row
            starts[count] = start
            count += 1
    return count
