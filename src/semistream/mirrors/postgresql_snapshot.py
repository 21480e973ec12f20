"""One moment of a table of PostgreSQL, read through a cursor on the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import pyarrow as pa

from semistream.core.errors import UnsupportedValueError
from semistream.mirrors.database_snapshot import PORTION_ROWS, Bound, Snapshot, TableColumns, mark_condition
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column
from semistream.store.database.postgresql import PostgresqlTable
from semistream.store.database.postgresql_connection import connect

import psycopg  # isort: skip - after the module that says how to install it
from psycopg import sql  # isort: skip

_LONG = 20


class PostgresqlSnapshot(Snapshot):
    """A repeatable-read transaction; the server keeps the rows that have not been fetched."""

    def __init__(self, address: DatabaseAddress, exported: str | None = None) -> None:
        self._address = address
        table = PostgresqlTable(address)
        try:
            self.table = TableColumns(table.describe())
        finally:
            table.close()
        parts = (address.table,) if address.schema is None else (address.schema, address.table)
        self._name = _quoted(*parts)
        self._connection = connect(address)
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if exported is not None:
            self._connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(exported)))

    def row_count(self) -> int:
        """Count the rows."""
        return int(self._one(sql.SQL("SELECT count(*) FROM {}").format(self._name), ())[0])

    def value_after(self, column: str, value: Any, count: int) -> Any:
        """Walk along the index."""
        name = _quoted(column)
        condition = sql.SQL("{} IS NOT NULL" if value is None else "{} > %s").format(name)
        query = sql.SQL("SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT 1 OFFSET %s").format(
            name, self._name, condition, name
        )
        found = self._one(query, (count,) if value is None else (value, count))
        return None if found is None else found[0]

    def exported(self) -> str | None:
        """Return the name of the snapshot, which other transactions take over."""
        found: Any = self._connection.execute("SELECT pg_export_snapshot()").fetchone()
        return str(found[0])

    def greatest(self, column: str) -> tuple[Any, datetime]:
        """Return the greatest value by an index, if there is one."""
        query = sql.SQL("SELECT max({}), now() FROM {}").format(_quoted(column), self._name)
        found = self._one(query, ())
        return found[0], found[1]

    def rows(
        self,
        columns: Sequence[str],
        bound: Bound | None,
        mark: str | None,
        *,
        is_marked: bool,
        max_rows: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as the cursor brings them."""
        chosen = self.table.chosen(columns)
        selected = sql.SQL(", ").join(sql.SQL(c.expression).format(_quoted(c.name)) for c in chosen)
        conditions: list[sql.Composable] = [sql.SQL("TRUE")]
        values: list[Any] = []
        if bound is not None:
            for sign, end in ((">=", bound.begin), ("<", bound.end)):
                if end is not None:
                    or_null = " OR {0} IS NULL" if bound.with_null else ""
                    conditions.append(sql.SQL(f"({{0}} {sign} %s{or_null})").format(_quoted(bound.column)))
                    values.append(end)
        if mark is not None:
            marked = sql.SQL(mark_condition(self.table.type_of(mark))).format(_quoted(mark))
            conditions.append(marked if is_marked else sql.SQL("NOT ({})").format(marked))
        query = sql.SQL("SELECT {} FROM {} WHERE {} LIMIT %s").format(
            selected, self._name, sql.SQL(" AND ").join(conditions)
        )
        values.append(max_rows)
        with self._connection.cursor(name="semistream") as cursor:
            self._connection.end_after(_LONG * self._address.statement_seconds)
            cursor.execute(query, values, binary=True)
            while found := self._portion(cursor):
                yield _batch(found, chosen)

    def _one(self, query: sql.SQL | sql.Composed, values: tuple[Any, ...]) -> Any:
        """Return the first row, or None if there is none."""
        with self._readable():
            return self._connection.execute(query, values).fetchone()

    def _portion(self, cursor: Any) -> list[tuple[Any, ...]]:
        with self._readable():
            rows: list[tuple[Any, ...]] = cursor.fetchmany(PORTION_ROWS)
        return rows

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Give a query that looks at many rows its time; values that Python does not have are an error of ours."""
        self._connection.end_after(_LONG * self._address.statement_seconds)
        try:
            yield
        except psycopg.DataError as error:
            raise UnsupportedValueError(
                f"A value of {self._address.table_name} cannot be read ({str(error).splitlines()[0]}): make a view "
                f"that replaces it, for example by NULL, and name the view."
            ) from None

    def close(self) -> None:
        """Close the connection, and with it the transaction."""
        with suppress(Exception):  # it is of no use any more
            self._connection.close()


def _quoted(*names: str) -> sql.Identifier:
    """Return a name for a query with parameters, in which psycopg takes a single percent sign for one of them."""
    return sql.Identifier(*(name.replace("%", "%%") for name in names))


def _batch(rows: list[tuple[Any, ...]], columns: list[Column]) -> pa.RecordBatch:
    arrays = [_array(values, column) for values, column in zip(zip(*rows, strict=True), columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(column.name, column.type) for column in columns]))


def _array(values: tuple[Any, ...], column: Column) -> pa.Array:
    try:
        if pa.types.is_decimal(column.type):  # comes as text
            return pa.array(values, pa.string()).cast(column.type)
        return pa.array(values, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        raise UnsupportedValueError(
            f"A value of the column {column.name!r} cannot be read as {column.type}: make a view that "
            f"replaces it, for example by NULL, and name the view."
        ) from None
