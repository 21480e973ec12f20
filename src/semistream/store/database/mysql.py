"""Reads a table of MySQL or MariaDB by columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.errors import MasterNotFoundError
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
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Of dates, from 1970 on: those of the years 1 to 9999."""
_DAY_MICROSECONDS = 86_400_000_000

_COLUMNS = """
SELECT column_name, data_type, column_type, numeric_precision, numeric_scale FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_IS_VIEW = "SELECT table_type FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
# An index that has only the key is unique for it; one that begins with it leads to its rows.
_INDEXES = """
SELECT MAX(first.non_unique = 0 AND first.columns = 1), COUNT(*) FROM (
  SELECT index_name, MIN(non_unique) AS non_unique, COUNT(*) AS columns,
         MAX(seq_in_index = 1 AND column_name = %s AND sub_part IS NULL) AS leads
  FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s AND index_type = 'BTREE'
  GROUP BY index_name
) AS first WHERE first.leads = 1
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
            cursor.execute(_INDEXES, (address.key[0], *named))
            unique, count = cursor.fetchone()
        return Description(tuple(columns), unique=bool(unique), indexed=count > 0)

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

    def ends(self, key: Column, columns: Sequence[Column], count: int) -> pa.RecordBatch:
        """Return rows from both ends of the index."""
        name = quoted(key.name)
        one = f"(SELECT {_selected(columns)} FROM {self._table} WHERE {name} IS NOT NULL ORDER BY {name}"
        return self._rows(f"{one} ASC LIMIT %s) UNION ALL {one} DESC LIMIT %s)", (count, count), columns)

    def in_ranges(self, key: Column, columns: Sequence[Column], lows: Int64Array, highs: Int64Array) -> pa.RecordBatch:
        """Return the rows of ranges, of some dozens by one query."""
        one = f"SELECT {_selected(columns)} FROM {self._table} WHERE {quoted(key.name)} BETWEEN %s AND %s"
        pieces = []
        for start in range(0, len(lows), _MAX_RANGES):
            some = slice(start, start + _MAX_RANGES)
            ends = [_parameters(key.type, lows[some]), _parameters(key.type, highs[some])]
            bounds = [end for both in zip(*ends, strict=True) for end in both]
            pieces.append(self._rows(" UNION ALL ".join([one] * len(ends[0])), bounds, columns))
        return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)

    def of_codes(self, key: Column, columns: Sequence[Column], codes: Int64Array) -> pa.RecordBatch:
        """Return the rows of keys by one query."""
        asked = _parameters(key.type, _within(key.type, codes))
        if not asked:
            return pa.RecordBatch.from_pylist([], _schema(columns))
        query = f"SELECT {_selected(columns)} FROM {self._table} WHERE {quoted(key.name)} IN %s"
        return self._rows(query, (asked,), columns)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.sessions.close()

    def _columns_of(self, query: str, parameters: Sequence[Any], times: int = 1) -> list[pa.Array]:
        def read(connection: Any) -> list[pa.Array]:
            connection.end_after(times * self._address.statement_seconds)
            columns: list[pa.Array] = connection.columns(query, parameters)
            return columns

        return self.sessions.run(read)

    def _rows(self, query: str, parameters: Sequence[Any], columns: Sequence[Column], times: int = 1) -> pa.RecordBatch:
        texts = self._columns_of(query, parameters, times)
        arrays = [arrow_array(text, c.type, c.name) for text, c in zip(texts, columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_schema(columns))


def _column(name: str, type_name: str, whole: str, digits: int | None, scale: int | None) -> Column:
    data_type, expression = arrow_type(name, type_name.lower(), whole.lower(), digits, scale)
    return Column(name, data_type, expression, whole)


def _schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type) for column in columns])


def _selected(columns: Sequence[Column]) -> str:
    """Return what is selected; an expression is one of a few that are written in `mysql_types`."""
    return ", ".join(column.expression.format(quoted(column.name)) for column in columns)


def _within(key: pa.DataType, codes: Int64Array) -> Int64Array:
    """Return the codes that a value of the database may have."""
    if pa.types.is_integer(key):
        return codes
    first, last = _ends(key)
    kept: Int64Array = codes[(codes >= first) & (codes <= last)]
    return kept


def _parameters(key: pa.DataType, codes: Int64Array) -> list[Any]:
    """Return codes as values of the key; those that no value has are brought to the nearest."""
    if pa.types.is_integer(key):
        return list(codes.tolist())
    clipped = np.clip(codes, *_ends(key))
    if pa.types.is_date(key):
        return list(np.datetime_as_string(clipped.astype("M8[D]")).tolist())
    return [text.replace("T", " ") for text in np.datetime_as_string(clipped.astype("M8[us]")).tolist()]


def _ends(key: pa.DataType) -> tuple[int, int]:
    if pa.types.is_date(key):
        return _FIRST_DAY, _LAST_DAY
    return _FIRST_DAY * _DAY_MICROSECONDS, (_LAST_DAY + 1) * _DAY_MICROSECONDS - 1
