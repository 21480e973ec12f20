"""Puts records that cannot be read aside, with their position and the reason."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.sources.contract import Letters
from semistream.pipeline.sources.topics import letters_for_topic


def dead_letters_writer(letters: Letters, description: PipelineDescription, number: int) -> DataStreamWriter:
    """Return a query that is ready to start: it reads the source at `number` and writes what the main query leaves out.

    It has a checkpoint of its own, so that after a stop each goes on by itself and no record is lost between them.
    In a folder a batch that is processed again overwrites its own; a topic may get the letter of a position twice.
    """
    source = description.sources[number]
    name = f"{description.name} dead letters" + (f" {number + 1}" if number else "")
    if source.dead_letters_topic is not None:
        messages, options = letters_for_topic(letters.records, source)
        writer = messages.writeStream.queryName(name).format("kafka").options(**options)
        return writer.option("checkpointLocation", description.letters_checkpoint(number))

    def write(batch: DataFrame, batch_id: int) -> None:
        found = letters.of_batch(batch)
        if found is not None:
            found.coalesce(1).write.mode("overwrite").json(f"{source.dead_letters}/batch={batch_id:09d}")

    writer = letters.records.writeStream.queryName(name)
    return writer.option("checkpointLocation", description.letters_checkpoint(number)).foreachBatch(write)
