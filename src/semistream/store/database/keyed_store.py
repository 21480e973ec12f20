"""A table of a database whose keys have no order of codes there: rows are found by keys, and there are no pages."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.store.contract import Capabilities, MasterStore, PageSet
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Database, Description
from semistream.store.database.described_table import chosen_columns, key_codec, mean_row_bytes, sample
from semistream.store.database.fences import FENCES, Fences
from semistream.store.database.row_reader import DatabaseRowReader
from semistream.store.found_rows import RowReader


class KeyedDatabaseStore(MasterStore):
    """The rows of a table with keys of texts, bytes, decimals or several columns, as they are when they are read.

    Such keys are hashed, and the database does not know their codes. All rows count as one page, which cannot be read.
    """

    def __init__(
        self, database: Database, described: Description, address: DatabaseAddress, version: int, identity: str
    ) -> None:
        self._database = database
        self._address = address
        self._identity = identity
        self._columns = described.columns
        self._key = [described.column(name) for name in address.key]
        self.schema = described.schema
        self.key = address.key
        self.codec = key_codec(described, address.key)
        self.version = version
        self.unique = described.unique
        self.capabilities = Capabilities(snapshot=False, pages=False)
        self.max_age_seconds = address.cache_seconds
        known_by = (address, tuple((column.name, str(column.type)) for column in described.columns))
        self._sizes = FENCES.of(known_by, self._found_sizes)
        self.row_count = self._sizes.row_count
        self.page_count = len(self._sizes.first_codes)

    @property
    def identity(self) -> str:
        """The table and the moment."""
        return self._identity

    @property
    def index_bytes(self) -> int:
        """Nothing but how many rows there are."""
        return self._sizes.first_codes.nbytes + self._sizes.rows.nbytes

    @property
    def largest_page_bytes(self) -> int:
        """What a row is taken to have, since no more has to be read at once."""
        return self._sizes.row_bytes if self.row_count else 0

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the only page for each code."""
        return np.zeros(len(codes), dtype=np.int32)

    def range_bytes(self, first_page: int, last_page: int) -> int:  # noqa: ARG002
        """Return what all rows are taken to have."""
        return self.row_count * self._sizes.row_bytes

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:  # noqa: ARG002
        """Refuse, since there are no pages."""
        raise InvalidSettingError(
            f"The keys of the table {self._address.table_name!r} have no order in its database, so that it cannot be "
            f"read in pages: join by demandjoin with order 'input', or copy the table with MasterTable.build."
        )

    def row_reader(self, columns: Sequence[str], max_bytes: int) -> RowReader:
        """Return what asks for sets of keys, and only for these columns."""
        return DatabaseRowReader(
            self._database,
            self._key,
            chosen_columns(self._columns, columns, self._address.table_name),
            self.codec,
            table_name=self._address.table_name,
            max_bytes=max_bytes,
            row_bytes=self._sizes.row_bytes,
            connections=self._address.connections,
        )

    def close(self) -> None:
        """Close connections that are not in use."""
        self._database.close()

    def _found_sizes(self) -> Fences:
        began = time.monotonic()
        first = self._key[0]
        count = self._database.row_count(first)
        row_bytes = self._address.row_bytes or mean_row_bytes(
            sample(self._database, first, self._columns, self._address.table_name)
        )
        pages = 1 if count else 0
        rows = np.full(pages, count, dtype=np.int64)
        return Fences(np.zeros(pages, dtype=np.int64), rows, row_bytes, time.monotonic(), time.monotonic() - began)
