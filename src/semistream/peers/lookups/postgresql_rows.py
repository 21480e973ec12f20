"""Look-up in PostgreSQL."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from semistream.peers.contract import Bench, PeerFailedError
from semistream.peers.lookups.lookup import LookupPeer, RowSource, rows_of
from semistream.peers.lookups.lru_rows import Row
from semistream.peers.optional_package import imported, why_missing

_SECONDS_TO_CONNECT = 5
_DROP = "DROP TABLE IF EXISTS semistream_peers_master"
_CREATE = (
    "CREATE TABLE semistream_peers_master "
    "(key bigint PRIMARY KEY, supplier bigint, price double precision, stock bigint, text text)"
)
_COPY = "COPY semistream_peers_master FROM STDIN (FORMAT BINARY)"
_ANALYZE = "ANALYZE semistream_peers_master"
_SELECT = "SELECT key, supplier, price, stock, text FROM semistream_peers_master WHERE key = ANY(%s)"
_TYPES = ("int8", "int8", "float8", "int8", "text")


@dataclass(frozen=True)
class PostgresqlRows(RowSource):
    """A table of a server, by its primary key; the address may hold a password and is never shown."""

    address: str = field(repr=False)

    def rows(self, keys: Sequence[int]) -> dict[int, Row]:
        """Return the rows of the keys with one query."""
        with _told_without_address(), _connection(self.address).cursor(binary=True) as cursor:
            cursor.execute(_SELECT, (list(keys),), prepare=True)
            return {key: tuple(row) for key, *row in cursor}


class PostgresqlLookup(LookupPeer):
    """The database that people have; the table `semistream_peers_master` is made anew and dropped at the end."""

    name = "postgresql"
    summary = "mapInPandas, LRU of rows, PostgreSQL behind it"

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._made = False

    def why_unavailable(self) -> str | None:
        """Return one sentence if the package, the address or the server is missing."""
        if self._address is None:
            return "No server was named: set SEMISTREAM_PEERS_POSTGRESQL to its address."
        if (missing := why_missing("psycopg", install="'psycopg[binary]'")) is not None:
            return missing
        try:
            with _told_without_address():
                _connected(self._address).close()
        except PeerFailedError as error:
            return str(error)
        return None

    def prepare(self, bench: Bench) -> None:
        """Load the table."""
        with _told_without_address(), _connected(self._given()) as connection, connection.cursor() as cursor:
            cursor.execute(_DROP)
            cursor.execute(_CREATE)
            self._made = True
            with cursor.copy(_COPY) as copy:
                copy.set_types(_TYPES)
                for chunk in bench.data.chunks():
                    for key, row in rows_of(chunk):
                        copy.write_row((key, *row))
            cursor.execute(_ANALYZE)

    def source(self) -> PostgresqlRows:
        """Return the table."""
        return PostgresqlRows(self._given())

    def clean_up(self) -> None:
        """Drop the table, if it was made here."""
        if self._made:
            with suppress(PeerFailedError), _told_without_address(), _connected(self._given()) as connection:
                connection.execute(_DROP)

    def _given(self) -> str:
        assert self._address is not None
        return self._address


@contextmanager
def _told_without_address() -> Iterator[None]:
    """Turn errors of the database into one sentence, because their own may repeat the address."""
    try:
        yield
    except imported("psycopg").Error as error:
        kind = type(error).__name__
        raise PeerFailedError(
            f"PostgreSQL gives an error ({kind}): check SEMISTREAM_PEERS_POSTGRESQL and the server."
        ) from None


def _connected(address: str) -> Any:
    return imported("psycopg").connect(address, connect_timeout=_SECONDS_TO_CONNECT)


@functools.cache
def _connection(address: str) -> Any:
    """Return the connection of this process for reading."""
    connection = _connected(address)
    connection.autocommit = True
    return connection
