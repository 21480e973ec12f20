"""The rows of some pages that were read from a paged file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.store.contract import PageSet
from semistream.store.paged_file.page import decode
from semistream.store.paged_file.placing import compact_rows
from semistream.store.paged_file.row_layout import RowLayout


class FilePages(PageSet):
    """The bytes of pages with the codes of their rows; pages are decoded when their rows are taken.

    `take` costs some microseconds for each page that has one of the rows. Decoded pages are not kept: they would
    need memory that `size_bytes` cannot tell beforehand.
    """

    def __init__(
        self,
        layout: RowLayout,
        buffer: pa.Buffer,
        page_starts: Int64Array,
        page_bounds: Int64Array,
        codes: Int64Array,
        bounds: Int64Array,
        spare_bytes: int = 0,
    ) -> None:
        self.codes = codes
        self.bounds = bounds
        self._layout = layout
        self._spare_bytes = spare_bytes
        self.buffer = buffer
        self.page_starts = page_starts
        self.page_bounds = page_bounds

    @property
    def size_bytes(self) -> int:
        """The bytes of the pages, of the codes and of the places of the pages."""
        places = self.page_starts.nbytes + self.page_bounds.nbytes + self.bounds.nbytes
        return int(self.buffer.size) + self._spare_bytes + self.codes.nbytes + places

    def page_of(self, row: int) -> int:
        """Return which of the pages has a row."""
        return int(np.searchsorted(self.page_bounds, row, side="right")) - 1

    def take(self, rows: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the named columns of these rows."""
        positions = [self._layout.position(name) for name in columns]
        if not len(rows) or not positions:
            return _without_values(self._layout.chosen_schema(tuple(columns)), len(rows))
        indices = np.empty(len(rows), dtype=np.int64)
        new_starts = np.empty(len(self.page_starts), dtype=np.int64)
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        if compact_rows(rows, self.page_bounds, new_starts, indices) < 0:
            raise IndexError(f"a row is not one of the {len(self.codes)} of the pages")
        starts = self.page_starts if len(new_starts) == 1 else self.page_starts[new_starts >= 0]
        batches = decode(self.buffer, starts.tolist(), self._layout.page_schema)
        if len(batches) == 1:
            chosen = batches[0].select(positions)
        else:
            # Taking from many small batches is slow; one copy of the needed columns is cheaper.
            whole = pa.Table.from_batches(batches).select(positions).combine_chunks()
            chosen = whole.to_batches()[0] if _of_one_chunk(whole) else whole
        taken = chosen.take(pa.array(indices))
        return taken if isinstance(taken, pa.RecordBatch) else taken.combine_chunks().to_batches()[0]


def _of_one_chunk(rows: pa.Table) -> bool:
    return all(column.num_chunks == 1 for column in rows.columns)


def _without_values(schema: pa.Schema, row_count: int) -> pa.RecordBatch:
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * row_count, pa.struct([])))
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
