"""Values of real databases come as they are, or are an error that names their column."""

from __future__ import annotations

import math
from datetime import UTC, date
from datetime import datetime as moment
from datetime import time as clock
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from database_rows import Server, execute, opened, rows_by_keys, rows_by_pages

from semistream.core.errors import (
    UnsupportedValueError,
)
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

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
        ("numeric", "'-Infinity'"),
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
    execute(postgresql, "INSERT INTO odd VALUES (0, NULL)")
    with opened(postgresql, "odd", row_bytes=50) as store:
        reader = store.row_reader(["odd_value"], 100_000)
        assert reader is not None
        execute(postgresql, f"INSERT INTO odd VALUES (1, {value})")
        with pytest.raises(UnsupportedValueError, match="odd_value"):
            reader.look_up(np.array([1]), np.zeros(1, dtype=np.int32))
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
