"""What stores of tables in databases share: rows of the moment, found by their keys."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from semistream.core.arrays import Int64Array
from semistream.store.contract import Capabilities, MasterStore
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Database, Description
from semistream.store.database.described_table import chosen_columns, folding_warning, key_codec
from semistream.store.database.fences import FENCES, Fences
from semistream.store.database.row_reader import DatabaseRowReader
from semistream.store.found_rows import RowReader


class MomentStore(MasterStore):
    """The rows of a table as they are when they are read; there are no versions, so `version` is a moment."""

    has_pages: ClassVar[bool]

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
        self.capabilities = Capabilities(snapshot=False, pages=self.has_pages)
        self.max_age_seconds = address.cache_seconds
        self.warning = folding_warning(self._key, address.table_name)
        known_by = (address, tuple((column.name, str(column.type)) for column in described.columns))
        self._fences = FENCES.of(known_by, self._found_fences)
        self.row_count = self._fences.row_count
        self.page_count = len(self._fences.first_codes)

    @abstractmethod
    def _found_fences(self) -> Fences:
        """Ask the server how many rows there are, where pages begin, and what a row takes."""

    @property
    def identity(self) -> str:
        """The table and the moment."""
        return self._identity

    def row_reader(self, columns: Sequence[str], max_bytes: int, read_bytes: int = 0) -> RowReader:  # noqa: ARG002
        """Return what asks for sets of keys, and only for these columns."""
        return DatabaseRowReader(
            self._database,
            self._key,
            chosen_columns(self._columns, columns, self._address.table_name),
            self.codec,
            table_name=self._address.table_name,
            max_bytes=max_bytes,
            row_bytes=self._fences.row_bytes,
            connections=self._address.connections,
            rows_before=self._rows_before(),
        )

    def _rows_before(self) -> Int64Array | None:
        """Return how many rows there are before each page, and in all; None without pages."""
        return None

    def close(self) -> None:
        """Close connections that are not in use."""
        self._database.close()
