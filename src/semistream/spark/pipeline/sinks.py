"""Where the rows of a pipeline go."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from semistream.core.errors import InvalidSettingError, UnknownColumnError
from semistream.spark.pipeline import places
from semistream.spark.pipeline.description import PipelineDescription, SinkDescription, TriggerDescription
from semistream.spark.pipeline.toml_table import suggestion
from semistream.spark.pipeline.transformations import check_distinct


def check_sink(rows: DataFrame, sink: SinkDescription) -> None:
    """Raise an error unless the rows can be written by this sink."""
    check_distinct(rows, "[sink]")
    for name in sink.partition_by:
        if name not in rows.columns:
            raise UnknownColumnError(
                f"[sink] partition_by names {name!r}, which is no column of the output: "
                f"{suggestion(name, rows.columns)}"
            )
    if sink.partition_by and len(sink.partition_by) == len(rows.columns):
        raise InvalidSettingError("[sink] partition_by leaves no column for the files: name fewer columns.")


def check_same_checkpoint(description: PipelineDescription) -> None:
    """Raise an error if the table was written with a checkpoint that is no longer there.

    Spark numbers batches by the checkpoint and skips numbers that the table has already, so that a new checkpoint on an
    old table would lose rows without a word.
    """
    sink, checkpoint = description.sink.path, description.checkpoint
    if sink is None or not (places.is_local(sink) and places.is_local(checkpoint)):
        return
    log = Path(sink) / "_spark_metadata"
    if _has_entries(log) and not _has_entries(Path(checkpoint) / "offsets"):
        raise InvalidSettingError(
            f"The table {sink} was written with another checkpoint than {checkpoint}, which is empty: restore that "
            f"checkpoint, or write to another path in [sink]."
        )


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


def _has_entries(folder: Path) -> bool:
    return folder.is_dir() and any(entry.name.split(".")[0].isdigit() for entry in folder.iterdir())
