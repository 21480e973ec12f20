"""Reads a table of MySQL or MariaDB by columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.errors import MasterNotFoundError
from semistream.core.value_widths import fixed_width
from semistream.store.database import mysql_keys as keys
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column, Database, Description
from semistream.store.database.mysql_connection import connect, fault_of
from semistream.store.database.mysql_rows import arrow_array
from semistream.store.database.mysql_types import arrow_type
from semistream.store.database.sessions import Sessions

_LONG = 20
"""How many times longer than others a query may take that looks at all keys."""
_MAX_RANGES = 32
"""How many ranges one query has."""
_NO_LIMIT = 1 << 62
_OFFSET_BYTES = 4
"""What a text takes besides its bytes."""

_COLUMNS = """
SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, character_set_name, collation_name
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_IS_VIEW = "SELECT table_type FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
# An index leads to a key if it begins with all columns of it, in any order; it is unique if it has no others.
_INDEXES = """
SELECT COALESCE(MAX(non_unique = 0 AND named = parts), 0), COALESCE(MAX(in_front = %(count)s), 0) FROM (
  SELECT MIN(non_unique) AS non_unique, COUNT(*) AS parts,
         SUM(sub_part IS NULL AND column_name IN %(key)s) AS named,
         SUM(sub_part IS NULL AND column_name IN %(key)s AND seq_in_index <= %(count)s) AS in_front
  FROM information_schema.statistics
  WHERE table_schema = %(schema)s AND table_name = %(table)s AND index_type = 'BTREE' GROUP BY index_name
) AS indexes
"""


def quoted(name: str) -> str:
    """Return an identifier as SQL of MySQL, for a query with parameters, in which a percent sign must be doubled."""
    return "`" + name.replace("`", "``").replace("%", "%%") + "`"


class MysqlTable(Database):
    """One table or view of MySQL or MariaDB with an integer-like key."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._schema = address.schema or address.database
        self._table = f"{quoted(self._schema)}.{quoted(address.table)}"
        self.sessions = Sessions(address.server, partial(connect, address), fault_of, address.retry_seconds)
        self._mariadb: bool | None = None

    def describe(self) -> Description:
        """Return columns, types and indexes by three queries of the catalogue."""
        return self.sessions.run(self._described)

    def _described(self, connection: Any) -> Description:
        address, named = self._address, (self._schema, self._address.table)
        connection.end_after(address.statement_seconds)
        with connection.cursor() as cursor:
            cursor.execute(_COLUMNS, named)
            columns = [_column(*found) for found in cursor.fetchall()]
            if not columns:
                raise MasterNotFoundError(
                    f"{address.server} has no table or view {address.table_name!r} that this user can see: check the "
                    f"name, and that the user may read it."
                )
            cursor.execute(_IS_VIEW, named)
            if "VIEW" in str(cursor.fetchone()):
                return Description(tuple(columns), unique=False, indexed=True)
            key = list(dict.fromkeys(address.key))
            cursor.execute(_INDEXES, {"key": key, "count": len(key), "schema": named[0], "table": named[1]})
            unique, indexed = cursor.fetchone()
        return Description(tuple(columns), unique=bool(unique), indexed=bool(indexed))

    def row_count(self, key: Column) -> int:
        """Return how many rows have a key, by a pass over the index."""
        query = f"SELECT COUNT({quoted(key.name)}) FROM {self._table}"
        (counted,) = self._columns_of(query, (), times=_LONG)
        return int(counted[0].as_py())

    def every(self, key: Column, step: int) -> pa.Array:
        """Return each `step`th key; the server numbers the keys in the order of its index."""
        name = f"master.{quoted(key.name)}"  # else a key called number would mean another thing
        numbered = f"SELECT {name} AS c0, ROW_NUMBER() OVER (ORDER BY {name}) AS number FROM {self._table} AS master"
        query = f"SELECT c0 FROM ({numbered} WHERE {name} IS NOT NULL) AS numbered WHERE MOD(number - 1, %s) = 0"
        return self._rows(query, (step,), [key], times=_LONG).column(0)

    def ends(self, key: Column, columns: Sequence[Column], count: int, max_bytes: int) -> pa.RecordBatch:
        """Return rows from both ends of the index."""
        name = quoted(key.name)
        one = f"(SELECT {_selected(columns)} FROM {self._table} WHERE {name} IS NOT NULL ORDER BY {name}"
        return self._rows(f"{one} ASC LIMIT %s) UNION ALL {one} DESC LIMIT %s)", (count, count), columns, max_bytes)

    def in_ranges(
        self, key: Column, columns: Sequence[Column], lows: Int64Array, highs: Int64Array, max_bytes: int
    ) -> pa.RecordBatch:
        """Return the rows of ranges, of some dozens by one query."""
        one = f"SELECT {_selected(columns)} FROM {self._table} WHERE {quoted(key.name)} BETWEEN %s AND %s"
        pieces = []
        for start in range(0, len(lows), _MAX_RANGES):
            some = slice(start, start + _MAX_RANGES)
            ends = [keys.parameters(key.type, lows[some]), keys.parameters(key.type, highs[some])]
            bounds = [end for both in zip(*ends, strict=True) for end in both]
            pieces.append(self._rows(" UNION ALL ".join([one] * len(ends[0])), bounds, columns, max_bytes))
            max_bytes -= pieces[-1].nbytes
        return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)

    def of_codes(self, key: Column, columns: Sequence[Column], codes: Int64Array, max_bytes: int) -> pa.RecordBatch:
        """Return the rows of keys by one query."""
        asked = keys.parameters(key.type, keys.within(key.type, codes))
        if not asked:
            return pa.RecordBatch.from_pylist([], _schema(columns))
        query = f"SELECT {_selected(columns)} FROM {self._table} WHERE {quoted(key.name)} IN %s"
        return self._rows(query, (asked,), columns, max_bytes)

    def can_be_key(self, column: Column) -> bool:
        """Say whether the type is one of those that are compared exactly."""
        return keys.can_be_asked(column)

    def of_keys(
        self, key: Sequence[Column], columns: Sequence[Column], values: Sequence[pa.Array], max_bytes: int
    ) -> pa.RecordBatch:
        """Return the rows of keys by one query, which looks for one key after the other by the index."""
        asked = list(zip(*keys.literals(key, values), strict=True))
        if not asked:
            return pa.RecordBatch.from_pylist([], _schema(columns))
        names = [f"a{place}" for place in range(len(key))]
        conditions = " AND ".join(
            keys.condition(part, f"master.{quoted(part.name)}", f"asked.{name}")
            for part, name in zip(key, names, strict=True)
        )
        row = "" if self._is_mariadb() else "ROW"
        rows = ", ".join(f"{row}({', '.join(literals)})" for literals in asked)
        query = (
            f"WITH asked ({', '.join(names)}) AS (VALUES {rows}) SELECT {_selected(columns, 'master.')} "
            f"FROM asked STRAIGHT_JOIN {self._table} AS master ON {conditions}"
        )
        return self._rows(query, (), columns, max_bytes)

    def _is_mariadb(self) -> bool:
        if self._mariadb is None:
            self._mariadb = self.sessions.run(lambda connection: "MariaDB" in connection.get_server_info())
        return self._mariadb

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.sessions.close()

    def _columns_of(
        self, query: str, parameters: Sequence[Any], max_bytes: int = _NO_LIMIT, row_bytes: int = 0, times: int = 1
    ) -> list[pa.Array]:
        def read(connection: Any) -> list[pa.Array]:
            connection.end_after(times * self._address.statement_seconds)
            columns: list[pa.Array] = connection.columns(query, parameters, max_bytes, row_bytes)
            return columns

        return self.sessions.run(read)

    def _rows(
        self,
        query: str,
        parameters: Sequence[Any],
        columns: Sequence[Column],
        max_bytes: int = _NO_LIMIT,
        times: int = 1,
    ) -> pa.RecordBatch:
        row_bytes = sum(fixed_width(column.type) or _OFFSET_BYTES for column in columns)
        texts = self._columns_of(query, parameters, max_bytes, row_bytes, times)
        arrays = []
        for place, column in enumerate(columns):
            arrays.append(arrow_array(texts[place], column.type, column.name))
            texts[place] = None
        return pa.RecordBatch.from_arrays(arrays, schema=_schema(columns))


def _column(
    name: str,
    type_name: str,
    whole: str,
    digits: int | None,
    scale: int | None,
    character_set: str | None,
    collation: str | None,
) -> Column:
    data_type, expression = arrow_type(name, type_name.lower(), whole.lower(), digits, scale)
    in_order = (character_set, collation) if character_set is not None and collation is not None else None
    # Of the collations of MySQL and MariaDB only these compare bytes, and even of them most ignore spaces at the end.
    folds = collation is not None and collation != "binary" and not collation.endswith("_bin")
    return Column(name, data_type, expression, whole, in_order, folds)


def _schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type) for column in columns])


def _selected(columns: Sequence[Column], of_table: str = "") -> str:
    """Return what is selected; an expression is one of a few that are written in `mysql_types`."""
    return ", ".join(column.expression.format(of_table + quoted(column.name)) for column in columns)
