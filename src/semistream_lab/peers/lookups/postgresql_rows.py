"""Look-up in PostgreSQL."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from semistream_lab.peers.contract import Bench
from semistream_lab.peers.lookups.lookup import LookupPeer, RowSource
from semistream_lab.peers.lookups.lru_rows import Row
from semistream_lab.peers.lookups.postgresql_table import PostgresqlTable, connect, errors_without_address

_SELECT = "SELECT key, supplier, price, stock, text FROM semistream_peers_master WHERE key = ANY(%s)"


@dataclass(frozen=True)
class PostgresqlRows(RowSource):
    """A table of a server, by its primary key; the address may hold a password and is never shown."""

    address: str = field(repr=False)

    def rows(self, keys: Sequence[int]) -> dict[int, Row]:
        """Return the rows of the keys with one query."""
        with errors_without_address(), _connection(self.address).cursor(binary=True) as cursor:
            cursor.execute(_SELECT, (list(keys),), prepare=True)
            return {key: tuple(row) for key, *row in cursor}


class PostgresqlLookup(LookupPeer):
    """The database that people have; the table is made anew and dropped at the end."""

    name = "postgresql"
    summary = "mapInPandas, LRU of rows, PostgreSQL behind it"

    def __init__(self, table: PostgresqlTable) -> None:
        self._table = table

    def why_unavailable(self) -> str | None:
        """Return one sentence if the package, the address or the server is missing."""
        return self._table.why_unavailable()

    def prepare(self, bench: Bench) -> None:
        """Load the table."""
        self._table.load(bench.data)

    def source(self) -> PostgresqlRows:
        """Return the table."""
        return PostgresqlRows(self._table.address)

    def clean_up(self) -> None:
        """Drop the table, if it was made here."""
        self._table.drop()


@functools.cache
def _connection(address: str) -> Any:
    """Return the connection of this process for reading."""
    return connect(address, autocommit=True)
