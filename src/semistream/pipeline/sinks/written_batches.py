"""Compares the batches that a table remembers with those of the checkpoint, before anything is written."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from semistream.pipeline import places
from semistream.pipeline.batch_numbers import BatchNumbers, local_names, names_by_spark
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.failures import CheckpointMismatchError
from semistream.pipeline.sinks.contract import Sink, WrittenBatches

_ANEW = "start afresh with another checkpoint and another table"


def check_written(sink: Sink, description: PipelineDescription, spark: SparkSession) -> None:
    """Raise CheckpointMismatchError if batches would be left out or written twice.

    A table may have several pipelines, told apart by their names; one of the same name must come with its checkpoint.
    """
    if not sink.remembers:
        return
    checkpoint = description.checkpoint
    names_in = local_names if places.is_local(checkpoint) else names_by_spark(spark)
    # In this order, so that a query that is running meanwhile does not look like a mismatch.
    finished = BatchNumbers.read(description, names_in).finished
    written = {each.query: each for each in sink.written(spark)}
    planned = BatchNumbers.read(description, names_in).planned
    compare(description, written, query_of(checkpoint, spark), finished, planned)


def compare(
    description: PipelineDescription,
    written: dict[str, WrittenBatches],
    query: str | None,
    finished: int | None,
    planned: int | None,
) -> None:
    """Raise CheckpointMismatchError unless the numbers of a checkpoint and of a table fit; -1 is before the first."""
    checkpoint, name = description.checkpoint, description.name
    mine = written.get(query) if query is not None else None
    done = -1 if finished is None else finished
    if mine is None:
        other = next((each for each in written.values() if each.pipeline == name), None)
        if other is not None:
            where = "" if other.checkpoint is None else f", which was at {other.checkpoint}"
            raise CheckpointMismatchError(
                f"The table of [sink] has batches up to {other.newest} of the pipeline {name}, written with a "
                f"checkpoint other than {checkpoint}{where}: restore that checkpoint, write to another table, or give "
                f"the pipeline another name if all rows shall be written once more."
            )
        if done >= 0:
            raise CheckpointMismatchError(
                f"The checkpoint {checkpoint} has finished batches up to {done}, but the table of [sink] has none of "
                f"them: restore the table that goes with the checkpoint, or {_ANEW}."
            )
        return
    if mine.newest > (-1 if planned is None else planned):
        raise CheckpointMismatchError(
            f"The table of [sink] has batches up to {mine.newest}, but the checkpoint {checkpoint} only up to "
            f"{planned}, so that rows would be left out: restore the checkpoint that goes with the table, or {_ANEW}."
        )
    if mine.newest < done:
        raise CheckpointMismatchError(
            f"The checkpoint {checkpoint} has finished batches up to {done}, but the table of [sink] ends with batch "
            f"{mine.newest}: restore the table that goes with the checkpoint, or {_ANEW}."
        )


def query_of(checkpoint: str, spark: SparkSession) -> str | None:
    """Return the id that Spark has given to the query of a checkpoint; None if there was no query yet."""
    try:
        if places.is_local(checkpoint):
            text = Path(checkpoint, "metadata").read_text(encoding="utf-8")
        else:
            text = "\n".join(row.value for row in spark.read.text(f"{checkpoint}/metadata").collect())
        return str(json.loads(text)["id"])
    except (FileNotFoundError, PySparkException):
        return None
    except (ValueError, KeyError, TypeError):
        raise CheckpointMismatchError(
            f"The file metadata of the checkpoint {checkpoint} is damaged: restore the checkpoint from a backup."
        ) from None
