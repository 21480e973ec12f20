"""Files that Spark writes, and sinks that keep nothing; any other format of Spark goes the same way."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import jars
from semistream.pipeline.sinks.contract import Guarantee, Sink, spelled_columns
from semistream.pipeline.sinks.spark_formats import check_streaming_format


class AnyFormat(Sink):
    """A format that Spark knows, with the options of the file."""

    guarantee = Guarantee.OF_THE_FORMAT

    def check(self, rows: DataFrame) -> None:
        """Raise an error unless Spark knows the format and can write streams in it."""
        jars.check_jars(rows.sparkSession, {self.settings.format})
        check_streaming_format(rows.sparkSession, self.settings.format)

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return a query of this format."""
        return self._query(rows).format(self.settings.format).options(**self.settings.options)


class Files(AnyFormat):
    """A folder of files, with Spark's log of the batches that they are of."""

    guarantee = Guarantee.EXACTLY_ONCE

    def check(self, rows: DataFrame) -> None:
        """Raise an error unless the columns of `partition_by` are there, and others are left for the files."""
        super().check(rows)
        partition_by = spelled_columns(rows, self.settings.partition_by, "partition_by")
        if partition_by and len(partition_by) == len(rows.columns):
            raise InvalidSettingError("[sink] partition_by leaves no column for the files: name fewer columns.")

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return a query that writes files."""
        writer = super().writer(rows).option("path", self.settings.path)
        return writer.partitionBy(*self.settings.partition_by) if self.settings.partition_by else writer


class Console(AnyFormat):
    """Prints the rows."""

    guarantee = Guarantee.AT_LEAST_ONCE

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return a query that prints values in full."""
        return super().writer(rows).options(**{"truncate": "false", **self.settings.options})


class Nothing(AnyFormat):
    """Throws the rows away."""

    guarantee = Guarantee.AT_LEAST_ONCE
