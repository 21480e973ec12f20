"""How many bytes Java has read, seen from outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from semistream.spark.spark_session import java_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class JavaReads:
    """Notes how many bytes Java had read after which batch, from the disk or from the system's cache of it.

    What it read from sockets is in it too, so that it suits queries without Python workers only. Spark's own counters
    see none of the bytes that its Parquet reader takes.
    """

    def __init__(self, spark: SparkSession) -> None:
        process = java_of(spark).java.lang.ProcessHandle.current().pid()
        self._counters = Path(f"/proc/{process}/io")
        self._notes: list[tuple[int, int]] = []

    def note(self, batches: int) -> None:
        """Say that so many batches are done."""
        try:
            first = self._counters.read_text().splitlines()[0]
        except OSError:  # not Linux, or a Java of another user
            return
        self._notes.append((batches, int(first.removeprefix("rchar: "))))

    def a_batch(self) -> list[float]:
        """Return the mean of a batch between the first and the last note; empty if it is not known."""
        if not self._notes or self._notes[0][0] == self._notes[-1][0]:
            return []
        (first, before), (last, after) = self._notes[0], self._notes[-1]
        return [(after - before) / (last - first)]
