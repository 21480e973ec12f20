"""Puts the parts of a pipeline together, without starting it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.spark.enrich import enrich
from semistream.spark.pipeline import places
from semistream.spark.pipeline.belonging import Belonging
from semistream.spark.pipeline.description import PipelineDescription
from semistream.spark.pipeline.failures import first_sentence
from semistream.spark.pipeline.remembered import Remembered, read_remembered, write_remembered
from semistream.spark.pipeline.remembered_columns import RememberedColumns
from semistream.spark.pipeline.sinks import check_sink
from semistream.spark.pipeline.sources import open_source
from semistream.spark.pipeline.transformations import apply_steps
from semistream.spark.progress import ROWS_WRITTEN
from semistream.spark.session import java_of
from semistream.store.master_table import MasterTable


@dataclass(frozen=True)
class PlannedPipeline:
    """A pipeline whose every part has been checked and analysed by Spark."""

    rows: DataFrame
    records: DataFrame | None
    checkpoint: Path | None
    """None if it is not on this machine; then nothing is remembered."""
    belonging: Belonging | None
    remembered: Remembered | None
    columns: RememberedColumns

    def remember(self) -> None:
        """Write down what the checkpoint belongs to, there and in the folders that are written; before any batch."""
        if self.checkpoint is None or self.belonging is None:
            return
        now = Remembered(self.columns.fingerprint, self.columns.used, self.belonging.now)
        if now != self.remembered:
            write_remembered(self.checkpoint, now)
        self.belonging.own_folders()


def plan_pipeline(
    spark: SparkSession, description: PipelineDescription, *, accept_moved: bool = False
) -> PlannedPipeline:
    """Return the plan, or raise an error about whatever is wrong; nothing is started and nothing written.

    `accept_moved` takes a source, master table or sink with another name than at the last start for the same.
    """
    checkpoint = Path(description.checkpoint) if places.is_local(description.checkpoint) else None
    remembered = read_remembered(checkpoint) if checkpoint is not None else None
    with _naming("[master]"), MasterTable(description.master).open() as store:
        schema, key = store.schema, tuple(store.key)
    belonging = None
    if checkpoint is not None:
        then = remembered.belongings if remembered is not None else None
        belonging = Belonging(description, then, accept_moved=accept_moved)
        belonging.check()
    with _naming("[master]"):
        columns = RememberedColumns(description.join, schema, key, remembered)
    source = open_source(spark, description.source)
    with _naming("[join]"):
        enriched = _enriched(source.rows, description, columns)
    rows = apply_steps(enriched, description.steps)
    check_sink(rows, description.sink)
    _check_streaming(rows)
    observed = rows.observe(ROWS_WRITTEN, F.count(F.lit(1)).alias("rows"))
    return PlannedPipeline(observed, source.records, checkpoint, belonging, remembered, columns)


def _enriched(rows: DataFrame, description: PipelineDescription, columns: RememberedColumns) -> DataFrame:
    join = description.join
    return enrich(
        rows,
        MasterTable(description.master),
        on=list(join.on) if isinstance(join.on, tuple) else join.on,
        how=join.how,
        memory=join.memory_bytes,
        algorithm=join.algorithm,
        columns=columns.columns,
        replace=join.replace,
        suffix=join.suffix,
        partitioning=join.partitioning,
        name=description.name,
        parameters=join.parameters,
    )


@contextmanager
def _naming(table: str) -> Iterator[None]:
    """Put the name of the table of the file before errors about what it says."""
    try:
        yield
    except SemistreamError as error:
        raise type(error)(f"{table} does not fit: {error}") from None


def _check_streaming(rows: DataFrame) -> None:
    """Raise an error about what Spark cannot do in a stream, which it would say only at the start of the query."""
    java = java_of(rows.sparkSession)
    checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = java.org.apache.spark.sql.streaming.OutputMode.Append()
    try:
        checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), append)
    except PySparkException as error:
        raise InvalidSettingError(f"[[transform]] cannot be done in a stream: {first_sentence(error)}.") from None
