"""Puts records that cannot be read aside, as JSON lines with their position and the reason."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.streaming.readwriter import DataStreamWriter

from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.sources import BLOCK, CORRUPT, FILE

_NUMBER = "_semistream_number"
_FIRST = "_semistream_first"


def dead_letters_writer(records: DataFrame, description: PipelineDescription) -> DataStreamWriter:
    """Return a query that is ready to start: it reads the same source and writes what the main query leaves out.

    It has a checkpoint of its own, so that after a stop each goes on by itself and no record is lost between them.
    A batch that is processed again overwrites its own folder.
    """
    place = description.source.dead_letters
    is_json = description.source.format == "json"

    def write(batch: DataFrame, batch_id: int) -> None:
        letters = _letters(batch, is_json=is_json)
        if letters is not None:
            letters.coalesce(1).write.mode("overwrite").json(f"{place}/batch={batch_id:09d}")

    checkpoint = f"{description.checkpoint}/dead_letters"
    return (
        records.writeStream.queryName(f"{description.name} dead letters")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(write)
    )


def _letters(batch: DataFrame, *, is_json: bool) -> DataFrame | None:
    """Return the corrupt records of a batch, each with its number among the records of its part of the file."""
    numbered = batch.select(FILE, BLOCK, CORRUPT, F.monotonically_increasing_id().alias(_NUMBER))
    corrupt = numbered.where(F.col(CORRUPT).isNotNull())
    if corrupt.isEmpty():
        return None
    firsts = numbered.groupBy(FILE, BLOCK).agg(F.min(_NUMBER).alias(_FIRST))
    malformed = F.get_json_object(CORRUPT, "$").isNull()
    misfit = F.lit("a value does not have the type of its column")
    reason = (
        F.when(malformed, F.lit("the record is not JSON")).otherwise(misfit)
        if is_json
        else F.lit("the number of values, or the type of one, is not that of the columns")
    )
    return corrupt.join(F.broadcast(firsts), [FILE, BLOCK]).select(
        F.col(FILE).alias("file"),
        F.col(BLOCK).alias("block_start"),
        (F.col(_NUMBER) - F.col(_FIRST) + 1).alias("record_number"),
        reason.alias("reason"),
        F.col(CORRUPT).alias("record"),
    )
