"""How many bytes Java has read from files, by the counters of Hadoop's file systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semistream.spark.session import java_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FilesRead:
    """Notes how many bytes were read up to which batch; the logs of the checkpoint, a few kilobytes, are in it."""

    def __init__(self, spark: SparkSession) -> None:
        self._java = java_of(spark)
        self._notes: list[tuple[int, int]] = []

    def note(self, batches: int) -> None:
        """Say that so many batches are done."""
        self._notes.append((batches, self._bytes()))

    def a_batch(self) -> list[float]:
        """Return the mean of a batch between the first and the last note; empty if it is not known."""
        if not self._notes or self._notes[0][0] == self._notes[-1][0]:
            return []
        (first, before), (last, after) = self._notes[0], self._notes[-1]
        return [(after - before) / (last - first)] if after > before else []

    def _bytes(self) -> int:
        found = self._java.org.apache.hadoop.fs.FileSystem.getAllStatistics()
        return sum(int(one.getBytesRead()) for one in found)
