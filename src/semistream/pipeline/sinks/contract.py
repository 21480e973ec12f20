"""What every sink of a pipeline must do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from semistream.core.errors import UnknownColumnError
from semistream.pipeline.description import PipelineDescription, SinkDescription, TriggerDescription
from semistream.pipeline.toml_table import suggestion
from semistream.spark.column_names import ColumnNames


class Guarantee(Enum):
    """How often a row is written, whatever is killed."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    OF_THE_FORMAT = "as often as the format promises"


@dataclass(frozen=True)
class WrittenBatches:
    """What a table remembers of a query that has written to it."""

    query: str
    """The id that Spark gave to the query; it lives in the checkpoint."""
    pipeline: str
    """The name that the pipeline had."""
    newest: int
    """The last batch that the table has."""
    checkpoint: str | None = None
    """Where the checkpoint was, if the table remembers it."""


@dataclass(frozen=True)
class Batch:
    """Names a micro-batch; the same rows, when they are written again, have the same name."""

    pipeline: str
    query: str
    number: int
    checkpoint: str


class Sink(ABC):
    """Where the rows of one pipeline go.

    Must be made before the query starts, from the description alone. `check` and `written` may talk to the sink's
    server, and must not write. They are called once, by the thread that plans.
    """

    guarantee: ClassVar[Guarantee]
    remembers: ClassVar[bool] = False
    """Whether the target itself remembers which batches it has, so that `written` answers."""

    def __init__(self, description: PipelineDescription) -> None:
        self._description = description

    @property
    def settings(self) -> SinkDescription:
        """What the file says about it."""
        return self._description.sink

    @property
    def place(self) -> str:
        """Where the rows go, for people and without secrets."""
        return self.settings.path or ""

    @property
    def told(self) -> str:
        """What it is and how often it writes a row, for people."""
        return f"{' '.join(part for part in (self.settings.format, self.place) if part)}, {self.guarantee.value}"

    @abstractmethod
    def check(self, rows: DataFrame) -> None:
        """Raise an error unless rows of this schema can be written; nothing is written."""

    def written(self, spark: SparkSession) -> Sequence[WrittenBatches]:  # noqa: ARG002 - others ask Spark
        """Return what the target remembers of queries, of whatever pipeline; the newest batch of each."""
        return ()

    @abstractmethod
    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return the query that writes the rows, ready to start."""

    def _query(self, rows: DataFrame) -> DataStreamWriter:
        """Return a query with the name, the checkpoint and the trigger of the pipeline."""
        writer = rows.writeStream.queryName(self._description.name).outputMode("append")
        writer = writer.option("checkpointLocation", self._description.checkpoint)
        return triggered(writer, self._description.trigger)


class BatchSink(Sink):
    """A sink that is handed each micro-batch with its name, and must make sure itself that it is written once.

    `write` must either write all rows and remember the batch, both or neither; a batch that it remembers already it
    must leave out. It must consume the rows once, since each time they are joined anew. It is called by one thread at
    a time, in the driver.
    """

    @abstractmethod
    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Write the rows of a batch unless they are there already."""

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return a query that calls `write`."""
        description = self._description

        def write(batch_rows: DataFrame, number: int) -> None:
            query = batch_rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            assert query is not None, "Spark tells each batch its query"
            self.write(batch_rows, Batch(description.name, query, number, description.checkpoint))

        return self._query(rows).foreachBatch(write)


def triggered(writer: DataStreamWriter, trigger: TriggerDescription) -> DataStreamWriter:
    """Return the writer with the pipeline's trigger."""
    if trigger.available_now:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=trigger.every)


def spelled_columns(rows: DataFrame, names: Sequence[str], key: str) -> list[str]:
    """Return columns as the rows spell them; `key` of [sink] names them, and an unknown one is an error."""
    rule = ColumnNames.of(rows.sparkSession)
    found = [rule.spelled(name, rows.columns) for name in names]
    for name, known in zip(names, found, strict=True):
        if known not in rows.columns:
            raise UnknownColumnError(
                f"[sink] {key} names {name!r}, which is not a column of the output: {suggestion(name, rows.columns)}"
            )
    return found
