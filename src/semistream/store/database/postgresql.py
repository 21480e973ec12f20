"""Reads a table of PostgreSQL: a query brings each column as one array, so that no row passes through Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.errors import MasterNotFoundError, UnsupportedValueError
from semistream.store.database import postgresql_keys as keys
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column, Database, Description
from semistream.store.database.postgresql_arrays import arrow_array
from semistream.store.database.postgresql_connection import connect, fault_of
from semistream.store.database.postgresql_types import arrow_type
from semistream.store.database.sessions import Sessions

from psycopg import sql  # isort: skip - after the module that says how to install it

_LONG = 20
"""How many times longer than others a query may take that looks at all keys."""
_MAX_RANGES = 64
"""How many ranges one query has."""

_TABLE = """
SELECT c.oid::int8, c.relkind::text, current_setting('server_encoding')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = %(table)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND CASE WHEN %(schema)s::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = %(schema)s END
"""
_COLUMNS = """
WITH RECURSIVE based AS (
  SELECT a.attname::text AS name, a.attnum, a.atttypid AS type, a.atttypmod AS modifier
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT b.name, b.attnum, t.typbasetype, CASE WHEN b.modifier < 0 THEN t.typtypmod ELSE b.modifier END
  FROM based b JOIN pg_catalog.pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT b.name, b.attnum, t.typname::text, b.modifier, n.nspname = 'pg_catalog' AND t.typtype = 'b'
FROM based b JOIN pg_catalog.pg_type t ON t.oid = b.type JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
_INDEXES = """
SELECT coalesce(bool_or(i.indisunique AND i.indnkeyatts = 1), false), count(*) > 0
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am m ON m.oid = c.relam
WHERE i.indrelid = %(oid)s AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree' AND i.indkey[0] = %(attnum)s
"""


class _Identifier(sql.Identifier):
    """A name, quoted by the driver, for a query with parameters, in which a percent sign must be doubled."""

    def as_bytes(self, context: Any = None) -> bytes:
        """Return the quoted name."""
        return super().as_bytes(context).replace(b"%", b"%%")


class PostgresqlTable(Database):
    """One table or view of PostgreSQL with an integer-like key."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        parts = (address.table,) if address.schema is None else (address.schema, address.table)
        self._table = _Identifier(*parts)
        self.sessions = Sessions(address.server, partial(connect, address), fault_of, address.retry_seconds)

    def describe(self) -> Description:
        """Return columns, types and indexes by three queries of the catalogue."""
        return self.sessions.run(self._described)

    def _described(self, connection: Any) -> Description:
        address = self._address
        connection.end_after(address.statement_seconds)
        found = connection.execute(_TABLE, {"table": address.table, "schema": address.schema}).fetchone()
        if found is None:
            raise MasterNotFoundError(
                f"{address.server} has no table or view {address.table_name!r} that this user can see: check the name "
                f"and the schema, and that the user may read it."
            )
        oid, kind, encoding = found
        if encoding == "SQL_ASCII":
            raise UnsupportedValueError(
                f"{address.server} stores text without a known encoding (SQL_ASCII): copy the table with "
                f"MasterTable.build, and use the copy."
            )
        columns, numbers = [], {}
        for name, number, declared, modifier, is_built_in in connection.execute(_COLUMNS, {"oid": oid}).fetchall():
            data_type, expression = arrow_type(name, declared if is_built_in else "", modifier)
            columns.append(Column(name, data_type, expression, declared))
            numbers[name] = number
        unique, indexed = False, True
        if address.key[0] in numbers and kind in "rpm":
            asked = {"oid": oid, "attnum": numbers[address.key[0]]}
            unique, indexed = connection.execute(_INDEXES, asked).fetchone()
        return Description(tuple(columns), unique, indexed)

    def row_count(self, key: Column) -> int:
        """Return how many rows have a key, by a pass over the index."""
        query = sql.SQL("SELECT count({}) FROM {}").format(_Identifier(key.name), self._table)

        def count(connection: Any) -> int:
            connection.end_after(_LONG * self._address.statement_seconds)
            return int(connection.execute(query, ()).fetchone()[0])

        return self.sessions.run(count)

    def every(self, key: Column, step: int) -> pa.Array:
        """Return each `step`th key; the server numbers the keys in the order of its index."""
        name = _Identifier(key.name)
        numbered = sql.SQL("SELECT {}, row_number() OVER (ORDER BY {}) AS number FROM {} WHERE {} IS NOT NULL")
        query = sql.SQL("SELECT * FROM ({}) AS numbered WHERE mod(number - 1, %s::int8) = 0").format(
            numbered.format(_selected([key]), name, self._table, name)
        )
        return self._rows(query, (step,), [key], times=_LONG).column(0)

    def ends(self, key: Column, columns: Sequence[Column], count: int) -> pa.RecordBatch:
        """Return rows from both ends of the index."""
        name = _Identifier(key.name)
        one = sql.SQL("(SELECT {} FROM {} WHERE {} IS NOT NULL ORDER BY {} {} LIMIT %s::int8)")
        first, last = (one.format(_selected(columns), self._table, name, name, way) for way in (_ASC, _DESC))
        return self._rows(sql.SQL("{} UNION ALL {}").format(first, last), (count, count), columns)

    def in_ranges(self, key: Column, columns: Sequence[Column], lows: Int64Array, highs: Int64Array) -> pa.RecordBatch:
        """Return the rows of ranges, of some dozens by one query."""
        end = sql.SQL(keys.bound(key.type))
        one = sql.SQL("SELECT {} FROM {} WHERE {} BETWEEN {} AND {}").format(
            _selected(columns), self._table, _Identifier(key.name), end, end
        )
        pieces = []
        for start in range(0, len(lows), _MAX_RANGES):
            some = slice(start, start + _MAX_RANGES)
            bounds = np.concatenate([keys.parameters(key.type, lows[some]), keys.parameters(key.type, highs[some])], 1)
            query = sql.SQL(" UNION ALL ").join([one] * len(bounds))
            pieces.append(self._rows(query, bounds.reshape(-1).tolist(), columns))
        return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)

    def of_codes(self, key: Column, columns: Sequence[Column], codes: Int64Array) -> pa.RecordBatch:
        """Return the rows of keys by one query."""
        query = sql.SQL("SELECT {} FROM {} WHERE {} = ANY({})").format(
            _selected(columns), self._table, _Identifier(key.name), sql.SQL(keys.array(key.type))
        )
        lists = keys.parameters(key.type, keys.within(key.type, codes)).T.tolist()
        return self._rows(query, lists, columns)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.sessions.close()

    def _rows(
        self, query: sql.Composable, parameters: Sequence[Any], columns: Sequence[Column], times: int = 1
    ) -> pa.RecordBatch:
        """Return the rows of a query, whose columns are named c0, c1 and so on."""
        arrays = sql.SQL(", ").join(sql.SQL("array_agg({})").format(_name(place)) for place in range(len(columns)))
        whole = sql.SQL("SELECT {} FROM ({}) AS found").format(arrays, query)

        def read(connection: Any) -> list[bytes | None]:
            connection.end_after(times * self._address.statement_seconds)
            result = connection.execute(whole, parameters, binary=True).pgresult
            return [result.get_value(0, place) for place in range(len(columns))]

        values = self.sessions.run(read)
        decoded = [arrow_array(value, c.type, c.name) for value, c in zip(values, columns, strict=True)]
        schema = pa.schema([pa.field(column.name, column.type) for column in columns])
        return pa.RecordBatch.from_arrays(decoded, schema=schema)


_ASC, _DESC = sql.SQL("ASC"), sql.SQL("DESC")


def _name(place: int) -> sql.Composable:
    return _Identifier(f"c{place}")


def _selected(columns: Sequence[Column]) -> sql.Composable:
    """Return what is selected; an expression is one of a few that are written in `postgresql_types`."""
    return sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(sql.SQL(column.expression).format(_Identifier(column.name)), _name(place))
        for place, column in enumerate(columns)
    )
