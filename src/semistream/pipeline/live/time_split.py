"""Where the time of a micro-batch goes."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from semistream.spark.batch_progress import BatchProgress
from semistream.spark.statistics import BatchStatistics


@dataclass(frozen=True)
class TimeSplit:
    """The time of a micro-batch by what it was spent on; all parts together are the whole batch.

    Tasks run side by side, so that their times are divided by the number of workers; and what Spark spends on tasks
    beside the Python operator, on writing their rows above all, is told by nobody: it counts for the sink.
    """

    planning: float
    """Finding out what is new, and planning."""
    source: float
    """Waiting for rows."""
    reads: float
    python: float
    sink: float
    """Handing rows on, and all else of Spark's."""
    commit: float

    @classmethod
    def of(cls, batch: BatchProgress) -> TimeSplit:
        """Divide the time of a batch."""
        parts = [_of_operator(one) for one in batch.enrichments]
        source, reads, python = (sum(part[number] for part in parts) for number in range(3))
        known = source + reads + python
        # Operators that follow each other wait at the same time, and no more than the whole can be divided.
        share = min(1.0, batch.add_batch_seconds / known) if known > 0 else 0.0
        planning, commit = batch.planning_seconds, batch.commit_seconds
        rest = batch.seconds - planning - commit - known * share
        return cls(planning, source * share, reads * share, python * share, max(0.0, rest), commit)

    @property
    def seconds(self) -> float:
        """The whole time."""
        return float(sum(astuple(self)))


def _of_operator(counts: BatchStatistics) -> tuple[float, float, float]:
    """Return how long an operator waited for rows, read, and worked on its own."""
    tasks_seconds = counts.task_seconds + counts.input_seconds + counts.output_seconds
    if tasks_seconds <= 0:
        return 0.0, 0.0, 0.0
    workers = max(1, min(counts.tasks, counts.processes))
    share = max(counts.seconds, tasks_seconds / workers) / tasks_seconds
    python = max(0.0, counts.task_seconds - counts.read_seconds)
    return counts.input_seconds * share, counts.read_seconds * share, python * share
