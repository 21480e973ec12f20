"""A table of a database by its address."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from semistream.store.contract import MasterStore, StoredTable
from semistream.store.database.address import DatabaseAddress, parse_address
from semistream.store.database.contract import Database
from semistream.store.database.described_table import check_key, is_ordered
from semistream.store.database.keyed_store import KeyedDatabaseStore
from semistream.store.database.store import DatabaseStore

_PROCESS = uuid.uuid4().hex
"""Rows that two processes have read at different moments must not pass for the same."""


class DatabaseTable(StoredTable):
    """A table whose rows are those of the moment; every `cache_for` seconds count as a version.

    A database tells neither versions nor changes. A new version makes whoever caches rows drop them, so that no row is
    served that was read longer ago than `cache_for` and the time that one batch takes. All versions show the rows of
    the moment: a replay may see others than before.
    """

    def __init__(self, address: str | DatabaseAddress, clock: Callable[[], float] = time.time) -> None:
        self._address = parse_address(address) if isinstance(address, str) else address
        self._clock = clock

    def current_version(self) -> int:
        """Return the number of the period in which we are."""
        return int(self._clock() / self._address.cache_seconds)

    def open(self, version: int | None = None, *, direct: bool = False) -> MasterStore:  # noqa: ARG002
        """Return a store of the rows of the moment, whatever version is named."""
        current, address = self.current_version(), self._address
        database = _database(address)
        described = database.describe()
        check_key(database, described, address)
        kind = DatabaseStore if is_ordered(described, address.key) else KeyedDatabaseStore
        return kind(database, described, address, current, self._identity_of(current))

    def identity(self, version: int) -> str:  # noqa: ARG002
        """Return that of the moment, since no other version can be shown."""
        return self._identity_of(self.current_version())

    def pin(self, owner: str, batch: int, version: int | None = None) -> int:  # noqa: ARG002
        """Return the version of the moment; nothing can be kept."""
        return self.current_version()

    def _identity_of(self, version: int) -> str:
        return f"{_PROCESS} {self._address.server} {self._address.table_name} {version}"


def _database(address: DatabaseAddress) -> Database:
    """Return how the table is read; drivers are loaded only here, since they need not be installed."""
    if address.kind == "postgresql":
        from semistream.store.database.postgresql import PostgresqlTable

        return PostgresqlTable(address)
    from semistream.store.database.mysql import MysqlTable

    return MysqlTable(address)
