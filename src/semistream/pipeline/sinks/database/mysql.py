"""Tables of MySQL and MariaDB as sinks: executors insert many rows by one statement into a staging table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812 - everybody calls it so

from semistream.core.errors import InvalidSettingError, RowTooLargeError
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
from semistream.store.database.mysql import quoted
from semistream.store.database.mysql_connection import connect, fault_of
from semistream.store.database.sessions import Fault

import pymysql  # isort: skip - after the module that says how to install it
from pymysql.constants import ER  # isort: skip

_COLUMNS = """
SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, is_nullable, column_default, extra,
       collation_name
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_ENGINE = """
SELECT t.engine, e.transactions FROM information_schema.tables t
LEFT JOIN information_schema.engines e ON e.engine = t.engine WHERE t.table_schema = %s AND t.table_name = %s
"""
_UNIQUE = """
SELECT index_name, column_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND non_unique = 0
"""
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND LEFT(table_name, %s) = %s"
_WIDTHS = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_INTEGERS: dict[type[T.DataType], int] = {T.ByteType: 1, T.ShortType: 2, T.IntegerType: 4, T.LongType: 8}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json", "uuid")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_TYPES: dict[type[T.DataType], tuple[str, tuple[str, ...]]] = {
    T.BooleanType: ("tinyint(1)", tuple(_WIDTHS)),
    T.ByteType: ("tinyint", ()),
    T.ShortType: ("smallint", ()),
    T.IntegerType: ("int", ()),
    T.LongType: ("bigint", ()),
    T.FloatType: ("float", ("float", "double")),
    T.DoubleType: ("double", ("double",)),
    T.DecimalType: ("decimal", ("decimal",)),
    T.StringType: ("longtext CHARACTER SET utf8mb4", _TEXTS),
    T.BinaryType: ("longblob", _BYTES),
    T.DateType: ("date", ("date",)),
    T.TimestampType: ("timestamp(6) NULL", ("timestamp",)),
    T.TimestampNTZType: ("datetime(6)", ("datetime",)),
}
"""For a type of Spark the type that it gets, and those that take all its values as they are."""
_REFUSED = (1048, 1062, 1264, 1265, 1292, 1364, 1366, 1406, 1411, 1452, 3819, 4025, 4038)
_OF_COLUMN = re.compile(r"for column (?:`[^`]*`\.`[^`]*`\.)?[`']?([^`']+)[`']? at row|^Column '([^']+)' cannot")
_STATEMENT_BYTES = 1_000_000
_LONGEST_NAME = 64
_PADDED = ("char", "binary")


class MysqlWarehouse(Warehouse):
    """One table of MySQL or MariaDB."""

    table_options = "ENGINE = InnoDB"
    ledger_types = ("varchar(64)", "varchar(100)", "varchar(200)", "text", "timestamp(6) DEFAULT current_timestamp(6)")

    def connect(self) -> Any:
        """Return a connection that may write, and on which a value that does not fit is an error."""
        return connect(self.address, read_only=False)

    def fault_of(self, error: Exception) -> Fault | None:
        """Return what an error means; the server's words about values are left out."""
        number = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else None
        if number in _REFUSED:
            named = _OF_COLUMN.search(str(error.args[1])) if len(error.args) > 1 else None
            column = f" in the column {(named[1] or named[2])!r}" if named else ""
            return Fault(
                f"refuses a value{column} (error {number})",
                is_passing=False,
                advice="compare the rows with the types and constraints of the table",
            )
        return fault_of(error)

    def quoted(self, name: str) -> str:
        """Return an identifier, with percent signs doubled for the parameters."""
        return quoted(name)

    def execute(self, connection: Any, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with connection.cursor() as cursor:
            cursor.execute(statement, tuple(parameters))
            return list(cursor.fetchall()) if cursor.description is not None else []

    @contextmanager
    def transaction(self, connection: Any) -> Iterator[None]:
        """Commit the block, or take everything back."""
        connection.begin()
        try:
            yield
            connection.commit()
        except BaseException:
            with suppress(Exception):
                connection.rollback()
            raise

    def described(self, connection: Any) -> TargetTable | None:
        """Return columns, unique indexes and the engine by three queries of the catalogue."""
        named = (self._schema, self.address.table)
        columns = [_column(*found) for found in self.execute(connection, _COLUMNS, named)]
        if not columns:
            return None
        indexes: dict[str, set[str]] = {}
        for index, column in self.execute(connection, _UNIQUE, named):
            indexes.setdefault(index, set()).add(column)
        # A view has no engine.
        engines = [can for engine, can in self.execute(connection, _ENGINE, named) if engine is not None]
        return TargetTable(tuple(columns), tuple(map(frozenset, indexes.values())), engines in ([], ["YES"]))

    def check_name(self, what: str, name: str) -> None:
        """Raise InvalidSettingError if a name is too long or ends with a space."""
        if len(name) > _LONGEST_NAME or name.endswith(" ") or max(name, default="") > "\uffff":
            raise InvalidSettingError(
                f"The {what} {name!r} cannot be made, since a name in MySQL has up to {_LONGEST_NAME} characters, none "
                f"of them beyond U+FFFF, and does not end with a space: rename it."
            )

    def tables_like(self, connection: Any, prefix: str) -> list[str]:
        """Return tables of the database."""
        return [name for (name,) in self.execute(connection, _TABLES, (self._schema, len(prefix), prefix))]

    @property
    def _schema(self) -> str:
        return self.address.schema or self.address.database

    def new_type(self, data_type: T.DataType, *, is_key: bool = False) -> str | None:
        """Return the type that holds all values; a key cannot be a long text or long bytes."""
        found = _TYPES.get(_base(data_type))
        if found is None or (is_key and found[0].startswith("long")):
            return None
        if isinstance(data_type, T.DecimalType):
            return f"decimal({data_type.precision}, {data_type.scale})"
        return found[0]

    def staged(self, data_type: T.DataType, column: TargetColumn) -> StagedColumn | None:
        """Return the staged type; moments are staged as times of UTC, which is the zone of our sessions."""
        own = self.new_type(data_type)
        if own is None or not _takes(data_type, column):
            return None
        return StagedColumn(column.name, "datetime(6)" if isinstance(data_type, T.TimestampType) else own)

    def stage(self, connection: Any, staging: str, chunk: int, rows: pa.RecordBatch) -> None:
        """Insert the rows by statements of about a megabyte, in one transaction."""
        names = [CHUNK, *rows.schema.names]
        into = f"{self.beside(staging)} ({', '.join(map(self.quoted, names))})".replace("%%", "%")
        head = f"INSERT INTO {into} VALUES ".encode()
        columns = [_literals(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
        texts = pc.binary_join_element_wise(f"({chunk}", *columns, ",")
        with self.transaction(connection):
            for part in _parts(texts, _packet_bytes(connection) - len(head)):
                joined = pc.binary_join(pa.ListArray.from_arrays([0, len(part)], part), "),")
                connection.query(head + joined[0].as_buffer().to_pybytes() + b")")

    def upsert_clause(self, columns: Sequence[str], upsert: Upsert) -> str:
        """Return ON DUPLICATE KEY UPDATE; the column that tells the order comes last, since others look at it."""
        order = upsert.order_by
        others = [name for name in columns if name not in upsert.key and name != order]
        if order is None:
            updates = [f"{quoted(name)} = VALUES({quoted(name)})" for name in others]
        else:
            there = f"{self.table}.{quoted(order)}"
            newer = f"({there} IS NULL OR VALUES({quoted(order)}) >= {there})"
            updates = [
                f"{quoted(name)} = IF({newer}, VALUES({quoted(name)}), {self.table}.{quoted(name)})"
                for name in (*others, order)
            ]
        return f"ON DUPLICATE KEY UPDATE {', '.join(updates)}"

    def is_repeated(self, error: Exception) -> bool:
        """Say whether a unique index has refused a row."""
        return isinstance(error, pymysql.IntegrityError) and error.args[0] == ER.DUP_ENTRY


def _base(data_type: T.DataType) -> type[T.DataType]:
    return T.StringType if isinstance(data_type, T.StringType) else type(data_type)


def _takes(data_type: T.DataType, column: TargetColumn) -> bool:
    width = _INTEGERS.get(type(data_type))
    if width is not None and column.type in _WIDTHS:
        return _WIDTHS[column.type] >= width
    if column.type == "decimal" and (width is not None or isinstance(data_type, T.DecimalType)):
        return fits_digits(data_type, column)
    return column.type in _TYPES[_base(data_type)][1]


def _column(
    name: str,
    kind: str,
    whole: str,  # noqa: ARG001 - as the catalogue tells it
    digits: int | None,
    scale: int | None,
    nullable: str,
    default: str | None,
    extra: str,
    collation: str | None,
) -> TargetColumn:
    is_counted = "auto_increment" in extra.lower()
    is_made = "GENERATED" in extra.upper() and "DEFAULT_GENERATED" not in extra.upper()
    is_required = nullable == "NO" and default is None and not is_counted and not is_made
    return TargetColumn(name, kind, digits, scale, is_required, is_made, _blurs(kind, collation))


def _blurs(kind: str, collation: str | None) -> str | None:
    if kind in _PADDED:
        return f"is of the type {kind}, to which values that differ by their padding are equal: make it var{kind}"
    if collation is None or collation == "binary" or collation.endswith(("_nopad_bin", "_0900_bin")):
        return None
    return (
        f"is compared by {collation}, to which different keys may be equal, be it by a space at their end: give it the "
        f"collation utf8mb4_nopad_bin (MariaDB) or utf8mb4_0900_bin (MySQL)"
    )


def _literals(name: str, column: pa.Array) -> pa.Array:
    """Return values as literals of SQL; texts and bytes are digits, so that nothing in them can be anything else."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = pc.binary_join_element_wise("_utf8mb4 x'", literals.hexadecimal(column), "'", "")
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = pc.binary_join_element_wise("x'", literals.hexadecimal(column), "'", "")
    elif pa.types.is_boolean(kind):
        texts = column.cast(pa.int8()).cast(pa.string())
    else:
        if pa.types.is_floating(kind):
            literals.check_finite(name, column)
        texts = literals.plain_text(name, column)
        if pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
            texts = pc.binary_join_element_wise("'", texts, "'", "")
    return pc.if_else(column.is_valid(), texts, "NULL")


def _parts(texts: pa.Array, limit: int) -> Iterator[pa.Array]:
    """Yield the rows in parts that make a statement each."""
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64) + 3
    if int(lengths.max(initial=0)) >= limit:
        raise RowTooLargeError(
            f"A row takes {int(lengths.max())} bytes in a statement, but the server takes {limit}: raise its "
            f"max_allowed_packet, or leave large values out."
        )
    ends = np.cumsum(lengths)
    start = 0
    while start < len(texts):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + min(limit, _STATEMENT_BYTES), side="right"))
        stop = max(stop, start + 1)
        yield texts[start:stop]
        start = stop


def _packet_bytes(connection: Any) -> int:
    known = getattr(connection, "semistream_packet_bytes", None)
    if known is None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@max_allowed_packet")
            known = connection.semistream_packet_bytes = int(cursor.fetchone()[0]) - 1024
    return int(known)
