"""The numbers of batches that a checkpoint and what was written with it have, and whether they fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from semistream.pipeline import places
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.failures import CheckpointMismatchError
from semistream.spark.spark_session import java_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Listing: TypeAlias = Callable[[str], Sequence[str] | None]
"""Returns the names in a folder, none if it does not exist, None if it cannot say."""

ANEW = "start afresh with another checkpoint and another path in [sink]"
_LOG_ENTRY = re.compile(r"(\d{1,18})(\.compact)?")
_OFFSETS = "v1"
"""What a list of offsets begins with; a line about the batch follows, and then one for each source."""
_LETTERS = re.compile(r"batch=(\d{1,18})")


@dataclass(frozen=True)
class BatchNumbers:
    """How far a pipeline has come, as each of its folders tells it; -1 before the first batch, None if unknown."""

    finished: int | None
    """The last batch that Spark counts as done."""
    written: int | None
    """The last batch that the table of the sink has: Spark skips all batches up to it."""
    planned: int | None
    """The last batch whose input Spark has fixed; it may not have been written yet."""
    lettered: tuple[int | None, ...]
    """For each source the last batch that has dead letters."""
    planned_letters: tuple[int | None, ...]

    @classmethod
    def read(cls, description: PipelineDescription, names_in: Listing) -> BatchNumbers:
        """Return the numbers as they are now."""
        checkpoint, sink = description.checkpoint, description.sink.file_log
        letters = [source.dead_letters for source in description.sources]
        # In this order, so that a query that is running meanwhile does not look like a mismatch.
        return cls(
            finished=_newest(names_in(f"{checkpoint}/commits")),
            written=_newest(names_in(f"{sink}/_spark_metadata")) if sink is not None else None,
            lettered=tuple(None if place is None else _newest(names_in(place), _LETTERS) for place in letters),
            planned=_newest(names_in(f"{checkpoint}/offsets")),
            planned_letters=tuple(
                None if place is None else _newest(names_in(f"{description.letters_checkpoint(number)}/offsets"))
                for number, place in enumerate(letters)
            ),
        )

    def check(self, description: PipelineDescription) -> None:
        """Raise CheckpointMismatchError if Spark would leave rows out, fail later, or write over dead letters."""
        checkpoint, sink = description.checkpoint, description.sink.file_log
        if self.written is not None and self.planned is not None and self.written > self.planned:
            if self.planned < 0:
                raise CheckpointMismatchError(
                    f"The table {sink} was written with a checkpoint other than {checkpoint}, which is empty: restore "
                    f"that checkpoint, or write to another path in [sink]."
                )
            raise CheckpointMismatchError(
                f"The table {sink} has batches up to {self.written}, but the checkpoint {checkpoint} only up to "
                f"{self.planned}, so Spark would skip rows: restore the checkpoint that goes with the "
                f"table, or {ANEW}."
            )
        if self.written is not None and self.finished is not None and self.written < self.finished:
            held = f"ends with batch {self.written}" if self.written >= 0 else "has none"
            raise CheckpointMismatchError(
                f"The checkpoint {checkpoint} has finished batches up to {self.finished}, but the table {sink} "
                f"{held}: restore the table that goes with the checkpoint, or {ANEW}."
            )
        for source, lettered, planned in zip(description.sources, self.lettered, self.planned_letters, strict=True):
            if lettered is not None and planned is not None and lettered > planned:
                raise CheckpointMismatchError(
                    f"{source.dead_letters} has dead letters of batch {lettered}, but the checkpoint {checkpoint} "
                    f"would write over them: restore the checkpoint that goes with them, or give another folder in "
                    f"{source.where} dead_letters."
                )


def planned_sources(checkpoint: Path, batch: int) -> int | None:
    """Return of how many sources, rooms among them, Spark has planned a batch; None if it does not say."""
    try:
        version, _, *offsets = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    return len(offsets) if version == _OFFSETS else None


def local_names(folder: str) -> list[str] | None:
    """Return the names in a folder of this machine."""
    if not places.is_local(folder):
        return None
    try:
        return [entry.name for entry in Path(folder).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def names_by_spark(spark: SparkSession) -> Listing:
    """Return what lists folders wherever Spark can write, with the settings that Spark has for that."""

    def names_in(folder: str) -> list[str]:
        path = java_of(spark).org.apache.hadoop.fs.Path(folder)
        files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        return [status.getPath().getName() for status in files.listStatus(path)] if files.exists(path) else []

    return names_in


def _newest(names: Sequence[str] | None, pattern: re.Pattern[str] = _LOG_ENTRY) -> int | None:
    if names is None:
        return None
    return max((int(match[1]) for name in names if (match := pattern.fullmatch(name))), default=-1)
