"""What a kind of database must do so that its tables can be sinks, and the SQL that all kinds share.

Names come into SQL by `quoted` alone, values as parameters or, in what executors send, as literals that are made of
digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ByteType, DataType, DecimalType, IntegerType, LongType, ShortType

from semistream.core.errors import SinkUnavailableError
from semistream.pipeline.sinks.contract import Batch, WrittenBatches
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.sessions import Fault, Sessions

LEDGER = "semistream_ledger"
CHUNK = "semistream_chunk"
"""The column of a staging table that says which chunk of which task a row came with."""
_LONG = 20
"""How many times longer than others a statement may take that moves all rows of a batch."""
_KEPT_ENTRIES = 100


@dataclass(frozen=True)
class TargetColumn:
    """A column of the table that rows go to."""

    name: str
    type: str
    """As the database calls it, without sizes."""
    digits: int | None = None
    scale: int | None = None
    is_required: bool = False
    """Whether a row must bring a value."""
    is_made: bool = False
    """Whether the server alone gives it its value."""
    blurs: str | None = None
    """How different values may be equal to the server, and what to do about it; None if they never are."""


@dataclass(frozen=True)
class TargetTable:
    """What the catalogue says about the table that rows go to."""

    columns: tuple[TargetColumn, ...]
    unique: tuple[frozenset[str], ...]
    """The columns of each index that keeps rows apart."""
    is_transactional: bool = True
    """Whether rows are taken back if a transaction is not committed."""


@dataclass(frozen=True)
class StagedColumn:
    """A column on its way: from Spark into the staging table, and from there into the table."""

    name: str
    type: str
    """Its type in the staging table."""
    value: str = "{}"
    """What is inserted, `{}` standing for the staged value."""


@dataclass(frozen=True)
class Upsert:
    """By which columns rows are found, and which of two is newer."""

    key: tuple[str, ...]
    order_by: str | None


class StagedRowsLostError(Exception):
    """The staging table does not hold what was put there, as after a crash of the server; never reaches users."""


class UnderWayError(Exception):
    """Somebody else makes the same table or entry of the ledger at this moment; never reaches users."""


_INTEGER_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}


def fits_digits(data_type: DataType, column: TargetColumn) -> bool:
    """Say whether all integers or decimals of a type of Spark fit into the digits of a column, if it has a limit."""
    if column.digits is None or column.scale is None:
        return True
    scale = data_type.scale if isinstance(data_type, DecimalType) else 0
    digits = data_type.precision if isinstance(data_type, DecimalType) else _INTEGER_DIGITS[type(data_type)]
    return scale <= column.scale and digits - scale <= column.digits - column.scale


class Warehouse(ABC):
    """One table of a database that rows are written to; may be used by several processes, each with its own."""

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        self.sessions = Sessions(
            address.server, self.connect, self._understood, address.retry_seconds, SinkUnavailableError
        )

    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection that may write, with UTC as its time zone."""

    @abstractmethod
    def fault_of(self, error: Exception) -> Fault | None:
        """Return what an error of the driver means, without values of rows."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """Return an identifier as SQL, for a statement with parameters."""

    @abstractmethod
    def execute(self, connection: Any, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, none if it has none."""

    @abstractmethod
    def transaction(self, connection: Any) -> AbstractContextManager[None]:
        """Return a block whose statements are committed together."""

    @abstractmethod
    def described(self, connection: Any) -> TargetTable | None:
        """Return what the catalogue says about the table; None if there is none."""

    @abstractmethod
    def check_name(self, what: str, name: str) -> None:
        """Raise InvalidSettingError if a table or column of this name cannot be made, or gets another name."""

    @abstractmethod
    def tables_like(self, connection: Any, prefix: str) -> list[str]:
        """Return the tables beside the table whose names begin so."""

    @abstractmethod
    def new_type(self, data_type: DataType, *, is_key: bool = False) -> str | None:
        """Return the type of a column of a table that is made for this type of Spark; None if there is none."""

    @abstractmethod
    def staged(self, data_type: DataType, column: TargetColumn) -> StagedColumn | None:
        """Return how values of this type of Spark reach a column; None if they would be changed on the way."""

    @abstractmethod
    def stage(self, connection: Any, staging: str, chunk: int, rows: pa.RecordBatch) -> None:
        """Add rows to a staging table, all or none; the columns are those of the staging table."""

    @abstractmethod
    def upsert_clause(self, columns: Sequence[str], upsert: Upsert) -> str:
        """Return what an INSERT does with rows whose key is there."""

    table_options = ""
    """What follows the columns when a table is made."""
    making_staging = "CREATE TABLE IF NOT EXISTS"
    ledger_types = ("text", "text", "text", "text", "timestamptz NOT NULL DEFAULT now()")
    """Of query, pipeline, target, checkpoint and the time."""

    def beside(self, name: str) -> str:
        """Return the quoted name of a table in the schema of the table."""
        schema = self.address.schema
        return self.quoted(name) if schema is None else f"{self.quoted(schema)}.{self.quoted(name)}"

    @property
    def table(self) -> str:
        """The quoted name of the table."""
        return self.beside(self.address.table)

    def begin(self, connection: Any, *, times: int = 1) -> None:
        """Give the statements that follow their time."""
        connection.end_after(times * self.address.statement_seconds)

    def create(self, connection: Any, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> None:
        """Make the table, whose names `check_name` has seen."""
        parts = [f"{self.quoted(name)} {kind}" for name, kind in columns]
        if key:
            parts.append(f"PRIMARY KEY ({', '.join(map(self.quoted, key))})")
        self._make(connection, f"CREATE TABLE IF NOT EXISTS {self.table} ({', '.join(parts)}) {self.table_options}")

    def ensure_ledger(self, connection: Any) -> None:
        """Make the ledger unless it is there."""
        if LEDGER in self.tables_like(connection, LEDGER):
            return
        query, pipeline, target, checkpoint, time = self.ledger_types
        self._make(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.beside(LEDGER)} (query {query} NOT NULL, batch bigint NOT NULL, "
            f"pipeline {pipeline} NOT NULL, target {target} NOT NULL, checkpoint {checkpoint} NOT NULL, "
            f"row_count bigint NOT NULL, written_at {time}, PRIMARY KEY (query, batch)) {self.table_options}",
        )

    def _make(self, connection: Any, statement: str) -> None:
        """Make a table that another pipeline may be making at this moment, which PostgreSQL does not bear."""
        try:
            self.execute(connection, statement)
        except Exception as error:
            if self.is_repeated(error):
                raise UnderWayError from None
            raise

    def written(self, connection: Any) -> list[WrittenBatches]:
        """Return the newest batch of each query in the ledger, with the pipeline's name if it was for this table.

        A query whose table was renamed meanwhile is known by its id alone.
        """
        if LEDGER not in self.tables_like(connection, LEDGER):
            return []
        found = self.execute(
            connection,
            f"SELECT query, max(CASE WHEN target = %s THEN pipeline ELSE '' END), max(batch), max(checkpoint) "
            f"FROM {self.beside(LEDGER)} GROUP BY query ORDER BY max(written_at) DESC",
            (self.address.table_name,),
        )
        return [WrittenBatches(query, pipeline, newest, checkpoint) for query, pipeline, newest, checkpoint in found]

    def has_batch(self, connection: Any, batch: Batch) -> bool:
        """Say whether the ledger has a batch, or a later one of its query."""
        statement = f"SELECT max(batch) FROM {self.beside(LEDGER)} WHERE query = %s"
        newest = self.execute(connection, statement, (batch.query,))[0][0]
        return newest is not None and newest >= batch.number

    def make_staging(self, connection: Any, staging: str, columns: Sequence[StagedColumn]) -> None:
        """Make a staging table."""
        parts = [f"{self.quoted(CHUNK)} bigint NOT NULL"]
        parts += [f"{self.quoted(column.name)} {column.type}" for column in columns]
        statement = f"{self.making_staging} {self.beside(staging)} ({', '.join(parts)}) {self.table_options}"
        self.execute(connection, statement)

    def drop(self, connection: Any, tables: Sequence[str]) -> None:
        """Remove staging tables, as far as they are there."""
        for name in tables:
            self.execute(connection, f"DROP TABLE IF EXISTS {self.beside(name)}")

    def commit(
        self,
        connection: Any,
        batch: Batch,
        staging: str,
        chunks: dict[int, int],
        columns: Sequence[StagedColumn],
        upsert: Upsert | None,
    ) -> None:
        """Write the rows of these chunks and the batch into the ledger by one transaction, unless it is there.

        `chunks` has the number of rows of each. What comes after a lost answer is the same call again: the ledger says
        whether the first one was done.
        """
        self.begin(connection, times=_LONG)
        rows = sum(chunks.values())
        with self.transaction(connection):
            if self.has_batch(connection, batch):
                return
            self._enter(connection, batch, rows)
            if not chunks:
                return
            numbers = ", ".join(str(int(chunk)) for chunk in chunks)
            source = f"{self.beside(staging)} AS s WHERE s.{self.quoted(CHUNK)} IN ({numbers})"
            if self.execute(connection, f"SELECT count(*) FROM {source}")[0][0] != rows:
                raise StagedRowsLostError
            names = [column.name for column in columns]
            values = [column.value.replace("{}", f"s.{self.quoted(column.name)}") for column in columns]
            insert = f"INSERT INTO {self.table} ({', '.join(map(self.quoted, names))}) SELECT {', '.join(values)}"
            then = "" if upsert is None else self.upsert_clause(names, upsert)
            self.execute(connection, f"{insert} FROM {source} {then}")

    def _enter(self, connection: Any, batch: Batch, rows: int) -> None:
        ledger, entry = self.beside(LEDGER), (batch.query, batch.number)
        try:
            self.execute(
                connection,
                f"INSERT INTO {ledger} (query, batch, pipeline, target, checkpoint, row_count) "
                f"VALUES (%s, %s, %s, %s, %s, %s)",
                (*entry, batch.pipeline, self.address.table_name, batch.checkpoint, rows),
            )
        except Exception as error:
            if self.is_repeated(error):
                raise UnderWayError from None
            raise
        old = (batch.query, batch.number - _KEPT_ENTRIES)
        self.execute(connection, f"DELETE FROM {ledger} WHERE query = %s AND batch < %s", old)

    @abstractmethod
    def is_repeated(self, error: Exception) -> bool:
        """Say whether an error means that a key is there already."""

    def _understood(self, error: Exception) -> Fault | None:
        if isinstance(error, UnderWayError):
            # Another pipeline, or an attempt of ours whose answer was lost: all is looked at again.
            return Fault("still works on an earlier attempt", is_passing=True)
        return self.fault_of(error)
