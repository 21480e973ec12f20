"""The table that several peers share: loaded once, dropped once, and only if it was made here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_peers import small_bench

from semistream_lab.peers.flink.installation import FlinkInstallation
from semistream_lab.peers.flink.lookup_join import FlinkJdbcLookup
from semistream_lab.peers.lookups import postgresql_table
from semistream_lab.peers.lookups.postgresql_rows import PostgresqlLookup
from semistream_lab.peers.lookups.postgresql_table import PostgresqlTable


class _Recorder:
    """A connection, cursor and copy in one, which notes statements and counts rows."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.rows: list[tuple[Any, ...]] = []
        self.info = SimpleNamespace(
            host="127.0.0.1", port=5432, dbname="d", user="me", password="secret", get_parameters=dict
        )

    def __enter__(self) -> _Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def cursor(self) -> _Recorder:
        return self

    def copy(self, statement: str) -> _Recorder:
        self.done.append(statement.split()[0])
        return self

    def set_types(self, types: tuple[str, ...]) -> None:
        assert len(types) == 5

    def write_row(self, row: tuple[Any, ...]) -> None:
        self.rows.append(row)

    def execute(self, statement: str) -> None:
        self.done.append(statement.split()[0])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> _Recorder:
    """Return what takes the place of every connection."""
    recorder = _Recorder()
    monkeypatch.setattr(postgresql_table, "connect", lambda *_, **__: recorder)
    monkeypatch.setitem(sys.modules, "psycopg", SimpleNamespace(Error=ValueError))
    return recorder


LOADING = ["DROP", "CREATE", "COPY", "VACUUM"]


def test_two_peers_load_their_table_once_and_drop_it_once(tmp_path: Path, server: _Recorder) -> None:
    table = PostgresqlTable("postgresql://127.0.0.1/d")
    peers = [PostgresqlLookup(table), FlinkJdbcLookup(FlinkInstallation(), table)]
    bench = small_bench(tmp_path, master_rows=300)
    for peer in peers:
        peer.prepare(bench)
    assert server.done == LOADING
    assert [row[0] for row in server.rows] == list(range(300))
    for peer in peers:
        peer.clean_up()
    assert server.done == [*LOADING, "DROP"]


def test_other_data_and_a_dropped_table_are_loaded_again(tmp_path: Path, server: _Recorder) -> None:
    table = PostgresqlTable("postgresql://127.0.0.1/d")
    table.load(small_bench(tmp_path, master_rows=10).data)
    table.load(small_bench(tmp_path, master_rows=20).data)
    assert server.done == 2 * LOADING
    table.drop()
    table.load(small_bench(tmp_path, master_rows=20).data)
    assert server.done == [*2 * LOADING, "DROP", *LOADING]


def test_a_table_that_was_not_made_here_is_not_dropped(server: _Recorder) -> None:
    PostgresqlTable("postgresql://127.0.0.1/d").drop()
    PostgresqlLookup(PostgresqlTable(None)).clean_up()
    FlinkJdbcLookup(FlinkInstallation(), PostgresqlTable(None)).clean_up()
    assert server.done == []


def test_how_a_server_was_reached_is_told_without_its_password(server: _Recorder) -> None:
    reached = PostgresqlTable("postgresql://me:secret@127.0.0.1/d").reached()
    assert (reached.host, reached.user, reached.password) == ("127.0.0.1", "me", server.info.password)
    assert "secret" not in repr(reached)
