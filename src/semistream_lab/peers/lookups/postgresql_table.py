"""The master table in PostgreSQL, which all peers that look rows up there share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from semistream_lab.peers.contract import PeerFailedError
from semistream_lab.peers.data import PeerData
from semistream_lab.peers.lookups.lookup import rows_of
from semistream_lab.peers.optional_package import why_missing

TABLE_NAME = "semistream_peers_master"
_SECONDS_TO_CONNECT = 5
_DROP = "DROP TABLE IF EXISTS semistream_peers_master"
_CREATE = (
    "CREATE TABLE semistream_peers_master "
    "(key bigint PRIMARY KEY, supplier bigint, price double precision, stock bigint, text text)"
)
_COPY = "COPY semistream_peers_master FROM STDIN (FORMAT BINARY)"
_SETTLE = "VACUUM (ANALYZE) semistream_peers_master"  # else the first reads would write what they find out about rows
_TYPES = ("int8", "int8", "float8", "int8", "text")


@dataclass(frozen=True)
class Reached:
    """How a server was reached, with all that an address leaves to the environment and to defaults."""

    host: str
    """A folder if it was reached by a socket of the file system."""
    port: int
    database: str
    user: str
    password: str = field(default="", repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Others that were given, as sslmode."""

    @classmethod
    def of(cls, info: Any) -> Reached:
        """Return what psycopg tells about an open connection."""
        return cls(info.host, info.port, info.dbname, info.user, info.password, info.get_parameters())


class PostgresqlTable:
    """The table `semistream_peers_master`, made anew for a comparison and dropped at its end.

    The address may hold a password and is never shown.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._loaded: PeerData | None = None
        self._made = False

    @property
    def address(self) -> str:
        """Where the server is."""
        assert self._address is not None, "a table without a server was used"
        return self._address

    def why_unavailable(self) -> str | None:
        """Return one sentence if the package, the address or the server is missing."""
        if self._address is None:
            return "No server was named: set SEMISTREAM_PEERS_POSTGRESQL to its address."
        if (missing := why_missing("psycopg", install="'psycopg[binary]'")) is not None:
            return missing
        try:
            self.reached()
        except PeerFailedError as error:
            return str(error)
        return None

    def reached(self) -> Reached:
        """Connect and return how the server was reached."""
        with errors_without_address(), connect(self.address) as connection:
            return Reached.of(connection.info)

    def load(self, data: PeerData) -> None:
        """Make and fill the table, unless that was done for the same data."""
        if self._loaded == data:
            return
        with errors_without_address():
            with connect(self.address) as connection, connection.cursor() as cursor:
                cursor.execute(_DROP)
                cursor.execute(_CREATE)
                self._made = True
                with cursor.copy(_COPY) as copy:
                    copy.set_types(_TYPES)
                    for chunk in data.chunks():
                        for key, row in rows_of(chunk):
                            copy.write_row((key, *row))
            with connect(self.address, autocommit=True) as connection:
                connection.execute(_SETTLE)
        self._loaded = data

    def drop(self) -> None:
        """Drop the table, if it was made here."""
        if self._made:
            with suppress(PeerFailedError), errors_without_address(), connect(self.address) as connection:
                connection.execute(_DROP)
            self._made, self._loaded = False, None


@contextmanager
def errors_without_address() -> Iterator[None]:
    """Turn errors of the database into one sentence, because their own may repeat the address."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        kind = type(error).__name__
        raise PeerFailedError(
            f"PostgreSQL returned an error ({kind}): check SEMISTREAM_PEERS_POSTGRESQL and the server."
        ) from None


def connect(address: str, *, autocommit: bool = False) -> Any:
    """Return a new connection."""
    import psycopg

    return psycopg.connect(address, connect_timeout=_SECONDS_TO_CONNECT, autocommit=autocommit)
