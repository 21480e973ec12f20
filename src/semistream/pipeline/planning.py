"""Puts the parts of a pipeline together, without starting it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

from semistream.core.errors import InvalidSettingError
from semistream.master_table import MasterTable
from semistream.pipeline.batch_numbers import BatchNumbers, names_by_spark
from semistream.pipeline.checked_start import CheckedStart, naming
from semistream.pipeline.description import PipelineDescription, Step
from semistream.pipeline.failures import first_sentence
from semistream.pipeline.java_failures import java_errors_told
from semistream.pipeline.remembered_columns import RememberedColumns
from semistream.pipeline.sinks import check_sink
from semistream.pipeline.sources import open_source
from semistream.pipeline.transformations import apply_steps
from semistream.spark.batch_progress import ROWS_WRITTEN
from semistream.spark.enrichment import enrich
from semistream.spark.spark_session import java_of


@dataclass(frozen=True)
class PlannedPipeline:
    """A pipeline whose every part has been checked and analysed by Spark."""

    rows: DataFrame
    records: DataFrame | None
    start: CheckedStart
    columns: RememberedColumns

    def remember(self) -> None:
        """Write down what the checkpoint belongs to, there and in the folders that are written; before any batch."""
        self.start.remember(self.columns)


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
    with naming("[[dimension]]"):
        columns = start.columns()
    source = open_source(spark, description.source)
    prepared = _stepped(source.rows, "prepare", description.prepare)
    with naming("[[dimension]]"):
        enriched = _enriched(prepared, description, columns)
    rows = _stepped(enriched, "transform", description.transform)
    check_sink(rows, description.sink)
    observed = rows.observe(ROWS_WRITTEN, F.count(F.lit(1)).alias("rows"))
    return PlannedPipeline(observed, source.records, start, columns)


def _enriched(rows: DataFrame, description: PipelineDescription, columns: RememberedColumns) -> DataFrame:
    settings, dimension = description.enrich, description.dimension
    return enrich(
        rows,
        MasterTable(dimension.table),
        on=list(dimension.on) if isinstance(dimension.on, tuple) else dimension.on,
        how=dimension.how,
        memory=settings.memory_bytes,
        disk=settings.disk_bytes,
        algorithm=settings.algorithm,
        columns=columns.columns,
        replace=dimension.replace,
        suffix=dimension.suffix,
        matched=dimension.matched,
        order=settings.order,
        partitioning=settings.partitioning,
        dead_letters=settings.dead_letters,
        name=description.name,
        parameters=settings.parameters,
    )


def _stepped(rows: DataFrame, table: str, steps: Sequence[Step]) -> DataFrame:
    """Return the rows after the steps of a table, all of which a stream can have."""
    after = apply_steps(rows, table, steps)
    _check_streaming(after, table)
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
