"""Hostile names are executed nowhere, and a database is read and nothing else."""

from __future__ import annotations

from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from database_rows import Server, execute, opened, quote_for, rows_by_pages

import semistream as ss
from semistream.core.errors import (
    InvalidSettingError,
    MasterNotFoundError,
    SemistreamError,
)
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer


def test_the_schema_of_a_table_may_be_named(postgresql: PostgresqlServer, mariadb: MariadbServer) -> None:
    execute(
        postgresql,
        'DROP SCHEMA IF EXISTS "s.1" CASCADE',
        'CREATE SCHEMA "s.1"',
        'CREATE TABLE "s.1"."t.2" (id int PRIMARY KEY)',
    )
    execute(
        postgresql,
        "DROP SCHEMA IF EXISTS plain CASCADE",
        "CREATE SCHEMA plain",
        "CREATE TABLE plain.t (id int PRIMARY KEY)",
    )
    execute(
        mariadb, "DROP DATABASE IF EXISTS other", "CREATE DATABASE other", "CREATE TABLE other.t (id int PRIMARY KEY)"
    )
    for server, table, options in (
        (postgresql, "t.2", {"schema": "s.1"}),
        (postgresql, "plain.t", {}),
        (mariadb, "other.t", {}),
    ):
        assert opened(server, table, **options).row_count == 0


HOSTILE = [
    *("'; DROP TABLE canary; --", '"; DROP TABLE canary; --', "`; DROP TABLE canary; --", "x`; DROP TABLE canary; #"),
    *('a" FROM canary; DROP TABLE canary; --', "a` FROM canary; DROP TABLE canary; #", "%s", "%(x)s", "%", "%%", "{}"),
    *("{0}", "{canary}", "\\", "\\'", '\\"', "\\`", "''", '""', "``", "a''b", 'a""b', "a``b", "a;b", "a--b", "a/*b*/c"),
    *("$1", "$$", "$x$", ":x", "?", "a\nb", "a\tb", "é", "🦆", "select", "from", "1", "1=1", "OR 1=1", "') OR ('1'='1"),
    *("c0", "number", "found", "pg_sleep(9)", "sleep(9)", "x'41'", "0x41", "@@version", "a b", " lead"),
]  # fmt: skip


def test_there_are_fifty_hostile_names() -> None:
    assert len(set(HOSTILE)) >= 50


def names_for(server: Server) -> list[str]:
    """Return hostile names; those of MariaDB have characters of three bytes at most, and ignore capitals."""
    return [name for name in HOSTILE if isinstance(server, PostgresqlServer) or "🦆" not in name]


def test_hostile_names_of_columns_are_executed_nowhere(server: Server) -> None:
    names = names_for(server)
    columns = ", ".join(f"{quote_for(server, name)} int" for name in names)
    execute(server, "DROP TABLE IF EXISTS canary, hostile", "CREATE TABLE canary (id int)")
    execute(server, f"CREATE TABLE hostile (id int PRIMARY KEY, {columns})")
    execute(server, f"INSERT INTO hostile VALUES (7, {', '.join(str(place) for place in range(len(names)))})")
    with opened(server, "hostile") as store:
        expected = {"id": 7} | {name: place for place, name in enumerate(names)}
        assert rows_by_pages(store) == [expected]
        reader = store.row_reader(names, 100_000)
        assert reader is not None
        found = reader.look_up(np.array([6, 7]), np.zeros(2, dtype=np.int32))
        assert [column.values.view(np.int32).tolist() for column in found.columns] == [[n] for n in range(len(names))]  # type: ignore[union-attr]
    execute(server, "SELECT id FROM canary")


@pytest.mark.parametrize("count", [8, pytest.param(len(HOSTILE), marks=pytest.mark.slow)])
def test_hostile_names_of_tables_and_keys_are_executed_nowhere(server: Server, count: int) -> None:
    execute(server, "DROP TABLE IF EXISTS canary", "CREATE TABLE canary (id int)")
    for name in names_for(server)[:count]:
        quoted_name, written = quote_for(server, name), quote(name, safe="")
        address = server.address(written, written, row_bytes=20)
        with pytest.raises(MasterNotFoundError):
            ss.MasterTable(address).open()
        execute(server, f"CREATE TABLE {quoted_name} ({quoted_name} int PRIMARY KEY)")
        execute(server, f"INSERT INTO {quoted_name} VALUES (1), (2)")
        with ss.MasterTable(address).open() as store:
            assert [tuple(row.values()) for row in rows_by_pages(store)] == [(1,), (2,)]
            reader = store.row_reader([name], 10_000)
            assert reader is not None
            assert reader.look_up(np.array([1, 2, 3]), np.zeros(3, dtype=np.int32)).bounds.tolist() == [0, 1, 2, 2]
        execute(server, f"DROP TABLE {quoted_name}")
    execute(server, "SELECT id FROM canary")


def test_a_database_is_read_and_nothing_else(server: Server) -> None:
    server.load("there", pa.table({"id": [1]}), {"id": "bigint"})
    table = ss.MasterTable(server.address("there"))
    data = pa.table({"id": [1]})
    for change in (
        lambda: ss.MasterTable.build(data, server.address("there"), "id"),
        lambda: table.merge(data),
        table.compact,
        table.vacuum,
        table.verify,
        table.info,
        lambda: table.restore(1),
    ):
        with pytest.raises(InvalidSettingError, match="is only read"):
            change()
    store = table.open()
    sessions = store._database.sessions  # type: ignore[attr-defined]
    with pytest.raises(SemistreamError, match=r"(?i)read.?only"):
        sessions.run(lambda connection: connection.cursor().execute("CREATE TABLE written (id int)"))
    with pytest.raises(SemistreamError, match=r"(?i)read.?only"):
        sessions.run(lambda connection: connection.cursor().execute("DELETE FROM there"))
