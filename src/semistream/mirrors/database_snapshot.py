"""Reads rows of one moment from a database, a portion at a time; identifiers are quoted and values bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from semistream.core.errors import MasterUnavailableError, SemistreamError
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column, Description

PORTION_ROWS = 10_000


@dataclass(frozen=True)
class Bound:
    """Rows whose column has a value from `begin` on and below `end`, where these are not None."""

    column: str
    begin: Any = None
    end: Any = None
    with_null: bool = False
    """Whether rows without a value belong to them."""


class TableColumns:
    """The columns of a table, by their names."""

    def __init__(self, described: Description) -> None:
        self._columns = {column.name: column for column in described.columns}
        self.is_indexed = described.indexed

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    @property
    def names(self) -> str:
        """All names, for people."""
        return ", ".join(self._columns)

    def chosen(self, names: Sequence[str]) -> list[Column]:
        """Return the columns of these names."""
        return [self._columns[name] for name in names]

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return self._columns[name].type

    def schema_of(self, names: Sequence[str]) -> pa.Schema:
        """Return the schema of some columns."""
        return pa.schema([pa.field(column.name, column.type) for column in self.chosen(names)])


class Snapshot(ABC):
    """A transaction that shows the rows of one moment; one query at a time."""

    table: TableColumns

    @property
    def is_indexed(self) -> bool:
        """Whether an index leads from a key to its rows."""
        return self.table.is_indexed

    @abstractmethod
    def row_count(self) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def value_after(self, column: str, value: Any, count: int) -> Any:
        """Return the value that comes so many rows after a value, or after the first if it is None, by an index."""

    def dividers(self, column: str, row_count: int, parts: int) -> list[Any]:
        """Return ascending values that divide all rows into about so many parts, or fewer; costs a pass over an index.

        What is ascending is for the server to say.
        """
        found: list[Any] = []
        for _ in range(parts - 1):
            value = self.value_after(column, found[-1] if found else None, row_count // parts)
            if value is None:
                break
            found.append(value)
        return found

    def exported(self) -> str | None:
        """Return a name by which other connections see the same rows while this one is open; None if there is none."""
        return None

    @abstractmethod
    def greatest(self, column: str) -> tuple[Any, datetime]:
        """Return the greatest value of a column, None if there is none, and the time of the server in UTC."""

    @abstractmethod
    def rows(
        self,
        columns: Sequence[str],
        bound: Bound | None,
        mark: str | None,
        *,
        is_marked: bool,
        max_rows: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows within the bound; if there is a column of marks, those that are marked, or those that are not."""

    @abstractmethod
    def close(self) -> None:
        """End the transaction and the connection."""


def mark_condition(kind: pa.DataType) -> str:
    """Return the SQL that is true for marked rows and never null, `{}` standing for the quoted column."""
    if pa.types.is_boolean(kind):
        return "COALESCE({}, FALSE)"
    if pa.types.is_integer(kind):
        return "COALESCE({}, 0) <> 0"
    return "{} IS NOT NULL"


@contextmanager
def opened_snapshot(address: DatabaseAddress, exported: str | None = None) -> Iterator[Snapshot]:
    """Open a snapshot, or one that another connection has exported; errors of drivers become ours.

    Drivers are loaded here, since they need not be installed.
    """
    if address.kind == "postgresql":
        from semistream.mirrors.postgresql_snapshot import PostgresqlSnapshot as Kind
        from semistream.store.database.postgresql_connection import fault_of
    else:
        from semistream.mirrors.mysql_snapshot import MysqlSnapshot as Kind  # type: ignore[assignment]
        from semistream.store.database.mysql_connection import fault_of
    try:
        snapshot = Kind(address, exported)
        try:
            yield snapshot
        finally:
            snapshot.close()
    except SemistreamError:
        raise
    except Exception as error:
        fault = fault_of(error)
        if fault is None:
            raise
        raise MasterUnavailableError(f"{address.server} {fault.reason}: {fault.advice}.") from None
