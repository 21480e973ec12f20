"""What a kind of database must do so that its tables can be master tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from semistream.core.arrays import Int64Array


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    type: pa.DataType
    expression: str
    """What is selected, `{}` standing for the quoted name; written by us, never by users."""
    declared: str
    """The type as the database calls it."""
    collation: tuple[str, str] | None = None
    """The character set and the order of a text, where a query has to name them."""
    folds: bool = False
    """Whether the database calls texts equal that differ, such as by capitals."""


@dataclass(frozen=True)
class Description:
    """What the catalogue of a database says about a table."""

    columns: tuple[Column, ...]
    unique: bool
    """A unique index makes sure that no two rows share the key."""
    indexed: bool
    """Whether an index leads from a key to its row; a view is trusted to have one below."""

    @property
    def schema(self) -> pa.Schema:
        """The columns as users see them."""
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])

    def column(self, name: str) -> Column:
        """Return the column of a name that is known to be there."""
        return next(column for column in self.columns if column.name == name)


class ResultTooLargeError(Exception):
    """A query has more rows than it may bring; never reaches users."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes
        """What they take, or what was too much already."""


class Database(ABC):
    """A table in a database; codes are those of one integer-like key.

    Must only read. May be used from several threads. What fails after all retries is a MasterUnavailableError. A query
    for rows brings at most `max_bytes`, as they are sent or as they are decoded, or raises ResultTooLargeError.
    """

    @abstractmethod
    def describe(self) -> Description:
        """Return what the catalogue says now."""

    @abstractmethod
    def row_count(self, key: Column) -> int:
        """Return how many rows have a key."""

    @abstractmethod
    def every(self, key: Column, step: int) -> pa.Array:
        """Return the key of each `step`th row in the order of keys, from the first on; by an index alone."""

    @abstractmethod
    def ends(self, key: Column, columns: Sequence[Column], count: int, max_bytes: int) -> pa.RecordBatch:
        """Return the rows with the lowest keys and those with the highest, so many of each."""

    @abstractmethod
    def in_ranges(
        self, key: Column, columns: Sequence[Column], lows: Int64Array, highs: Int64Array, max_bytes: int
    ) -> pa.RecordBatch:
        """Return the rows whose keys are in one of these ranges, which include both ends and do not overlap."""

    @abstractmethod
    def of_codes(self, key: Column, columns: Sequence[Column], codes: Int64Array, max_bytes: int) -> pa.RecordBatch:
        """Return the rows of these keys by one query."""

    @abstractmethod
    def can_be_key(self, column: Column) -> bool:
        """Say whether rows can be asked for by values of this column."""

    @abstractmethod
    def of_keys(
        self, key: Sequence[Column], columns: Sequence[Column], values: Sequence[pa.Array], max_bytes: int
    ) -> pa.RecordBatch:
        """Return the rows of distinct keys by one query, in any order; each row once, and byte for byte the keys asked.

        The values come in the stream's types and hold no nulls.
        """

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""
