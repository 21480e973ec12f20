"""Look-up in SQLite, a file beside the job."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from semistream_lab.peers.contract import Bench
from semistream_lab.peers.lookups.lookup import LookupPeer, RowSource, rows_of
from semistream_lab.peers.lookups.lru_rows import Row

_KEYS_A_QUERY = 500
_CREATE = "CREATE TABLE master (key INTEGER PRIMARY KEY, supplier INTEGER, price REAL, stock INTEGER, text TEXT)"
_INSERT = "INSERT INTO master VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT key, supplier, price, stock, text FROM master WHERE key IN ({})"


@dataclass(frozen=True)
class SqliteRows(RowSource):
    """A table in a file of SQLite, by its integer primary key."""

    path: Path

    def rows(self, keys: Sequence[int]) -> dict[int, Row]:
        """Return the rows of the keys, some hundred with one query."""
        connection = _connection(self.path)
        by_key: dict[int, Row] = {}
        for start in range(0, len(keys), _KEYS_A_QUERY):
            asked = keys[start : start + _KEYS_A_QUERY]
            places = ",".join("?" * len(asked))  # values are bound, only their number is in the text
            for key, *row in connection.execute(_SELECT.format(places), asked):
                by_key[key] = tuple(row)
        return by_key


class SqliteLookup(LookupPeer):
    """The database that needs nothing to be installed."""

    name = "sqlite"
    summary = "mapInPandas, LRU of rows, SQLite behind it"

    def prepare(self, bench: Bench) -> None:
        """Write the table."""

        def write(path: Path) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = OFF")
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("BEGIN")
                connection.execute(_CREATE)
                for chunk in bench.data.chunks():
                    connection.executemany(_INSERT, ((key, *row) for key, row in rows_of(chunk)))
                connection.execute("COMMIT")

        self._source = SqliteRows(bench.data.built("sqlite", write))

    def source(self) -> SqliteRows:
        """Return the file."""
        return self._source


@functools.cache
def _connection(path: Path) -> sqlite3.Connection:
    """Return the connection of this process for reading."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
