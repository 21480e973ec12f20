"""Generated sales as a Spark data source, in streams and in batches: `format("semistream-sales")`.

    from semistream.spark import sales_source
    sales_source.register(spark)
    sales = spark.readStream.format("semistream-sales").option("products", 1_000_000).option("rate", 5000).load()

The rows are sale_id, product_id, quantity and sale_date, and follow from the options and the position in the stream
alone: neither parallelism nor a restart changes them. Option names do not depend on case; all but `products` may be
left out.

| option | default | meaning |
|---|---|---|
| products | | number of products in the catalogue; see `semistream.generator.products` for a fitting master table |
| exponent | 1.0 | skew of the products: 0 is none |
| ranks | shuffled | `sorted`: products that sell best are neighbours; `shuffled`: they are spread |
| stride | 1 | distance between two product ids |
| absent | 0.0 | share of sales of products that do not exist; needs a stride of at least 2 |
| seed | 1 | other seeds give other sales |
| rate | 1000 | mean number of sales a second |
| arrivals | constant | `constant`, `poisson`, `bursty` (the papers' self-similar stream) or `intermittent` |
| stepSeconds | 0.1 | shortest time in which a bursty stream changes |
| onSeconds, offSeconds | 10 | how long an intermittent stream flows and how long it is silent |
| start | 2026-01-01 | date of the first sale in ISO form, UTC without a zone; `now`, in a stream, for its first start |
| rows | | the stream ends after so many sales; a batch read needs it |
| rowsPerBatch | | so many sales in every micro-batch, whatever the time |
| maxRowsPerBatch | 1,000,000 | most sales in a micro-batch, so that a backlog is taken in pieces |
| partitions | Spark's default parallelism | tasks a batch |

Without `rowsPerBatch` a micro-batch holds the sales that have arrived since the one before. The stream's clock begins
when the query is started for the first time and is part of every offset. It runs on while the query is stopped, as a
shop's does: the next start goes on after the last committed sale, and takes what has piled up, `maxRowsPerBatch` at a
time. A checkpoint belongs to its options; only the last four of the table may be changed between two starts.

`Trigger.AvailableNow` takes what has arrived when it begins, or all `rows` where `rowsPerBatch` is set (one batch if
there is no end). PySpark before 4.2 cannot take that in several batches: one start is one batch of at most the limit.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

from semistream.core.errors import InvalidSettingError
from semistream.generator.arrival_times import GeneratedArrivals
from semistream.spark.sales_options import FORMAT, SalesOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark before 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands for a contract that this PySpark does not know."""


SALES_STRUCT = StructType(
    [
        StructField("sale_id", LongType(), nullable=False),
        StructField("product_id", LongType(), nullable=False),
        StructField("quantity", IntegerType(), nullable=False),
        StructField("sale_date", TimestampType(), nullable=False),
    ]
)
_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)


def register(spark: SparkSession) -> None:
    """Make `semistream-sales` known to a session; by default its batches have the session's parallelism."""
    try:
        parallelism = spark.sparkContext.defaultParallelism
    except AttributeError:  # a session of Spark Connect does not tell
        parallelism = SalesSource.default_partitions

    # A class of its own travels to the planning process with its attribute; an attribute set on the other would not.
    class SessionSalesSource(SalesSource):
        default_partitions = parallelism

    spark.dataSource.register(SessionSalesSource)


class SalesSource(DataSource):
    """The data source `semistream-sales`."""

    default_partitions = os.cpu_count() or 1

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of a sale; raises InvalidSettingError if an option makes no sense."""
        self._checked_options(SALES_STRUCT)
        return SALES_STRUCT

    def reader(self, schema: StructType) -> SalesReader:
        """Return the reader of a batch DataFrame."""
        return SalesReader(self._checked_options(schema))

    def streamReader(self, schema: StructType) -> SalesStreamReader:  # noqa: N802
        """Return the reader of a streaming DataFrame."""
        return SalesStreamReader(self._checked_options(schema))

    def _checked_options(self, schema: StructType) -> SalesOptions:
        if [(field.name, field.dataType) for field in schema] != [
            (field.name, field.dataType) for field in SALES_STRUCT
        ]:
            raise InvalidSettingError(f"{FORMAT} has columns of its own: leave the schema out.")
        return SalesOptions.parse(dict(self.options), self.default_partitions)


@dataclass
class SalesRange(InputPartition):
    """The sales of one task: positions from `start` up to `end`, and the stream's beginning if the options leave it."""

    start: int
    end: int
    started_microseconds: int | None = None


class SalesReader(DataSourceReader):
    """Reads the first `rows` sales."""

    def __init__(self, options: SalesOptions) -> None:
        if options.rows is None:
            raise InvalidSettingError("A batch read needs to know where to end: give the option rows.")
        if options.starts_now:
            raise InvalidSettingError("start can be 'now' only in a stream: give a date for a batch read.")
        self._options = options
        self._rows = options.rows

    def partitions(self) -> Sequence[SalesRange]:
        """Return about equal ranges of sales, one a task."""
        return _ranges(0, self._rows, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the sales of a range."""
        return _read(self._options, partition)


@dataclass(frozen=True)
class SalesOffset:
    """A place in the stream: the sales before it, when the stream was first started, and whose stream it is."""

    position: int
    started_microseconds: int
    plan: str

    @classmethod
    def of(cls, offset: dict[str, Any], plan: str) -> SalesOffset:
        """Return the offset that Spark kept, or raise InvalidSettingError if it is of another stream."""
        try:
            place = cls(int(offset["position"]), int(offset["started"]), str(offset["plan"]))
        except (KeyError, TypeError, ValueError):
            raise InvalidSettingError(
                f"The checkpoint was not written by {FORMAT}: give the query a checkpointLocation of its own."
            ) from None
        if place.plan != plan:
            raise InvalidSettingError(
                f"The options of {FORMAT} differ from those in the checkpoint: restore them, "
                "or give the query a new checkpointLocation."
            )
        return place

    def json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it."""
        return {"position": self.position, "started": self.started_microseconds, "plan": self.plan}


class SalesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the sales that have arrived, or `rowsPerBatch` at a time.

    Spark calls `read` in other processes; all other methods in one process for each start of the query. The newest
    offset is remembered because PySpark before 4.2 does not say where a batch begins: it tells the last offset of a
    restarted query by asking for the partitions of an empty range.
    """

    def __init__(self, options: SalesOptions, clock: Callable[[], float] = time.time) -> None:
        self._options = options
        self._clock = clock
        self._newest: SalesOffset | None = None
        self._available_now_seconds: float | None = None
        self._available_now_end: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the beginning of the stream, whose clock starts now."""
        return self._initial.json()

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return where a batch that begins at `start` ends; Spark's `limit` on its rows is kept."""
        begin = self._offset(start) if start is not None else self._newest or self._initial
        max_rows = self._options.max_rows if limit is None else getattr(limit, "max_rows", None)
        position = self._available_from(begin)
        if max_rows is not None:
            position = min(position, begin.position + max_rows)
        self._newest = replace(begin, position=max(begin.position, position))
        return self._newest.json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the most rows that a micro-batch may have."""
        from pyspark.sql.streaming.datasource import ReadMaxRows

        return ReadMaxRows(self._options.max_rows)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return how far the stream is, taken or not, for Spark's progress report; None where time does not count."""
        if self._newest is None or self._options.rows_per_batch is not None:
            return None
        return replace(self._newest, position=max(self._newest.position, self._available_from(self._newest))).json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let the stream end, for this start of the query, with what has arrived now."""
        self._available_now_seconds = self._clock()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[SalesRange]:
        """Return about equal ranges of the sales between two offsets, one a task."""
        first, last = self._offset(start), self._offset(end)
        if self._newest is None or last.position > self._newest.position:
            self._newest = last
        started = last.started_microseconds if self._options.starts_now else None
        return _ranges(first.position, last.position, self._options.partitions, started)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the sales of a range."""
        return _read(self._options, partition)

    def stop(self) -> None:
        """End quietly if the driver has closed the connection: PySpark would tell it so and fail with a traceback."""
        if isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115

    def _available_from(self, begin: SalesOffset) -> int:
        """Return how many sales the stream has by now, at least those of one batch if time does not count."""
        if self._available_now_end is not None:
            return self._available_now_end
        options = self._options
        if options.rows_per_batch is None:
            seconds = self._clock() if self._available_now_seconds is None else self._available_now_seconds
            position = self._arrivals.arrived_by(seconds - begin.started_microseconds / 1e6)
        elif options.rows is None:
            position = begin.position + options.rows_per_batch
        else:
            position = options.rows
        if options.rows is not None:
            position = min(position, options.rows)
        if self._available_now_seconds is not None:
            self._available_now_end = position
        return position

    def _offset(self, offset: dict[str, Any]) -> SalesOffset:
        return SalesOffset.of(offset, self._options.fingerprint)

    @cached_property
    def _initial(self) -> SalesOffset:
        return SalesOffset(0, round(self._clock() * 1e6), self._options.fingerprint)

    @cached_property
    def _arrivals(self) -> GeneratedArrivals:
        return self._options.plan.arrival_times()


def _ranges(start: int, end: int, count: int, started_microseconds: int | None = None) -> list[SalesRange]:
    count = min(count, end - start)
    borders = [start + (end - start) * number // count for number in range(count + 1)] if count > 0 else []
    return [SalesRange(first, last, started_microseconds) for first, last in pairwise(borders)]


def _read(options: SalesOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, SalesRange)
    plan = options.plan
    if partition.started_microseconds is not None:
        plan = replace(plan, start=_FIRST_MOMENT + timedelta(microseconds=partition.started_microseconds))
    return plan.sales().rows(partition.start, partition.end)
