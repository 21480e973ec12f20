"""The tables and queries of Flink's peers, as SQL text in which every name and value is quoted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from semistream_lab.peers.data import PAYLOAD, STREAM_COLUMNS
from semistream_lab.peers.flink.jdbc_server import JdbcServer

_STREAM, _MASTER, _OUTPUT = "stream", "master", "output"
_TYPES = {"supplier": "BIGINT", "price": "DOUBLE", "stock": "BIGINT", "text": "STRING"}
_LOOK_EVERY = "200 ms"


def quoted(name: str) -> str:
    """Return a name as an identifier of Flink SQL."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a text as a literal of Flink SQL."""
    return "'" + text.replace("'", "''") + "'"


def stream_table(folder: Path, *, endless: bool) -> str:
    """Return the stream: CSV files in a folder, into which others may be put later if it is endless."""
    columns = [*_column_list(STREAM_COLUMNS), "at_time AS PROCTIME()"]
    options = {"connector": "filesystem", "path": folder.resolve().as_uri(), "format": "csv"}
    return _table(_STREAM, columns, {**options, "source.monitor-interval": _LOOK_EVERY} if endless else options)


def master_table(server: JdbcServer, table: str, cached_rows: int) -> str:
    """Return the master table behind JDBC, with a cache of so many rows; holds the password."""
    options = {
        "connector": "jdbc",
        "url": server.url,
        "table-name": table,
        "username": server.user,
        "lookup.cache": "PARTIAL",
        "lookup.partial-cache.max-rows": str(cached_rows),
    }
    if server.password:
        options["password"] = server.password
    key = quoted("key")
    return _table(_MASTER, [*_column_list(("key", *PAYLOAD)), f"PRIMARY KEY ({key}) NOT ENFORCED"], options)


def output_table(*, joined: bool, folder: Path | None = None) -> str:
    """Return a table that keeps nothing, or one that writes CSV files into a folder."""
    options = {"connector": "blackhole"}
    if folder is not None:
        options = {"connector": "filesystem", "path": folder.resolve().as_uri(), "format": "csv"}
    return _table(_OUTPUT, _column_list(columns(joined=joined)), options)


def query(*, joined: bool) -> str:
    """Return the left look-up join of the stream with the master table, or the stream as it is."""
    into = f"INSERT INTO {quoted(_OUTPUT)} SELECT"
    names = ", ".join(f"{'s' if name in STREAM_COLUMNS else 'm'}.{quoted(name)}" for name in columns(joined=joined))
    source = f"FROM {quoted(_STREAM)} AS s"
    if not joined:
        return f"{into} {names} {source}"
    key = quoted("key")
    join = f"LEFT JOIN {quoted(_MASTER)} FOR SYSTEM_TIME AS OF s.at_time AS m ON s.{key} = m.{key}"
    return f"{into} {names} {source} {join}"


def columns(*, joined: bool) -> tuple[str, ...]:
    """Return the columns of the output."""
    return (*STREAM_COLUMNS, *PAYLOAD) if joined else STREAM_COLUMNS


def _column_list(names: tuple[str, ...]) -> list[str]:
    return [f"{quoted(name)} {_TYPES.get(name, 'BIGINT')}" for name in names]


def _table(name: str, columns: list[str], options: Mapping[str, str]) -> str:
    given = ", ".join(f"{literal(option)} = {literal(value)}" for option, value in options.items())
    return f"CREATE TEMPORARY TABLE {quoted(name)} ({', '.join(columns)}) WITH ({given})"
