"""The rows of some pages that were read from a paged file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.arrow_row_sizes import row_bits
from semistream.core.errors import CorruptTableError
from semistream.store.contract import PageSet
from semistream.store.paged.format.page import decode
from semistream.store.paged.format.page_columns import Gathering, PageColumns
from semistream.store.paged.format.page_head import HEAD_SIZE
from semistream.store.paged.read.gathering import (
    DONE,
    NO_SUCH_ROW,
    PART_SIZE,
    VISIT_SIZE,
    gather,
    gather_strings,
    open_pages,
)
from semistream.store.paged.read.page_names import PageNames
from semistream.store.paged.read.placing import compact_rows
from semistream.store.paged.read.taken_rows import TakenRows

_NO_LIMIT = 2**62


class FilePages(PageSet):
    """The bytes of pages with the codes of their rows; columns are looked up in them when rows are taken.

    `take` costs some ten nanoseconds a row and column and as much a page; with a nested column some microseconds a
    page, because pages are then decoded. Nothing of that is kept: it would need memory that `size_bytes` cannot tell
    beforehand.
    """

    def __init__(
        self,
        columns: PageColumns,
        names: PageNames,
        buffer: pa.Buffer,
        pages: Int64Array,
        page_starts: Int64Array,
        page_ends: Int64Array,
        page_bounds: Int64Array,
        codes: Int64Array,
        bounds: Int64Array,
        spare_bytes: int = 0,
        order: Int64Array | None = None,
    ) -> None:
        self.codes = codes
        self.bounds = bounds
        self._columns = columns
        self._names = names
        self._spare_bytes = spare_bytes
        self._order = order
        self.buffer = buffer
        self.pages = pages
        self.page_starts = page_starts
        self.page_ends = page_ends
        self.page_bounds = page_bounds

    @property
    def size_bytes(self) -> int:
        """The bytes of the pages, of the codes and of the places of the pages; the index is the store's."""
        places = (self.pages, self.page_starts, self.page_ends, self.page_bounds, self.bounds)
        placed = sum(array.nbytes for array in places)
        order = 0 if self._order is None else self._order.nbytes
        return int(self.buffer.size) + self._spare_bytes + self.codes.nbytes + placed + order

    def page_of(self, row: int) -> int:
        """Return which of the pages has a row."""
        return int(np.searchsorted(self.page_bounds, row, side="right")) - 1

    def take(self, rows: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the named columns of these rows."""
        return self.take_within(rows, columns, _NO_LIMIT)[0]

    def take_within(self, rows: Int64Array, columns: Sequence[str], limit_bytes: int) -> tuple[pa.RecordBatch, int]:
        """Return the named columns of the first of these rows that fit the limit, at least of one, and their bytes."""
        gathering = self._columns.gathering(columns)
        if not len(rows) or not len(columns):
            return _without_values(self._columns.layout.chosen_schema(tuple(columns)), len(rows)), 0
        # Other types and strides would each compile the kernels anew.
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        if self._order is not None:
            rows = self._order[rows]
        if gathering is None:
            return self._decoded(rows, columns, limit_bytes)
        return self._gathered(rows, gathering, limit_bytes)

    def _gathered(self, rows: Int64Array, gathering: Gathering, limit_bytes: int) -> tuple[pa.RecordBatch, int]:
        data = np.frombuffer(self.buffer, dtype=np.uint8)
        heads = np.zeros((len(self.pages), HEAD_SIZE), dtype=np.int64)
        parts = np.empty((len(self.pages), PART_SIZE), dtype=np.int64)
        visits = np.empty((len(rows), VISIT_SIZE), dtype=np.int32)
        wrong = open_pages(
            data,
            self.page_starts,
            self.page_ends,
            self.page_bounds,
            rows,
            gathering.nodes,
            gathering.buffers,
            heads,
            visits,
        )
        if wrong == NO_SUCH_ROW:
            raise self._no_such_row()
        if wrong == DONE:
            taken = TakenRows(gathering, len(rows))
            wrong = gather(data, heads, visits, taken.places, parts, taken.fixed, taken.counts)
        if wrong != DONE:
            raise self._fault(wrong, "its columns are not where the index and the schema expect them")
        size_bytes = taken.size_bytes
        if size_bytes > limit_bytes and len(rows) > 1:
            return self._gathered(rows[: min(len(rows) - 1, taken.count_within(limit_bytes))], gathering, limit_bytes)
        values = taken.strings()
        if values is not None:
            gather_strings(data, heads, visits, taken.places, parts, taken.fixed, values, taken.counts)
        return taken.batch(), size_bytes

    def _decoded(self, rows: Int64Array, columns: Sequence[str], limit_bytes: int) -> tuple[pa.RecordBatch, int]:
        layout = self._columns.layout
        positions = [layout.position(name) for name in columns]
        indices = np.empty(len(rows), dtype=np.int64)
        new_starts = np.empty(len(self.page_starts), dtype=np.int64)
        if compact_rows(rows, self.page_bounds, new_starts, indices) < 0:
            raise self._no_such_row()
        needed = np.flatnonzero(new_starts >= 0)
        batches = decode(self.buffer, self.page_starts[needed].tolist(), layout.page_schema)
        expected = np.diff(self.page_bounds)[needed].tolist()
        for page, batch, row_count in zip(needed.tolist(), batches, expected, strict=True):
            if batch.num_rows != row_count:
                raise self._fault(page, f"it has {batch.num_rows} rows, but the index {row_count}")
        if len(batches) == 1:
            chosen = batches[0].select(positions)
        else:
            # Taking from many small batches is slow; one copy of the needed columns is cheaper.
            whole = pa.Table.from_batches(batches).select(positions).combine_chunks()
            chosen = whole.to_batches()[0] if _of_one_chunk(whole) else whole
        if limit_bytes < _NO_LIMIT and isinstance(chosen, pa.RecordBatch):
            sums = np.cumsum(-(-row_bits(chosen)[indices] // 8))
            indices = indices[: max(1, int(np.searchsorted(sums, limit_bytes, side="right")))]
        taken = chosen.take(pa.array(indices))
        batch = taken if isinstance(taken, pa.RecordBatch) else taken.combine_chunks().to_batches()[0]
        return batch, int(batch.nbytes)

    def _no_such_row(self) -> IndexError:
        return IndexError(f"a row is not one of the {len(self.codes)} of the pages")

    def _fault(self, place: int, what: str) -> CorruptTableError:
        return self._names.fault(int(self.pages[place]), f"wrong: {what}; restore the file or build again")


def _of_one_chunk(rows: pa.Table) -> bool:
    return all(column.num_chunks == 1 for column in rows.columns)


def _without_values(schema: pa.Schema, row_count: int) -> pa.RecordBatch:
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * row_count, pa.struct([])))
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
