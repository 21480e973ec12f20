"""Rows of real databases are found by keys of every kind, and only by these."""

from __future__ import annotations

from datetime import UTC, date
from datetime import datetime as moment

import numpy as np
import pyarrow as pa
import pytest
from database_rows import Server, execute, opened, rows_by_keys, rows_by_pages

from semistream.core.errors import (
    KeyTypeError,
    MasterNotFoundError,
    UnknownColumnError,
)
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

KEYS: dict[str, tuple[str, str, pa.Array]] = {
    "small integers": ("smallint", "smallint", pa.array([-5, 0, 7], pa.int16())),
    "all integers": ("bigint", "bigint", pa.array([-(2**63), 0, 2**63 - 1])),
    "dates": ("date", "date", pa.array([date(1000, 1, 1), date(1970, 1, 1), date(9999, 12, 31)])),
    "naive timestamps": (
        "timestamp",
        "datetime(6)",
        pa.array([moment(1000, 1, 1, 0, 0, 0, 1), moment(1970, 1, 1), moment(9999, 12, 31, 23, 59, 59, 999999)]),
    ),
    "timestamps": (
        "timestamptz",
        "timestamp(6) null",
        pa.array(
            [
                moment(1970, 1, 1, 0, 0, 1, 1, UTC),
                moment(2024, 3, 31, 1, 30, tzinfo=UTC),
                moment(2037, 1, 1, tzinfo=UTC),
            ],
            pa.timestamp("us", "UTC"),
        ),
    ),
}


@pytest.mark.parametrize("kind", KEYS)
def test_rows_are_found_by_keys_of_every_kind_that_has_an_order(server: Server, kind: str) -> None:
    on_postgresql, on_mariadb, keys = KEYS[kind]
    declared = on_postgresql if isinstance(server, PostgresqlServer) else on_mariadb
    server.load("keyed", pa.table({"id": keys, "n": [0, 1, 2]}), {"id": declared, "n": "int"})
    with opened(server, "keyed", page_bytes=1, row_bytes=1) as store:
        assert store.page_count == 3
        for page in range(3):
            read = store.read(np.array([page]), np.array([page]))
            assert read.take(np.arange(len(read.codes)), ["n"]).to_pylist() == [{"n": page}]
        strange = pa.array([*store.codec.encode([keys]).codes, -(2**62), 2**62, 3], pa.int64())
        reader = store.row_reader(["n", "id"], 100_000)
        assert reader is not None
        codes = np.unique(strange.to_numpy())
        found = reader.look_up(codes, store.locate(codes))
        assert found.code_count == len(codes)
        assert found.bounds[-1] == 3


def test_a_big_unsigned_key_is_refused_with_a_sentence(mariadb: MariadbServer) -> None:
    execute(mariadb, "DROP TABLE IF EXISTS keyed", "CREATE TABLE keyed (id bigint unsigned PRIMARY KEY)")
    execute(mariadb, f"INSERT INTO keyed VALUES (1), ({2**63})")
    with pytest.raises(KeyTypeError, match="above"), opened(mariadb, "keyed") as store:
        rows_by_pages(store)


def test_rows_that_come_and_go_after_the_fences_were_found_are_seen_and_missed(server: Server) -> None:
    server.load("alive", pa.table({"id": range(100, 200), "n": range(100)}), {"id": "bigint", "n": "int"})
    with opened(server, "alive", page_bytes=200, row_bytes=20) as store:
        assert store.page_count == 10
        execute(server, "INSERT INTO alive VALUES (-5, 1), (150, 2), (1000, 3)", "DELETE FROM alive WHERE id = 120")
        rows = rows_by_pages(store)
        assert [row["id"] for row in rows][:2] == [-5, 100]
        assert len(rows) == 102
        keys = [-5, 120, 150, 1000, 7000]
        assert sorted(row["k"] for row in rows_by_keys(store, pa.array(keys))) == [-5, 150, 150, 1000]


def test_a_view_can_be_a_master_table_and_a_null_key_has_no_row(server: Server) -> None:
    server.load("below", pa.table({"id": [1, None, 3], "n": [1, 2, 3]}), {"id": "bigint", "n": "int"})
    execute(server, "DROP VIEW IF EXISTS shown", "CREATE VIEW shown AS SELECT id, n * 10 AS tens FROM below")
    with opened(server, "shown") as store:
        assert store.row_count == 2
        assert not store.unique
        assert [(row["id"], row["tens"]) for row in rows_by_pages(store)] == [(1, 10), (3, 30)]
    execute(server, "DROP VIEW shown")


def test_a_key_is_unique_only_if_an_index_makes_sure_of_it(server: Server) -> None:
    execute(
        server,
        "DROP TABLE IF EXISTS sure",
        "CREATE TABLE sure (id int PRIMARY KEY, a int, b int, c int, UNIQUE (a, b), UNIQUE (c))",
        "CREATE INDEX sure_a ON sure (a)",
    )
    for key, unique in (("id", True), ("a", False), ("c", True)):
        with opened(server, "sure", key) as store:
            assert store.unique == unique


def test_a_key_without_an_index_is_refused(server: Server) -> None:
    server.load("without", pa.table({"id": [1], "n": [1]}), {"id": "bigint", "n": "int"}, key=None)
    with pytest.raises(KeyTypeError, match="has no index on 'id'"):
        opened(server, "without")


def test_a_table_or_column_that_is_not_there_is_named(server: Server) -> None:
    with pytest.raises(MasterNotFoundError, match="'nowhere'"):
        opened(server, "nowhere")
    server.load("there", pa.table({"id": [1]}), {"id": "bigint"})
    with pytest.raises(MasterNotFoundError, match="no column 'nothing'"):
        opened(server, "there", "nothing")
    with opened(server, "there") as store, pytest.raises(UnknownColumnError):
        store.row_reader(["nothing"], 1000)
