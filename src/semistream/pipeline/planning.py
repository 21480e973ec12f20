"""Puts the parts of a pipeline together, without starting it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.types import StructType

from semistream.core.errors import InvalidSettingError
from semistream.master_table import MasterTable
from semistream.pipeline.batch_numbers import BatchNumbers, names_by_spark
from semistream.pipeline.checked_start import CheckedStart
from semistream.pipeline.description import PipelineDescription, SortRows, Step
from semistream.pipeline.failures import first_sentence
from semistream.pipeline.jars import check_jars, formats_of
from semistream.pipeline.java_failures import java_errors_told
from semistream.pipeline.sinks import Sink, sink_of
from semistream.pipeline.sinks.upserts import check_upsert, columns_of_master
from semistream.pipeline.sinks.written_batches import check_written
from semistream.pipeline.sources.contract import Letters
from semistream.pipeline.sources.kinds import kind_of
from semistream.pipeline.sources.union import united, with_columns_of_then
from semistream.pipeline.star import joined, rows_may_wait
from semistream.pipeline.transformations import apply_steps, check_distinct, check_not_ours
from semistream.spark.batch_progress import ROWS_WRITTEN
from semistream.spark.column_names import ColumnNames
from semistream.spark.spark_session import java_of

_OPERATION_CHECK = "spark.sql.streaming.unsupportedOperationCheck"


@dataclass(frozen=True)
class PlannedStep:
    """A step of a pipeline and the columns after it."""

    name: str
    schema: StructType


@dataclass(frozen=True)
class PlannedPipeline:
    """A pipeline whose every part has been checked and analysed by Spark."""

    rows: DataFrame
    steps: tuple[PlannedStep, ...]
    letters: Mapping[int, Letters]
    """The records that cannot be read, by the number of their source, where the file wants them kept."""
    sorts: bool
    start: CheckedStart
    source_columns: list[Mapping[str, str] | None]
    stream_ids: list[Mapping[str, str]]
    sink: Sink

    def remember(self) -> None:
        """Write down what the checkpoint belongs to, there and in the folders that are written; before any batch."""
        self.start.remember(self.source_columns, self.stream_ids)

    @contextmanager
    def startable(self) -> Iterator[None]:
        """Let Spark start a query that sorts each micro-batch, which it can do but refuses; all else was checked."""
        conf = self.rows.sparkSession.conf
        before = conf.get(_OPERATION_CHECK, "true")
        if self.sorts:
            conf.set(_OPERATION_CHECK, "false")
        try:
            yield
        finally:
            if self.sorts:
                conf.set(_OPERATION_CHECK, before or "true")


def plan_pipeline(
    spark: SparkSession, description: PipelineDescription, *, accept_moved: bool = False
) -> PlannedPipeline:
    """Return the plan, or raise an error about whatever is wrong; nothing is started and nothing written.

    `accept_moved` takes a source, master table or sink with another name than at the last start for the same.
    """
    with java_errors_told():
        return _planned(spark, description, accept_moved)


def _planned(spark: SparkSession, description: PipelineDescription, accept_moved: bool) -> PlannedPipeline:
    start = CheckedStart(description, accept_moved=accept_moved)
    if not start.has_compared_batches:
        BatchNumbers.read(description, names_by_spark(spark)).check(description)
    check_jars(spark, formats_of(description))
    steps: list[PlannedStep] = []

    def note(name: str, rows: DataFrame) -> None:
        steps.append(PlannedStep(name, rows.schema))

    streams: list[DataFrame] = []
    letters: dict[int, Letters] = {}
    source_columns: list[Mapping[str, str] | None] = []
    stream_ids: list[Mapping[str, str]] = []
    for number, described in enumerate(description.sources):
        stream_ids.append(kind_of(described.format).stream_ids(spark, described))
        start.check_stream(number, stream_ids[-1])
        source = kind_of(described.format).open(spark, described)
        rows, columns = source.rows, None
        if described.schema is None and kind_of(described.format).tells_columns:
            rows, columns = with_columns_of_then(rows, described, start.source_columns(number))
        streams.append(rows)
        source_columns.append(columns)
        if source.letters is not None:
            letters[number] = source.letters
        note(f"source {number + 1}: {described.format}" if len(description.sources) > 1 else "source", rows)
    rows = united(description.sources, streams)
    if len(streams) > 1:
        note("union of sources", rows)
    prepared = _stepped(rows, "prepare", description.prepare, note)
    enriched = joined(prepared, description, start.columns)
    steps += [PlannedStep(name, schema) for name, schema in enriched.steps]
    rows = _stepped(enriched.rows, "transform", description.transform, note)
    sink = sink_of(description)
    check_distinct(rows, "[sink]")
    check_not_ours(rows, "[sink]")
    unsure = _unsure(prepared, enriched.rows, description) if description.sink.mode == "upsert" else ()
    check_upsert(rows, description.sink, unsure=unsure, rows_may_wait=rows_may_wait(description))
    sink.check(rows)
    check_written(sink, description, spark)
    observed = rows.observe(ROWS_WRITTEN, F.count(F.lit(1)).alias("rows"))
    sorts = any(isinstance(step, SortRows) for step in description.transform)
    return PlannedPipeline(observed, tuple(steps), letters, sorts, start, source_columns, stream_ids, sink)


def _unsure(prepared: DataFrame, enriched: DataFrame, description: PipelineDescription) -> set[str]:
    """Return the columns of the output that a repeated batch may not find as they were."""
    if all(_replays(dimension.table) for dimension in description.dimensions):
        return set()
    # If one dimension does not replay, the columns of all count.
    rule = ColumnNames.of(prepared.sparkSession)
    names = [name for dimension in description.dimensions for name in dimension.replace or {}]
    replaced = [name for name in rule.all_spelled(names, prepared.columns) if name in prepared.columns]
    found = columns_of_master(prepared.columns, enriched.columns, replaced, description.transform, rule)
    return {name for name in enriched.columns + list(found) if rule.key(name) in found}


def _replays(table: str) -> bool:
    """Say whether a version of a master table can be read again."""
    with MasterTable(table).open() as store:
        return store.capabilities.snapshot


def _stepped(rows: DataFrame, table: str, steps: Sequence[Step], note: Callable[[str, DataFrame], None]) -> DataFrame:
    """Return the rows after the steps of a table, all of which a stream can have."""
    after = apply_steps(rows, table, steps, note)
    unsorted = [step for step in steps if not isinstance(step, SortRows)]
    _check_streaming(after if len(unsorted) == len(steps) else apply_steps(rows, table, unsorted), table)
    return after


def _check_streaming(rows: DataFrame, table: str) -> None:
    """Raise an error about what Spark cannot do in a stream, which it would say only at the start of the query."""
    java = java_of(rows.sparkSession)
    checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = java.org.apache.spark.sql.streaming.OutputMode.Append()
    try:
        checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), append)
    except PySparkException as error:
        raise InvalidSettingError(f"[[{table}]] cannot be applied to a stream: {first_sentence(error)}.") from None
