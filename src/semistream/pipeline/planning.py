"""Puts the parts of a pipeline together, without starting it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

from semistream.core.errors import InvalidSettingError
from semistream.master_table import MasterTable
from semistream.pipeline.batch_numbers import BatchNumbers, names_by_spark
from semistream.pipeline.checked_start import CheckedStart, naming
from semistream.pipeline.description import PipelineDescription
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
    with naming("[master]"):
        columns = start.columns()
    source = open_source(spark, description.source)
    with naming("[join]"):
        enriched = _enriched(source.rows, description, columns)
    rows = apply_steps(enriched, description.steps)
    check_sink(rows, description.sink)
    _check_streaming(rows)
    observed = rows.observe(ROWS_WRITTEN, F.count(F.lit(1)).alias("rows"))
    return PlannedPipeline(observed, source.records, start, columns)


def _enriched(rows: DataFrame, description: PipelineDescription, columns: RememberedColumns) -> DataFrame:
    join = description.join
    return enrich(
        rows,
        MasterTable(description.master),
        on=list(join.on) if isinstance(join.on, tuple) else join.on,
        how=join.how,
        memory=join.memory_bytes,
        disk=join.disk_bytes,
        algorithm=join.algorithm,
        columns=columns.columns,
        replace=join.replace,
        suffix=join.suffix,
        matched=join.matched,
        order=join.order,
        partitioning=join.partitioning,
        dead_letters=join.dead_letters,
        name=description.name,
        parameters=join.parameters,
    )


def _check_streaming(rows: DataFrame) -> None:
    """Raise an error about what Spark cannot do in a stream, which it would say only at the start of the query."""
    java = java_of(rows.sparkSession)
    checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = java.org.apache.spark.sql.streaming.OutputMode.Append()
    try:
        checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), append)
    except PySparkException as error:
        raise InvalidSettingError(f"[[transform]] cannot be applied to a stream: {first_sentence(error)}.") from None
