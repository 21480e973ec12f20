"""Reads a large table of a database by Spark, a range of keys a task, so that a first load uses all cores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from semistream.core import errors
from semistream.core.errors import KeyTypeError, SemistreamError
from semistream.core.keys import KeyCodec
from semistream.mirrors.database_snapshot import Bound, Snapshot, opened_snapshot
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MIN_ROWS = 50_000
"""A task is not worth its start with fewer."""
_TASKS_PER_SLOT = 3
"""So that tasks of uneven ranges and nodes end at about the same time."""
_SAMPLED_ROWS = 1000


@dataclass(frozen=True)
class RangeTask:
    """Reads the ranges whose numbers come in, each on a connection of its own."""

    address: DatabaseAddress
    snapshot: str | None
    """What all tasks see the same rows by, where the database has it."""
    columns: tuple[str, ...]
    ranges: tuple[Bound, ...]
    mark: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each range."""
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            with opened_snapshot(self.address, self.snapshot) as snapshot:
                yield from snapshot.rows(self.columns, self.ranges[number], self.mark, is_marked=False)


@dataclass(frozen=True)
class RangedRows:
    """All rows of a table as a DataFrame."""

    rows: DataFrame
    expected_bytes: float
    in_ranges: bool
    """Whether each partition has a range of codes of keys of its own."""


@contextmanager
def read_by_spark(
    spark: SparkSession,
    address: DatabaseAddress,
    snapshot: Snapshot,
    columns: Sequence[str],
    mark: str | None,
) -> Iterator[RangedRows | None]:
    """Give the rows of a table as a DataFrame; None if the table is small, or Spark or the server cannot do it.

    The tasks see the rows of the snapshot if the server can show it to them (PostgreSQL). Otherwise each sees those of
    the moment at which it begins, which is after the snapshot.
    """
    from pyspark import StorageLevel

    schema = _spark_schema(snapshot.table.schema_of(columns), address.key)
    first = address.key[0]
    if schema is None or not snapshot.is_indexed or not _can_divide(snapshot.table.chosen([first])[0]):
        yield None
        return
    row_count = snapshot.row_count()
    parts = min(_TASKS_PER_SLOT * _slots(spark), row_count // MIN_ROWS)
    if parts < 2:
        yield None
        return
    ranges = _ranges(first, snapshot.dividers(first, row_count, parts))
    task = RangeTask(address, snapshot.exported(), tuple(columns), ranges, mark)
    frame = spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(task, schema)
    in_ranges = _keeps_order([snapshot.table.type_of(name) for name in address.key])
    if not in_ranges:
        # It is read twice, for a sample of codes and for the rows, but the database must not be.
        frame = frame.persist(StorageLevel.DISK_ONLY)
    sample = list(snapshot.rows(columns, None, mark, is_marked=False, max_rows=_SAMPLED_ROWS))
    row_bytes = sum(batch.nbytes for batch in sample) / max(1, sum(batch.num_rows for batch in sample))
    try:
        yield RangedRows(frame, row_bytes * row_count, in_ranges)
    except Exception as error:
        # An error of a task comes through Java, as the text of a traceback.
        said = re.search(r"semistream\.core\.errors\.(\w+): ([^\n]+)", str(error))
        if said is None or isinstance(error, SemistreamError):
            raise
        raise getattr(errors, said[1], SemistreamError)(said[2]) from None
    finally:
        if not in_ranges:
            frame.unpersist()


def _ranges(column: str, dividers: Sequence[object]) -> tuple[Bound, ...]:
    begins, ends = [None, *dividers], [*dividers, None]
    return tuple(Bound(column, begin, end, with_null=begin is None) for begin, end in zip(begins, ends, strict=True))


def _can_divide(column: Column) -> bool:
    """Say whether values of a column come from the server, go back to it, and are compared as they are sorted.

    MySQL sorts an ENUM by its numbers and compares it with a text by its letters.
    """
    types = pa.types
    if types.is_string(column.type):
        return column.declared.startswith(("text", "varchar", "char", "bpchar"))
    return bool(types.is_integer(column.type) or types.is_date(column.type) or types.is_timestamp(column.type))


def _keeps_order(kinds: Sequence[pa.DataType]) -> bool:
    try:
        return KeyCodec(kinds).exact
    except KeyTypeError:
        return False


def _slots(spark: SparkSession) -> int:
    """Return how many tasks run at a time, as far as can be known."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # a client of Spark Connect has no context
        return 2


def _spark_schema(schema: pa.Schema, key: Sequence[str]) -> StructType | None:
    """Return the columns as Spark has them; None if a column would come back with another type."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    from semistream.spark.master_types import arrow_schema

    try:
        converted = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except (PySparkException, TypeError):
        return None
    return converted if arrow_schema(converted, key).types == schema.types else None
