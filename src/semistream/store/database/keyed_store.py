"""A table of a database whose keys have no order of codes there: rows are found by keys, and there are no pages."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.store.contract import PageSet
from semistream.store.database.described_table import check_codable, mean_row_bytes, sample
from semistream.store.database.fences import Fences
from semistream.store.database.moment_store import MomentStore


class KeyedDatabaseStore(MomentStore):
    """The rows of a table with keys of texts, bytes, decimals or several columns.

    Such keys are hashed, and the database does not know their codes. All rows count as one page, which cannot be read.
    """

    has_pages = False

    @property
    def index_bytes(self) -> int:
        """Nothing but how many rows there are."""
        return self._fences.first_codes.nbytes + self._fences.rows.nbytes

    @property
    def largest_page_bytes(self) -> int:
        """What a row is taken to have, since no more has to be read at once."""
        return self._fences.row_bytes if self.row_count else 0

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the only page for each code."""
        return np.zeros(len(codes), dtype=np.int32)

    def range_bytes(self, first_page: int, last_page: int) -> int:  # noqa: ARG002
        """Return what all rows are taken to have."""
        return self.row_count * self._fences.row_bytes

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:  # noqa: ARG002
        """Refuse, since there are no pages."""
        raise InvalidSettingError(
            f"The keys of the table {self._address.table_name!r} have no order in its database, so that it cannot be "
            f"read in pages: join by demandjoin with order 'input', or copy the table with MasterTable.build."
        )

    def _found_fences(self) -> Fences:
        began = time.monotonic()
        first = self._key[0]
        for column in self._key:
            if pa.types.is_uint64(column.type):
                ends = sample(self._database, column, [column], self._address.table_name)
                check_codable(ends.column(0), self._address.table_name)
        count = self._database.row_count(first)
        row_bytes = self._address.row_bytes or mean_row_bytes(
            sample(self._database, first, self._columns, self._address.table_name)
        )
        pages = 1 if count else 0
        rows = np.full(pages, count, dtype=np.int64)
        return Fences(np.zeros(pages, dtype=np.int64), rows, row_bytes, time.monotonic(), time.monotonic() - began)
