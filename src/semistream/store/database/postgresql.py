"""Reads a table of PostgreSQL: a query brings each column as one array, so that no row passes through Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.errors import MasterNotFoundError, UnsupportedValueError
from semistream.core.value_widths import fixed_width
from semistream.store.database import postgresql_keys as keys
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column, Database, Description, ResultTooLargeError
from semistream.store.database.postgresql_arrays import arrow_array
from semistream.store.database.postgresql_connection import connect, fault_of
from semistream.store.database.postgresql_types import arrow_type
from semistream.store.database.sessions import Sessions

from psycopg import sql  # isort: skip - after the module that says how to install it

_LONG = 20
"""How many times longer than others a query may take that looks at all keys."""
_MAX_RANGES = 64
"""How many ranges one query has."""
_NO_LIMIT = 1 << 62
_ELEMENT_BYTES = 4
"""What comes before each value."""

_TABLE = """
SELECT c.oid::int8, c.relkind::text, current_setting('server_encoding')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = %(table)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND CASE WHEN %(schema)s::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = %(schema)s END
"""
_COLUMNS = """
WITH RECURSIVE based AS (
  SELECT a.attname::text AS name, a.attnum, a.atttypid AS type, a.atttypmod AS modifier, a.attcollation
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT b.name, b.attnum, t.typbasetype, CASE WHEN b.modifier < 0 THEN t.typtypmod ELSE b.modifier END, b.attcollation
  FROM based b JOIN pg_catalog.pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT b.name, b.attnum, t.typname::text, b.modifier, n.nspname = 'pg_catalog' AND t.typtype = 'b',
       EXISTS (SELECT FROM pg_catalog.pg_collation l WHERE l.oid = b.attcollation AND NOT l.collisdeterministic)
FROM based b JOIN pg_catalog.pg_type t ON t.oid = b.type JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
# An index leads to a key if it begins with all columns of it, in any order, and compares them as the table does.
_INDEXES = """
SELECT coalesce(bool_or(i.indisunique AND i.columns[0:i.indnkeyatts - 1] <@ %(key)s::int2[]), false),
       coalesce(bool_or(i.columns[0:%(last)s::int4] @> %(key)s::int2[] AND NOT EXISTS (
         SELECT FROM unnest(i.columns, i.collations) WITH ORDINALITY AS part(number, collation_oid, place)
         JOIN pg_catalog.pg_attribute a ON a.attrelid = %(oid)s AND a.attnum = part.number
         WHERE part.place <= cardinality(%(key)s::int2[]) AND part.collation_oid <> a.attcollation)), false)
FROM (
  SELECT i.*, i.indkey::int2[] AS columns, i.indcollation::oid[] AS collations FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am m ON m.oid = c.relam
  WHERE i.indrelid = %(oid)s AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree'
) AS i
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
        self._encoding: str | None = None

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
        self._encoding = encoding
        if encoding == "SQL_ASCII":
            raise UnsupportedValueError(
                f"{address.server} stores text without a known encoding (SQL_ASCII): copy the table with "
                f"MasterTable.build, and use the copy."
            )
        columns, numbers = [], {}
        found = connection.execute(_COLUMNS, {"oid": oid}).fetchall()
        for name, number, declared, modifier, is_built_in, folds in found:
            data_type, expression = arrow_type(name, declared if is_built_in else "", modifier)
            shown = declared if is_built_in else f"a type {declared}"
            columns.append(Column(name, data_type, expression, shown, folds=folds))
            numbers[name] = number
        unique, indexed = False, True
        if all(name in numbers for name in address.key) and kind in "rpm":
            key = sorted({numbers[name] for name in address.key})
            asked = {"oid": oid, "key": key, "last": len(key) - 1}
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

    def ends(self, key: Column, columns: Sequence[Column], count: int, max_bytes: int) -> pa.RecordBatch:
        """Return rows from both ends of the index."""
        name = _Identifier(key.name)
        one = sql.SQL("(SELECT {} FROM {} WHERE {} IS NOT NULL ORDER BY {} {} LIMIT %s::int8)")
        first, last = (one.format(_selected(columns), self._table, name, name, way) for way in (_ASC, _DESC))
        return self._rows(sql.SQL("{} UNION ALL {}").format(first, last), (count, count), columns, max_bytes)

    def in_ranges(
        self, key: Column, columns: Sequence[Column], lows: Int64Array, highs: Int64Array, max_bytes: int
    ) -> pa.RecordBatch:
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
            pieces.append(self._rows(query, bounds.reshape(-1).tolist(), columns, max_bytes))
            max_bytes -= pieces[-1].nbytes
        return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)

    def of_codes(self, key: Column, columns: Sequence[Column], codes: Int64Array, max_bytes: int) -> pa.RecordBatch:
        """Return the rows of keys by one query."""
        query = sql.SQL("SELECT {} FROM {} WHERE {} = ANY({})").format(
            _selected(columns), self._table, _Identifier(key.name), sql.SQL(keys.array(key.type))
        )
        lists = keys.parameters(key.type, keys.within(key.type, codes)).T.tolist()
        return self._rows(query, lists, columns, max_bytes)

    def can_be_key(self, column: Column) -> bool:
        """Say whether the type is one of those that are compared exactly, and any text can be asked for."""
        return keys.can_be_asked(column) and (not pa.types.is_string(column.type) or self._encoding == "UTF8")

    def of_keys(
        self, key: Sequence[Column], columns: Sequence[Column], values: Sequence[pa.Array], max_bytes: int
    ) -> pa.RecordBatch:
        """Return the rows of keys by one query, which looks for one key after the other by the index.

        Without OFFSET the planner might read the whole table instead, which it takes for cheaper far too soon.
        """
        arrays: list[sql.Composable] = []
        conditions: list[sql.Composable] = []
        for part in key:
            types, condition = keys.asked(part)
            names = [sql.SQL("asked.{}").format(sql.Identifier(f"a{len(arrays) + n}")) for n in range(len(types))]
            column = sql.SQL("master.{}").format(_Identifier(part.name))
            conditions.append(sql.SQL(condition).format(*names, key=column))
            arrays.extend(sql.SQL("%s::" + of_type) for of_type in types)
        query = sql.SQL(
            "SELECT found.* FROM unnest({}) AS asked({}) "
            "CROSS JOIN LATERAL (SELECT {} FROM {} AS master WHERE {} OFFSET 0) AS found"
        ).format(
            sql.SQL(", ").join(arrays),
            sql.SQL(", ").join(sql.Identifier(f"a{place}") for place in range(len(arrays))),
            _selected(columns),
            self._table,
            sql.SQL(" AND ").join(conditions),
        )
        return self._rows(query, keys.asked_parameters(key, values), columns, max_bytes)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.sessions.close()

    def _rows(
        self,
        query: sql.Composable,
        parameters: Sequence[Any],
        columns: Sequence[Column],
        max_bytes: int = _NO_LIMIT,
        times: int = 1,
    ) -> pa.RecordBatch:
        """Return the rows of a query, whose columns are named c0, c1 and so on; the server counts what they take."""
        names = [_name(place) for place in range(len(columns))]
        arrays = [sql.SQL("array_agg({}) AS {}").format(name, name) for name in names]
        limit = sql.Literal(max(0, max_bytes))
        whole = sql.SQL("SELECT size, {} FROM (SELECT {} AS size, {} FROM ({}) AS found) AS counted").format(
            sql.SQL(", ").join(sql.SQL("CASE WHEN size <= {} THEN {} END").format(limit, name) for name in names),
            _size(columns),
            sql.SQL(", ").join(arrays),
            query,
        )

        def read(connection: Any) -> Any:
            connection.end_after(times * self._address.statement_seconds)
            return connection.execute(whole, parameters, binary=True).pgresult

        result = self.sessions.run(read)
        size_bytes = int.from_bytes(result.get_value(0, 0), "big")
        if size_bytes > max_bytes:
            raise ResultTooLargeError(size_bytes)
        decoded = [arrow_array(result.get_value(0, at + 1), c.type, c.name) for at, c in enumerate(columns)]
        schema = pa.schema([pa.field(column.name, column.type) for column in columns])
        return pa.RecordBatch.from_arrays(decoded, schema=schema)


def _size(columns: Sequence[Column]) -> sql.Composable:
    """Return what rows take at most, as they are sent and as they are decoded."""
    widths = [_ELEMENT_BYTES + (fixed_width(column.type) or 0) for column in columns]
    parts = [sql.SQL("count(*) * {}").format(sql.Literal(sum(widths)))]
    for place, column in enumerate(columns):
        if fixed_width(column.type) is None or pa.types.is_decimal(column.type):  # decimals come as texts
            parts.append(sql.SQL("coalesce(sum(octet_length({})), 0)").format(_name(place)))
    return sql.SQL("({})::int8").format(sql.SQL(" + ").join(parts))


_ASC, _DESC = sql.SQL("ASC"), sql.SQL("DESC")


def _name(place: int) -> sql.Composable:
    return _Identifier(f"c{place}")


def _selected(columns: Sequence[Column]) -> sql.Composable:
    """Return what is selected; an expression is one of a few that are written in `postgresql_types`."""
    return sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(sql.SQL(column.expression).format(_Identifier(column.name)), _name(place))
        for place, column in enumerate(columns)
    )
