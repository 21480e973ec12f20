"""A master table of which only the sizes exist."""

from __future__ import annotations

import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.keys import KeyCodec
from semistream.store.contract import Capabilities, MasterStore, PageSet
from semistream_lab.cost.situation import Situation

_INDEX_BYTES_PER_PAGE = 14
"""What the sparse index of a table in memory takes, 12 to 16 bytes."""


class SizedTable(MasterStore):
    """A table of so many rows on pages of so many bytes, to divide memory by; it must not be read."""

    def __init__(self, situation: Situation) -> None:
        self.schema = pa.schema([pa.field("key", pa.int64(), nullable=False)])
        self.key = ("key",)
        self.codec = KeyCodec([pa.int64()])
        self.unique = True
        self.version = 1
        self.capabilities = Capabilities(snapshot=True)
        self.row_count = situation.master_rows
        self._rows_per_page = situation.rows_per_page
        self.page_count = -(-self.row_count // self._rows_per_page)
        self._row_bytes = situation.row_bytes

    @property
    def index_bytes(self) -> int:
        """About the size of a sparse index."""
        return _INDEX_BYTES_PER_PAGE * self.page_count

    @property
    def largest_page_bytes(self) -> int:
        """The size of a full page."""
        return min(self._rows_per_page, self.row_count) * self._row_bytes

    def row_bounds(self, first_pages: Int64Array) -> Int64Array:
        """Return the first row of each of these pages."""
        return first_pages * self._rows_per_page

    def range_bytes(self, first_page: int, last_page: int) -> int:
        """Return the size of the rows on these pages."""
        end = min(self.row_count, (last_page + 1) * self._rows_per_page)
        return (end - first_page * self._rows_per_page) * self._row_bytes

    def locate(self, codes: Int64Array) -> Int32Array:  # noqa: ARG002
        """Refuse: there are no keys."""
        raise AssertionError("only the sizes of this table exist")

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:  # noqa: ARG002
        """Refuse: there are no rows."""
        raise AssertionError("only the sizes of this table exist")
