"""Tables of PostgreSQL as sinks: executors COPY into an unlogged staging table."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from pyspark.sql import types as T  # noqa: N812 - everybody calls it so

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.sinks.database import literals
from semistream.pipeline.sinks.database.warehouse import (
    CHUNK,
    StagedColumn,
    TargetColumn,
    TargetTable,
    Upsert,
    Warehouse,
    fits_digits,
)
from semistream.store.database.postgresql_connection import connect, fault_of
from semistream.store.database.sessions import Fault

import psycopg  # isort: skip - after the module that says how to install it
from psycopg import sql  # isort: skip

_COLUMNS = """
SELECT a.attname::text, coalesce(b.typname, t.typname)::text,
       CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END,
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', a.attgenerated <> '' OR a.attidentity = 'a',
       (SELECT l.collname::text FROM pg_catalog.pg_collation l
        WHERE l.oid = a.attcollation AND NOT l.collisdeterministic)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype AND t.typtype = 'd'
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_UNIQUE = """
SELECT array_agg(a.attname::text) FROM pg_catalog.pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS part(number, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = part.number
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
  AND i.indexprs IS NULL AND part.place <= i.indnkeyatts GROUP BY i.indexrelid
"""
_OID = """
SELECT c.oid::int8, c.relkind::text FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = %(table)s
  AND CASE WHEN %(schema)s::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = %(schema)s END
"""
_TABLES = """
SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE starts_with(c.relname::text, %(prefix)s) AND c.relkind IN ('r', 'p')
  AND CASE WHEN %(schema)s::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = %(schema)s END
"""
_TYPES: dict[type[T.DataType], tuple[str, tuple[str, ...]]] = {
    T.BooleanType: ("boolean", ("bool",)),
    T.ByteType: ("smallint", ("int2", "int4", "int8", "numeric")),
    T.ShortType: ("smallint", ("int2", "int4", "int8", "numeric")),
    T.IntegerType: ("integer", ("int4", "int8", "numeric")),
    T.LongType: ("bigint", ("int8", "numeric")),
    T.FloatType: ("real", ("float4", "float8")),
    T.DoubleType: ("double precision", ("float8",)),
    T.DecimalType: ("numeric", ("numeric",)),
    T.StringType: ("text", ("text", "varchar", "bpchar", "json", "jsonb", "uuid")),
    T.BinaryType: ("bytea", ("bytea",)),
    T.DateType: ("date", ("date",)),
    T.TimestampType: ("timestamptz", ("timestamptz",)),
    T.TimestampNTZType: ("timestamp", ("timestamp",)),
}
"""For a type of Spark the type that it gets, and those that take all its values as they are."""
_BY_CAST = ("json", "jsonb", "uuid")
_HEADER = 4
_LONGEST_NAME = 63
_TABLE_KINDS = ("r", "p")
_NO_PARAMETERS: Sequence[Any] = ()


class PostgresqlWarehouse(Warehouse):
    """One table of PostgreSQL."""

    # Written without the log, since after a crash of the server the batch is staged again.
    making_staging = "CREATE UNLOGGED TABLE IF NOT EXISTS"

    def connect(self) -> Any:
        """Return a connection that may write."""
        return connect(self.address, read_only=False)

    def fault_of(self, error: Exception) -> Fault | None:
        """Return what an error means; the server's words about values are left out."""
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        if isinstance(error, psycopg.Error) and state is not None and state[:2] in ("22", "23"):
            column = f" in the column {error.diag.column_name!r}" if error.diag.column_name else ""
            return Fault(
                f"refuses a value{column} (SQLSTATE {state})",
                is_passing=False,
                advice="compare the rows with the types and constraints of the table",
            )
        return fault_of(error)

    def quoted(self, name: str) -> str:
        """Return an identifier as the driver quotes it, with percent signs doubled for the parameters."""
        return sql.Identifier(name).as_string(None).replace("%", "%%")

    def execute(self, connection: Any, statement: str, parameters: Any = _NO_PARAMETERS) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        cursor = connection.execute(statement, parameters)
        return list(cursor.fetchall()) if cursor.description is not None else []

    def transaction(self, connection: Any) -> AbstractContextManager[None]:
        """Return the driver's block."""
        block: AbstractContextManager[None] = connection.transaction()
        return block

    def described(self, connection: Any) -> TargetTable | None:
        """Return columns and unique indexes by three queries of the catalogue."""
        named = {"table": self.address.table, "schema": self.address.schema}
        found = self.execute(connection, _OID, named)
        if not found:
            return None
        ((oid, kind_of_relation),) = found
        if kind_of_relation not in _TABLE_KINDS:
            raise InvalidSettingError(
                f"{self.address.table_name!r} is a view, or something else that is not a table: name a table in "
                f"[sink], so that rows and ledger are written in one transaction."
            )
        columns = []
        for name, kind, modifier, is_required, is_made, collation in self.execute(connection, _COLUMNS, (oid,)):
            digits, scale = _digits(modifier) if kind == "numeric" else (None, None)
            columns.append(TargetColumn(name, kind, digits, scale, is_required, is_made, _blurs(kind, collation)))
        unique = tuple(frozenset(names) for (names,) in self.execute(connection, _UNIQUE, (oid,)))
        return TargetTable(tuple(columns), unique)

    def check_name(self, what: str, name: str) -> None:
        """Raise InvalidSettingError if a name is too long: PostgreSQL would cut it off."""
        if len(name.encode()) > _LONGEST_NAME:
            raise InvalidSettingError(
                f"The {what} {name!r} cannot be made, since a name in PostgreSQL has up to {_LONGEST_NAME} bytes: "
                f"rename it."
            )

    def tables_like(self, connection: Any, prefix: str) -> list[str]:
        """Return tables of the schema."""
        asked = {"prefix": prefix, "schema": self.address.schema}
        return [name for (name,) in self.execute(connection, _TABLES, asked)]

    def new_type(self, data_type: T.DataType, *, is_key: bool = False) -> str | None:  # noqa: ARG002 - MySQL cares
        """Return the type that holds all values."""
        found = _TYPES.get(_base(data_type))
        if found is None or not isinstance(data_type, T.DecimalType):
            return None if found is None else found[0]
        return f"numeric({data_type.precision}, {data_type.scale})"

    def staged(self, data_type: T.DataType, column: TargetColumn) -> StagedColumn | None:
        """Return the staged type, and a cast where PostgreSQL does not cast by itself."""
        own = self.new_type(data_type)
        if own is None or column.type not in _TYPES[_base(data_type)][1] or not fits_digits(data_type, column):
            return None
        return StagedColumn(column.name, own, f"{{}}::{column.type}" if column.type in _BY_CAST else "{}")

    def stage(self, connection: Any, staging: str, chunk: int, rows: pa.RecordBatch) -> None:
        """COPY the rows, as the texts that Arrow makes of their columns."""
        names = [CHUNK, *rows.schema.names]
        columns = [pa.repeat(pa.scalar(str(chunk)), rows.num_rows)]
        columns += [_texts(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
        text = io.BytesIO()
        plain = pa_csv.WriteOptions(include_header=False, quoting_style="all_valid")
        pa_csv.write_csv(pa.RecordBatch.from_arrays(columns, [f"c{at}" for at in range(len(columns))]), text, plain)
        # Here the driver has no parameters, so that percent signs stand for themselves.
        into = f"{self.beside(staging)} ({', '.join(map(self.quoted, names))})".replace("%%", "%")
        with connection.cursor().copy(f"COPY {into} FROM STDIN (FORMAT csv)") as copy:
            copy.write(text.getbuffer())

    def upsert_clause(self, columns: Sequence[str], upsert: Upsert) -> str:
        """Return ON CONFLICT, which leaves newer rows as they are."""
        updates = [f"{self.quoted(name)} = excluded.{self.quoted(name)}" for name in columns if name not in upsert.key]
        clause = f"ON CONFLICT ({', '.join(map(self.quoted, upsert.key))}) DO UPDATE SET {', '.join(updates)}"
        if upsert.order_by is None:
            return clause
        there = f"{self.quoted(self.address.table)}.{self.quoted(upsert.order_by)}"
        return f"{clause} WHERE {there} IS NULL OR excluded.{self.quoted(upsert.order_by)} >= {there}"

    def is_repeated(self, error: Exception) -> bool:
        """Say whether a unique index has refused a row, or the catalogue a table that another session makes."""
        made = (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject, psycopg.errors.DuplicateTable)
        return isinstance(error, made)


def _base(data_type: T.DataType) -> type[T.DataType]:
    return T.StringType if isinstance(data_type, T.StringType) else type(data_type)


def _blurs(kind: str, collation: str | None) -> str | None:
    if kind == "bpchar":
        return "is of the type char, to which texts that differ by spaces at their end are equal: make it varchar"
    if collation is None:
        return None
    return (
        f"is compared by {collation}, which is not deterministic, so that different keys may be equal: give it another "
        f"collation"
    )


def _digits(modifier: int) -> tuple[int | None, int | None]:
    if modifier < _HEADER:
        return None, None
    scale = (modifier - _HEADER) & 0x7FF
    return (modifier - _HEADER) >> 16 & 0xFFFF, (scale ^ 1024) - 1024


def _texts(name: str, column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        literals.check_no_nul(name, column)
        return column
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        digits = pc.binary_join_element_wise("\\x", literals.hexadecimal(column), "")
        return pc.if_else(column.is_valid(), digits, pa.scalar(None, digits.type))
    texts = literals.plain_text(name, column)
    is_moment = pa.types.is_timestamp(column.type) and column.type.tz is not None
    return pc.binary_join_element_wise(texts, "Z", "") if is_moment else texts
