"""One moment of a table of MySQL or MariaDB, whose rows are sent while they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from semistream.mirrors.database_snapshot import PORTION_ROWS, Bound, Snapshot, TableColumns, mark_condition
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column
from semistream.store.database.mysql import MysqlTable, quoted
from semistream.store.database.mysql_connection import connect
from semistream.store.database.mysql_rows import arrow_array

from pymysql.cursors import SSCursor  # isort: skip - after the module that says how to install it

_LONG = 20
_A_DAY = 86_400.0


class MysqlSnapshot(Snapshot):
    """A transaction with a consistent snapshot; the server must go on answering, but all rows may take long."""

    def __init__(self, address: DatabaseAddress, exported: str | None = None) -> None:
        assert exported is None, "this database exports no snapshots"
        self._address = address
        table = MysqlTable(address)
        try:
            self.table = TableColumns(table.describe())
        finally:
            table.close()
        self._name = f"{quoted(address.schema or address.database)}.{quoted(address.table)}"
        self._connection = connect(address)
        with self._connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def row_count(self) -> int:
        """Count the rows."""
        return int(self._one(f"SELECT COUNT(*) FROM {self._name}", ()))

    def value_after(self, column: str, value: Any, count: int) -> Any:
        """Walk along the index."""
        name = quoted(column)
        condition = f"{name} IS NOT NULL" if value is None else f"{name} > %s"
        query = f"SELECT {name} FROM {self._name} WHERE {condition} ORDER BY {name} LIMIT 1 OFFSET %s"
        return self._one(query, (count,) if value is None else (value, count))

    def _one(self, query: str, values: tuple[Any, ...]) -> Any:
        """Return the first value of the first row, or None if there is none."""
        self._connection.end_after(_LONG * self._address.statement_seconds)
        with self._connection.cursor() as cursor:
            cursor.execute(query, values)
            found = cursor.fetchone()
        return None if found is None else found[0]

    def greatest(self, column: str) -> tuple[Any, datetime]:
        """Return the greatest value by an index, if there is one."""
        self._connection.end_after(_LONG * self._address.statement_seconds)
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT MAX({quoted(column)}), UTC_TIMESTAMP(6) FROM {self._name}", ())
            value, now = cursor.fetchone()
        kind = self.table.type_of(column)
        if isinstance(value, datetime) and kind.tz is not None:
            value = value.replace(tzinfo=UTC)
        return value, now.replace(tzinfo=UTC)

    def rows(
        self,
        columns: Sequence[str],
        bound: Bound | None,
        mark: str | None,
        *,
        is_marked: bool,
        max_rows: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as they come, whose values are texts of the server."""
        chosen = self.table.chosen(columns)
        selected = ", ".join(column.expression.format(quoted(column.name)) for column in chosen)
        conditions, values = ["TRUE"], []
        if bound is not None:
            for sign, end in ((">=", bound.begin), ("<", bound.end)):
                if end is not None:
                    or_null = f" OR {quoted(bound.column)} IS NULL" if bound.with_null else ""
                    conditions.append(f"({quoted(bound.column)} {sign} %s{or_null})")
                    values.append(end.replace(tzinfo=None) if isinstance(end, datetime) else end)
        if mark is not None:
            marked = mark_condition(self.table.type_of(mark)).format(quoted(mark))
            conditions.append(marked if is_marked else f"NOT ({marked})")
        connection = self._connection
        connection.end_after(_A_DAY)
        connection._read_timeout = _LONG * self._address.statement_seconds
        before, connection.decoders, connection.use_unicode = connection.decoders, {}, False
        try:
            with connection.cursor(SSCursor) as cursor:
                query = f"SELECT {selected} FROM {self._name} WHERE {' AND '.join(conditions)}"
                cursor.execute(query if max_rows is None else f"{query} LIMIT {max_rows:d}", tuple(values))
                while found := cursor.fetchmany(PORTION_ROWS):
                    yield _batch(found, chosen)
        finally:
            connection.decoders, connection.use_unicode = before, True

    def close(self) -> None:
        """Close the connection, and with it the transaction."""
        with suppress(Exception):  # it is of no use any more
            self._connection._force_close()


def _batch(rows: Sequence[tuple[Any, ...]], columns: list[Column]) -> pa.RecordBatch:
    texts = [pa.array(values, pa.binary()) for values in zip(*rows, strict=True)]
    arrays = [arrow_array(text, column.type, column.name) for text, column in zip(texts, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(column.name, column.type) for column in columns]))
