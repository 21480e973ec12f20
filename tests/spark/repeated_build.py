"""A program of its own: builds a table in a session of its own, whose tasks fail and die at their first attempt.

    python repeated_build.py MASTER DIRECTORY

It prints one line of JSON with what came out.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from semistream.master_table import MasterTable
from semistream.spark import master_build
from semistream.spark.master_tasks import PageTask


class UnluckyTask(PageTask):
    """Raises in one partition and dies in all others once all pages are written, but only at the first attempt."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from super().__call__(self._failing(batches))

    def _failing(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            if context.partitionId() == 0:
                raise RuntimeError("the first attempt fails")
            os.kill(os.getpid(), signal.SIGKILL)


def main(master: str, directory: Path) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.range(0, 30_000, 1, 3).selectExpr("concat('key ', id) AS k", "id")
    master_build.PageTask = UnluckyTask  # type: ignore[misc]
    # A relative path, which means something else to workers, whose folder is another one.
    os.chdir(directory)
    table = MasterTable.build(frame, "t", "k", page_bytes=2048)
    outcome = {**table.verify(), "names": sorted(path.name for path in table.path.iterdir())}
    master_build.PageTask = PageTask  # type: ignore[misc]
    outcome["merged"] = table.merge(frame.selectExpr("k", "id + 1 AS id").where("id < 101"))
    spark.stop()
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).absolute())
