"""Rows of real databases come as they are: types, NULLs, keys of several kinds, hostile names; and every algorithm."""

from __future__ import annotations

import math
from datetime import UTC, date
from datetime import datetime as moment
from datetime import time as clock
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import (
    InvalidSettingError,
    KeyTypeError,
    MasterNotFoundError,
    RowTooLargeError,
    SemistreamError,
    UnknownColumnError,
    UnsupportedValueError,
)
from semistream.store.contract import MasterStore
from semistream.store.database.mysql import quoted
from semistream.testing import assert_same_rows, joined_rows, reference_join
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

Server = PostgresqlServer | MariadbServer


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    """Return each kind of server."""
    found: Server = request.getfixturevalue(request.param)
    return found


def execute(server: Server, *statements: str) -> None:
    """Run statements as the owner of everything."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def opened(server: Server, table: str, key: str = "id", **options: object) -> MasterStore:
    return ss.MasterTable(server.address(table, key, **options)).open()


def rows_by_pages(store: MasterStore) -> list[dict[str, Any]]:
    """Return all rows of a store, by one read."""
    if not store.page_count:
        return []
    pages = store.read(np.array([0]), np.array([store.page_count - 1]))
    rows: list[dict[str, Any]] = pages.take(np.arange(len(pages.codes)), store.schema.names).to_pylist()
    return rows


def rows_by_keys(store: MasterStore, keys: pa.Array) -> list[dict[str, Any]]:
    """Return the rows of keys by a look-up, as a left join in the order of a stream."""
    joined = ss.join(pa.table({"k": keys}), store, on={"k": store.key[0]}, how="inner", memory="8MB")
    rows: list[dict[str, Any]] = joined.read_all().to_pylist()
    return rows


POSTGRESQL_VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "a_bool": ("boolean", pa.bool_(), [True, False, None]),
    "a_small": ("smallint", pa.int16(), [-(2**15), 2**15 - 1, None]),
    "an_int": ("integer", pa.int32(), [-(2**31), 2**31 - 1, None]),
    "a_big": ("bigint", pa.int64(), [-(2**63), 2**63 - 1, None]),
    "a_real": ("real", pa.float32(), [0.5, math.inf, None]),
    "a_double": ("double precision", pa.float64(), [0.1, -math.inf, None]),
    "a_price": ("numeric(10, 2)", pa.decimal128(10, 2), [Decimal("-12345678.90"), Decimal("0.01"), None]),
    "many": ("numeric(38, 0)", pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1), None]),
    "free": ("numeric", pa.decimal128(38, 18), [Decimal("1.5"), Decimal("-0.000000000000000001"), None]),
    "hundreds": ("numeric(3, -2)", pa.decimal128(5, 0), [Decimal(12300), Decimal(-99900), None]),
    "thin": ("numeric(2, 4)", pa.decimal128(4, 4), [Decimal("0.0099"), Decimal("-0.0001"), None]),
    "a_text": ("text", pa.string(), ["é🦆 \\ ' \" %s", "", None]),
    "a_char": ("char(4)", pa.string(), ["ab  ", "abcd", None]),
    "bytes": ("bytea", pa.binary(), [b"\x00\xff", b"", None]),
    "day": ("date", pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    "clock": ("time", pa.time64("us"), [clock(0), clock(23, 59, 59, 999999), None]),
    "naive": ("timestamp", pa.timestamp("us"), [moment(1969, 12, 31, 23, 59, 59, 1), moment(9999, 12, 31), None]),
    "zoned": (
        "timestamptz",
        pa.timestamp("us", "UTC"),
        [moment(2024, 3, 31, 1, 30, tzinfo=UTC), moment(1, 1, 2, tzinfo=UTC), None],
    ),
    "an_id": (
        "uuid",
        pa.string(),
        ["7d444840-9dc0-11d1-b245-5ffdce74fad2", "00000000-0000-0000-0000-000000000000", None],
    ),
    "json": ("jsonb", pa.string(), ['{"a": 1}', "null", None]),
    "list": ("int[]", pa.string(), ["{1,2}", "{}", None]),
    "mood": ("mood", pa.string(), ["sad", "happy", None]),
    "positive": ("positive", pa.int32(), [1, 2, None]),
}
MARIADB_VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "tiny": ("tinyint", pa.int8(), [-128, 127, None]),
    "utiny": ("tinyint unsigned", pa.uint8(), [0, 255, None]),
    "small": ("smallint", pa.int16(), [-(2**15), 2**15 - 1, None]),
    "medium": ("mediumint unsigned", pa.uint32(), [0, 2**24 - 1, None]),
    "uint": ("int unsigned", pa.uint32(), [0, 2**32 - 1, None]),
    "big": ("bigint", pa.int64(), [-(2**63), 2**63 - 1, None]),
    "ubig": ("bigint unsigned", pa.uint64(), [0, 2**64 - 1, None]),
    "flag": ("bit(9)", pa.uint64(), [257, 0, None]),
    "single": ("float", pa.float32(), [np.float32(0.1).item(), np.float32(16777217.0).item(), None]),
    "real": ("double", pa.float64(), [0.1, 1.7976931348623157e308, None]),
    "price": (
        "decimal(38, 10)",
        pa.decimal128(38, 10),
        [Decimal("-1234567890123456789012345678.0123456789"), Decimal("0"), None],
    ),
    "chars": ("varchar(40)", pa.string(), ["é🦆 \\ ' \" %s", "", None]),
    "latin": ("varchar(40) character set latin1", pa.string(), ["é", "", None]),
    "bytes": ("varbinary(9)", pa.binary(), [b"\x00\xff\xfe\xfb", b"", None]),
    "long": ("longtext", pa.string(), ["x" * 70_000, "y" * 300, None]),
    "kind": ("enum('sad', 'happy')", pa.string(), ["sad", "happy", None]),
    "day": ("date", pa.date32(), [date(1000, 1, 1), date(9999, 12, 31), None]),
    "naive": ("datetime(6)", pa.timestamp("us"), [moment(1000, 1, 1, 0, 0, 0, 1), moment(9999, 12, 31), None]),
    "zoned": (
        "timestamp(6) null",
        pa.timestamp("us", "UTC"),
        [moment(2024, 3, 31, 1, 30, tzinfo=UTC), moment(2037, 1, 1, tzinfo=UTC), None],
    ),
    "years": ("year", pa.int16(), [1901, 2155, None]),
    "json": ("json", pa.string(), ['{"a": 1}', "null", None]),
    "clock": ("time", pa.string(), ["-838:59:59", "00:00:01", None]),
}


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_values_of_every_type_come_as_they_are_by_pages_and_by_keys(kind: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(kind)
    values = POSTGRESQL_VALUES if kind == "postgresql" else MARIADB_VALUES
    if isinstance(server, PostgresqlServer):
        execute(
            server,
            "DROP TABLE IF EXISTS of_every_type",
            "DROP TYPE IF EXISTS mood",
            "DROP DOMAIN IF EXISTS positive",
            "CREATE TYPE mood AS ENUM ('sad', 'happy')",
            "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        )
    columns: dict[str, Any] = {"id": pa.array([5, 7, 9])}
    columns |= {
        name: pa.array([str(v) if isinstance(v, Decimal) else v for v in of], pa.uint64() if name == "ubig" else None)
        for name, (_, _, of) in values.items()
    }
    types = {"id": "bigint"} | {name: declared for name, (declared, _, _) in values.items()}
    server.load("of_every_type", pa.table(columns), types)
    with opened(server, "of_every_type") as store:
        assert {field.name: field.type for field in store.schema} == {"id": pa.int64()} | {
            name: data_type for name, (_, data_type, _) in values.items()
        }
        expected = pa.table(
            {"id": pa.array([5, 7, 9])} | {name: pa.array(of, data_type) for name, (_, data_type, of) in values.items()}
        ).to_pylist()
        assert rows_by_pages(store) == expected
        assert sorted(rows_by_keys(store, pa.array([9, 5, 7, 6])), key=lambda row: row["k"]) == [
            {"k": row["id"]} | {name: value for name, value in row.items() if name != "id"} for row in expected
        ]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("numeric", "'NaN'"),
        ("numeric(10, 2)", "'NaN'"),
        ("numeric", "'Infinity'"),
        ("numeric", "0.0000000000000000001"),
        ("numeric", "10::numeric ^ 21"),
        ("date", "'infinity'"),
        ("timestamp", "'-infinity'"),
        ("timestamptz", "'infinity'"),
        ("timestamp", "'294270-01-01'"),
        ("time", "'24:00:00'"),
    ],
)
def test_a_value_of_postgresql_without_a_counterpart_is_an_error_that_names_the_column(
    postgresql: PostgresqlServer, declared: str, value: str
) -> None:
    execute(postgresql, "DROP TABLE IF EXISTS odd", f"CREATE TABLE odd (id int PRIMARY KEY, odd_value {declared})")
    execute(postgresql, f"INSERT INTO odd VALUES (1, {value})")
    with pytest.raises(UnsupportedValueError, match="odd_value"), opened(postgresql, "odd", row_bytes=50) as store:
        rows_by_pages(store)


def test_a_date_of_zeros_is_an_error_that_names_the_column(mariadb: MariadbServer) -> None:
    for declared in ("date", "datetime"):
        execute(mariadb, "DROP TABLE IF EXISTS odd", f"CREATE TABLE odd (id int PRIMARY KEY, odd_value {declared})")
        execute(mariadb, "SET sql_mode = ''", "INSERT INTO odd VALUES (1, '0000-00-00')")
        with pytest.raises(UnsupportedValueError, match="odd_value"), opened(mariadb, "odd", row_bytes=50) as store:
            rows_by_pages(store)


def test_decimals_of_more_digits_than_arrow_has_are_refused_when_the_table_is_opened(server: Server) -> None:
    declared = "numeric(39, 2)" if isinstance(server, PostgresqlServer) else "decimal(39, 2)"
    execute(server, "DROP TABLE IF EXISTS odd", f"CREATE TABLE odd (id int PRIMARY KEY, odd_value {declared})")
    with pytest.raises(UnsupportedValueError, match=r"'odd_value' .* 39 digits"):
        opened(server, "odd")


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


@pytest.mark.parametrize("declared", ["varchar(20)", "double precision", "decimal(10, 0)"])
def test_a_key_without_an_order_of_codes_is_refused_with_the_way_out(server: Server, declared: str) -> None:
    server.load("texts", pa.table({"id": ["1"], "n": [1]}), {"id": declared, "n": "int"})
    with pytest.raises(KeyTypeError, match=r"copy it with MasterTable\.build"):
        opened(server, "texts")


def test_a_table_or_column_that_is_not_there_is_named(server: Server) -> None:
    with pytest.raises(MasterNotFoundError, match="'nowhere'"):
        opened(server, "nowhere")
    server.load("there", pa.table({"id": [1]}), {"id": "bigint"})
    with pytest.raises(MasterNotFoundError, match="no column 'nothing'"):
        opened(server, "there", "nothing")
    with opened(server, "there") as store, pytest.raises(UnknownColumnError):
        store.row_reader(["nothing"], 1000)


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


def test_rows_far_larger_than_the_sample_are_an_error_that_names_the_option(server: Server) -> None:
    rows = pa.table({"id": range(1000), "t": ["x" * (4000 if 500 <= n < 1000 else 1) for n in range(1000)]})
    server.load("fat", rows, {"id": "bigint", "t": "text"})
    with opened(server, "fat", row_bytes=10) as store, pytest.raises(RowTooLargeError, match=r"row_bytes=\d+"):
        rows_by_pages(store)
    with opened(server, "fat") as store:
        assert rows_by_pages(store) == rows.to_pylist()


def test_a_look_up_keeps_to_its_memory_and_says_how_far_it_came(server: Server) -> None:
    rows = pa.table({"id": range(400), "t": ["x" * 2000] * 400})
    server.load("fat", rows, {"id": "bigint", "t": "text"})
    with opened(server, "fat", row_bytes=10) as store:
        reader = store.row_reader(["t"], 50_000)
        assert reader is not None
        codes, done = np.arange(-3, 410), 0
        looks = 0
        while done < len(codes):
            rest = codes[done:]
            found = reader.look_up(rest, store.locate(rest))
            assert found.code_count >= 1
            assert int(found.bounds[-1]) <= 52
            done += found.code_count
            looks += 1
        assert looks >= 8
        assert reader.read_requests >= looks


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_joins_with_a_table_of_postgresql(postgresql: PostgresqlServer, algorithm: str) -> None:
    random = np.random.default_rng(3)
    master = pa.table(
        {"id": np.arange(0, 4000, 2), "name": [f"product {n}" for n in range(2000)], "n": np.arange(2000)}
    )
    if algorithm == next(iter(ALGORITHMS)):
        postgresql.load("joined", master, {"id": "bigint", "name": "text", "n": "bigint"}, more=", UNIQUE (id)")
    stream = pa.table(
        {"id": 2 * np.minimum(random.zipf(1.3, 3000), 2200) + (random.random(3000) < 0.05), "row": np.arange(3000)}
    )
    joined = ss.join(
        stream, postgresql.address("joined", page_bytes=2048), on="id", how="left", algorithm=algorithm, memory="1MB"
    )
    assert_same_rows(joined_rows(joined.read_all()), reference_join(stream, master, on={"id": "id"}, how="left"))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_joins_of_random_tables_are_those_of_the_reference(server: Server, seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 600))

    def some(values: Any, data_type: pa.DataType) -> pa.Array:
        chosen = [None if random.random() < 0.2 else value for value in values]
        integers = (
            [None if value is None else int(value) for value in chosen] if pa.types.is_temporal(data_type) else chosen
        )
        return pa.array(integers, data_type)

    master = pa.table(
        {
            "id": pa.array(random.integers(-300, 300, count), pa.int64()),
            "i": some(random.integers(-(2**31), 2**31, count), pa.int32()),
            "d": some(random.normal(size=count), pa.float64()),
            "t": some(("é" * int(n) for n in random.integers(0, 50, count)), pa.string()),
            "p": some(
                (Decimal(int(n)).scaleb(-2) for n in random.integers(-(10**9), 10**9, count)), pa.decimal128(12, 2)
            ),
            "day": some(random.integers(-100_000, 100_000, count).astype(np.int32), pa.date32()),
            "at": some(random.integers(-(10**15), 10**15, count), pa.timestamp("us")),
        }
    )
    types = {"id": "bigint", "i": "int", "d": "double precision", "t": "text", "p": "decimal(12, 2)", "day": "date"}
    types["at"] = "timestamp" if isinstance(server, PostgresqlServer) else "datetime(6)"
    server.load("random_rows", master, types)
    stream = pa.table({"id": pa.array(random.integers(-350, 350, 2000), pa.int64(), mask=random.random(2000) < 0.1)})
    for how in ("inner", "left", "semi", "anti"):
        joined = ss.join(stream, server.address("random_rows", page_bytes=1000), on="id", how=how, memory="2MB")
        assert_same_rows(joined_rows(joined.read_all()), reference_join(stream, master, on={"id": "id"}, how=how))


HOSTILE = [
    *("'; DROP TABLE canary; --", '"; DROP TABLE canary; --', "`; DROP TABLE canary; --", "x`; DROP TABLE canary; #"),
    *('a" FROM canary; DROP TABLE canary; --', "a` FROM canary; DROP TABLE canary; #", "%s", "%(x)s", "%", "%%", "{}"),
    *("{0}", "{canary}", "\\", "\\'", '\\"', "\\`", "''", '""', "``", "a''b", 'a""b', "a``b", "a;b", "a--b", "a/*b*/c"),
    *("$1", "$$", "$x$", ":x", "?", "a\nb", "a\tb", "é", "🦆", "select", "from", "1", "1=1", "OR 1=1", "') OR ('1'='1"),
    *("c0", "number", "found", "pg_sleep(9)", "sleep(9)", "x'41'", "0x41", "@@version", "a b", " lead"),
]  # fmt: skip


def test_there_are_fifty_hostile_names() -> None:
    assert len(set(HOSTILE)) >= 50


def quote_for(server: Server, name: str) -> str:
    """Return an identifier for a statement without parameters."""
    return (
        '"' + name.replace('"', '""') + '"' if isinstance(server, PostgresqlServer) else quoted(name).replace("%%", "%")
    )


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
