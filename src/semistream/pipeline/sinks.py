"""Where the rows of a pipeline go."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from semistream.core.errors import InvalidSettingError, UnknownColumnError
from semistream.pipeline.description import PipelineDescription, SinkDescription, TriggerDescription
from semistream.pipeline.toml_table import suggestion
from semistream.pipeline.transformations import check_distinct
from semistream.spark.column_names import ColumnNames


def check_sink(rows: DataFrame, sink: SinkDescription) -> None:
    """Raise an error unless the rows can be written by this sink."""
    check_distinct(rows, "[sink]")
    for name in sink.partition_by:
        if ColumnNames.of(rows.sparkSession).spelled(name, rows.columns) not in rows.columns:
            raise UnknownColumnError(
                f"[sink] partition_by names {name!r}, which is not a column of the output: "
                f"{suggestion(name, rows.columns)}"
            )
    if sink.partition_by and len(sink.partition_by) == len(rows.columns):
        raise InvalidSettingError("[sink] partition_by leaves no column for the files: name fewer columns.")


def sink_writer(rows: DataFrame, description: PipelineDescription) -> DataStreamWriter:
    """Return the query that writes the rows, ready to start."""
    sink = description.sink
    writer = rows.writeStream.queryName(description.name).format(sink.format).outputMode("append")
    writer = writer.option("checkpointLocation", description.checkpoint)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if sink.path is not None:
        writer = writer.option("path", sink.path)
    if sink.format == "console":
        writer = writer.option("truncate", "false")
    return triggered(writer, description.trigger)


def triggered(writer: DataStreamWriter, trigger: TriggerDescription) -> DataStreamWriter:
    """Return the writer with the pipeline's trigger."""
    if trigger.available_now:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=trigger.every)
