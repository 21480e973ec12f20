"""A Delta table: rows are appended or merged, and the commit itself remembers the batch.

Delta keeps for each application the number of its last transaction and leaves out what it has already, in appends and
in MERGE alike. The application is named by pipeline and query, the number is that of the batch; see decision 037.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from semistream.core.errors import InvalidSettingError, SchemaDriftError, SemistreamError
from semistream.pipeline import jars
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.sinks.contract import Batch, BatchSink, Guarantee, WrittenBatches, spelled_columns
from semistream.pipeline.sinks.upserts import newest_of_keys
from semistream.pipeline.transformations import quoted
from semistream.spark.column_names import ColumnNames
from semistream.spark.spark_session import java_of

_MAIN = "semistream"
_APPLICATION = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_EVOLVES = "mergeschema"
_VIEW = "semistream_batch"
_CONFLICT = "DELTA_CONCURRENT"
_MERGES = 5
_GONE = ("PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_MISSING_DELTA_TABLE")
_NOT_IN_NAMES = " ,;{}()\n\t="


class Delta(BatchSink):
    """A folder with a Delta table, which the first batch makes."""

    guarantee = Guarantee.EXACTLY_ONCE
    remembers = True

    def __init__(self, description: PipelineDescription) -> None:
        super().__init__(description)
        self._pipelines: dict[str, str] = {}

    def check(self, rows: DataFrame) -> None:
        """Raise an error unless the session has Delta, and the table that is there takes the columns of the rows."""
        spark = rows.sparkSession
        jars.check_jars(spark, {"delta"})
        spelled_columns(rows, self.settings.partition_by, "partition_by")
        if len(self.settings.partition_by) == len(rows.columns):
            raise InvalidSettingError("[sink] partition_by leaves no column for the files: name fewer columns.")
        java_of(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
        if _log(spark, self._path).tableExists():
            self._check_columns(rows)
        else:
            _check_new_names(rows, self._path)

    def written(self, spark: SparkSession) -> Sequence[WrittenBatches]:
        """Return the transactions of this pipeline's queries, by the table's newest snapshot."""
        try:
            java_of(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
            found = _log(spark, self._path).unsafeVolatileSnapshot().setTransactions()
            transactions = [(found.apply(at).appId(), found.apply(at).version()) for at in range(found.size())]
        except (Py4JError, TypeError) as error:
            raise SemistreamError(
                f"The log of the Delta table {self._path} cannot be read ({type(error).__name__}): check the path, and "
                f"that the jars of Delta are those of this Spark."
            ) from error
        named = [(name.split(":"), number) for name, number in transactions if name.startswith(f"{_MAIN}:")]
        known = [WrittenBatches(parts[2], parts[1], number) for parts, number in named if len(parts) == 3]
        self._pipelines = {each.query: each.pipeline for each in known}
        return known

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Append or merge the rows by one commit that carries the number of the batch."""
        # A pipeline that was given another name meanwhile stays the same application to the table.
        application = f"{_MAIN}:{self._pipelines.get(batch.query, batch.pipeline)}:{batch.query}"
        if batch.number > 0:
            self._check_columns(rows)  # somebody may have changed the table since the last batch
        if self.settings.mode == "append":
            options = {"txnAppId": application, "txnVersion": str(batch.number)}
            self._writer(rows).options(**options).save(self._path)
            return
        spark = rows.sparkSession
        self._ensure_table(rows)
        key = spelled_columns(rows, self.settings.key, "key")
        newest = newest_of_keys(rows, key, self._order(rows)).persist()  # MERGE reads its source twice
        try:
            with _settings(spark, {_APPLICATION: application, _VERSION: str(batch.number)}):
                self._merge_patiently(newest, key)
        finally:
            newest.unpersist()

    def _check_columns(self, rows: DataFrame) -> None:
        """Raise SchemaDriftError unless the table is there and takes the rows; Spark would make another one."""
        try:
            there = rows.sparkSession.read.format("delta").load(self._path).schema
        except PySparkException as error:
            if error.getCondition() not in _GONE:
                raise
            raise SchemaDriftError(f"The Delta table {self._path} is gone: restore it, then start again.") from None
        options = {name.lower(): value for name, value in self.settings.options.items()}
        evolves = self.settings.mode == "append" and options.get(_EVOLVES) == "true"
        _check_columns(rows, there, self._path, evolves=evolves)

    @property
    def _path(self) -> str:
        assert self.settings.path is not None
        return self.settings.path

    def _order(self, rows: DataFrame) -> str | None:
        order_by = self.settings.order_by
        return None if order_by is None else spelled_columns(rows, (order_by,), "order_by")[0]

    def _writer(self, rows: DataFrame) -> Any:
        writer = rows.write.format("delta").mode("append").options(**self.settings.options)
        return writer.partitionBy(*self.settings.partition_by) if self.settings.partition_by else writer

    def _ensure_table(self, rows: DataFrame) -> None:
        spark = rows.sparkSession
        if not _log(spark, self._path).tableExists():
            self._writer(spark.createDataFrame([], rows.schema)).save(self._path)

    def _merge_patiently(self, newest: DataFrame, key: Sequence[str]) -> None:
        """Merge, and try again if another writer has changed the same files meanwhile."""
        for attempt in range(_MERGES):
            try:
                self._merge(newest, key)
                return
            except PySparkException as error:
                if _CONFLICT not in str(error) or attempt == _MERGES - 1:
                    raise
                time.sleep(random.uniform(0.5, 1.0) * 2**attempt)

    def _merge(self, newest: DataFrame, key: Sequence[str]) -> None:
        order = self._order(newest)
        same = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in key)
        newer = "" if order is None else f" AND (t.{quoted(order)} IS NULL OR s.{quoted(order)} >= t.{quoted(order)})"
        names = [quoted(name) for name in newest.columns]
        updates = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in newest.columns if name not in key)
        newest.createOrReplaceTempView(_VIEW)  # each query has a session of its own
        try:
            newest.sparkSession.sql(
                f"MERGE INTO delta.{quoted(self._path)} AS t USING {_VIEW} AS s ON {same} "
                f"WHEN MATCHED{newer} THEN UPDATE SET {updates} "
                f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
            ).collect()
        finally:
            newest.sparkSession.catalog.dropTempView(_VIEW)


def _check_new_names(rows: DataFrame, path: str) -> None:
    """Raise InvalidSettingError if a table cannot be made with these columns."""
    for name in rows.columns:
        if set(name) & set(_NOT_IN_NAMES):
            raise InvalidSettingError(
                f"The Delta table {path} cannot have the column {name!r}, since none of {_NOT_IN_NAMES!r} may be in "
                f"its name: rename it in [[transform]]."
            )


def _check_columns(rows: DataFrame, there: StructType, path: str, *, evolves: bool) -> None:
    """Raise SchemaDriftError unless the table has each column of the rows, with its type."""
    rule = ColumnNames.of(rows.sparkSession)
    types: dict[str, DataType] = {rule.key(field.name): field.dataType for field in there}
    for field in rows.schema:
        found = types.get(rule.key(field.name))
        if found is None and not evolves:
            raise SchemaDriftError(
                f"The Delta table {path} has no column {field.name!r}: add it to the table, leave it out by "
                f'[[transform]], or set options = {{ mergeSchema = "true" }} in [sink].'
            )
        if found is not None and found.simpleString() != field.dataType.simpleString():
            raise SchemaDriftError(
                f"The Delta table {path} has {found.simpleString()} in the column {field.name!r}, but the rows have "
                f"{field.dataType.simpleString()}: cast it in [[transform]], or write to another path."
            )
    given = {rule.key(field.name) for field in rows.schema}
    for field in there:
        if not field.nullable and rule.key(field.name) not in given:
            raise SchemaDriftError(
                f"The Delta table {path} needs a value in the column {field.name!r}, which the rows do not have: add "
                f"it by [[transform]]."
            )


@contextmanager
def _settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set settings of the session of this query alone, and take them back."""
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(name)


def _log(spark: SparkSession, path: str) -> Any:
    return java_of(spark).org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
