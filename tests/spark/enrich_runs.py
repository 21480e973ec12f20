"""Makes small master tables and streams of files, runs `enrich` on them, and joins them by Spark's own means."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from semistream.master_table import MasterTable
from semistream.spark.statistics import METRIC_PREFIX, TASKS_FIELD, BatchStatistics, of_progress
from semistream.testing import joined_rows

PRODUCTS = 3000
_FIRST_ARRIVAL = 1_700_000_000
SALES_SCHEMA = "sale_id BIGINT, product_id BIGINT, note STRING"


def products(count: int = PRODUCTS, version: int = 1) -> pa.Table:
    """Return products with even ids, so that odd ones are absent; names tell the version of the table."""
    ids = np.arange(0, 2 * count, 2)
    return pa.table(
        {
            "product_id": ids,
            "name": [f"name {number} of version {version}" for number in ids],
            "price": pa.array(ids * 10 + version, pa.int32()),
        }
    )


def sales(first: int, count: int, *, seed: int = 0, products: int = PRODUCTS, skewed: bool = True) -> pa.Table:
    """Return sales of which some tenth is of absent products and some of none; few products make most of them."""
    random = np.random.default_rng([seed, first])
    ranks = random.zipf(1.3, count) if skewed else random.integers(0, products, count)
    ids = 2 * np.minimum(ranks, products + 50) + (random.random(count) < 0.1)
    nulls = random.random(count) < 0.02
    sale_ids = np.arange(first, first + count)
    return pa.table(
        {
            "sale_id": sale_ids,
            "product_id": pa.array(ids, pa.int64(), mask=nulls),
            "note": [f"note {number}" for number in sale_ids],
        }
    )


def build(folder: Path, data: pa.Table | None = None, key: str | Sequence[str] = "product_id", **how: Any) -> Path:
    """Build a master table of small pages and return its path."""
    path = folder / "products"
    MasterTable.build(products() if data is None else data, path, key, **{"page_bytes": 1024, **how})
    return path


def spark_join(stream: DataFrame, master: DataFrame, on: Mapping[str, str], how: str = "inner") -> DataFrame:
    """Return Spark's own join: the columns of the stream, then those of the master table that are no key."""
    ours = stream.toDF(*(f"s{place}" for place in range(len(stream.columns))))
    theirs = master.toDF(*(f"m{place}" for place in range(len(master.columns))))
    condition = F.lit(True)
    for key, other in on.items():
        place, other_place = stream.columns.index(key), master.columns.index(other)
        condition &= F.col(f"s{place}") == F.col(f"m{other_place}")
    joined = ours.join(theirs, condition, how)
    shown = [F.col(f"s{place}").alias(name) for place, name in enumerate(stream.columns)]
    if how in ("inner", "left"):
        wanted = [(place, name) for place, name in enumerate(master.columns) if name not in on.values()]
        shown += [F.col(f"m{place}").alias(name) for place, name in wanted]
    return joined.select(*shown)


def multiset(rows: DataFrame | pa.Table) -> Counter[tuple[Hashable, ...]]:
    """Return how often each row is there."""
    return joined_rows(rows if isinstance(rows, pa.Table) else rows.toArrow()).rows


class SalesStream:
    """A stream of Parquet files, one file a micro-batch, and a Parquet sink with its checkpoint, in one folder."""

    def __init__(self, spark: SparkSession, folder: Path, schema: str = SALES_SCHEMA, files_per_batch: int = 1) -> None:
        self.spark = spark
        self.folder = folder
        self.schema = schema
        self.files_per_batch = files_per_batch
        self.incoming = folder / "incoming"
        self.sink = folder / "warehouse"
        self.checkpoint = folder / "checkpoint"
        self.incoming.mkdir(parents=True)

    def arrive(self, *tables: pa.Table) -> None:
        """Let files arrive, in this order."""
        for table in tables:
            number = len(list(self.incoming.iterdir()))
            hidden = self.folder / "writing.parquet"
            pq.write_table(table, hidden)
            # Spark orders files by their times alone.
            os.utime(hidden, (_FIRST_ARRIVAL + number, _FIRST_ARRIVAL + number))
            hidden.rename(self.incoming / f"{number:05}.parquet")

    def stream(self) -> DataFrame:
        """Return the stream."""
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", self.files_per_batch)
        return reader.parquet(str(self.incoming))

    def batch(self) -> DataFrame:
        """Return all that has arrived as a batch."""
        return self.spark.read.schema(self.schema).parquet(str(self.incoming))

    def start(self, enriched: DataFrame, **trigger: Any) -> StreamingQuery:
        """Start a query into the sink."""
        writer = enriched.writeStream.option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**(trigger or {"availableNow": True})).format("parquet").start(str(self.sink))

    def run(self, enriched: DataFrame) -> StreamingQuery:
        """Run a query into the sink until all that has arrived is done."""
        query = self.start(enriched)
        finish(query)
        return query

    def written(self) -> DataFrame:
        """Return what finished batches have written."""
        return self.spark.read.parquet(str(self.sink))


def run_to_table(enriched: DataFrame, checkpoint: Path, name: str, **options: Any) -> tuple[DataFrame, StreamingQuery]:
    """Run a stream to its end into a table in memory and return it with the query."""
    writer = enriched.writeStream.format("memory").queryName(name).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).outputMode(options.get("output_mode", "append")).start()
    finish(query)
    return enriched.sparkSession.table(name), query


def run_each_batch(
    enriched: DataFrame, checkpoint: Path, action: Callable[[DataFrame, int], None], **trigger: Any
) -> StreamingQuery:
    """Run a stream to its end with an action for each micro-batch."""
    writer = enriched.writeStream.foreachBatch(action).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(**(trigger or {"availableNow": True})).start()
    finish(query)
    return query


def finish(query: StreamingQuery, seconds: int = 600) -> None:
    """Wait for the end of a query; its error is raised."""
    try:
        assert query.awaitTermination(seconds), "the query does not end"
    finally:
        query.stop()


def statistics(query: StreamingQuery) -> dict[str, list[BatchStatistics]]:
    """Return the statistics of each operator, batch after batch, of the batches that had rows."""
    gathered: dict[str, list[BatchStatistics]] = {}
    for progress in query.recentProgress:
        if progress.numInputRows:
            for counted in of_progress(progress.observedMetrics):
                gathered.setdefault(counted.name, []).append(counted)
    return gathered


def task_statistics(query: StreamingQuery, name: str) -> list[dict[str, Any]]:
    """Return what each task of an operator has told, batch after batch; tasks without rows are left out."""
    tasks = []
    for progress in query.recentProgress:
        row = progress.observedMetrics.get(METRIC_PREFIX + name)
        tasks += [json.loads(task) for task in (row[TASKS_FIELD] if row is not None else [])]
    return [task for task in tasks if task["tuples_in"]]


def batch_statistics(df: DataFrame) -> list[BatchStatistics]:
    """Return the statistics of a DataFrame that is no stream, after one action on it."""
    execution: Any = df._jdf.queryExecution()
    metrics = execution.observedMetrics()
    gathered: list[BatchStatistics] = []
    iterator = metrics.iterator()
    while iterator.hasNext():
        entry = iterator.next()
        tasks = entry._2().getList(0)
        gathered += of_progress({str(entry._1()): {TASKS_FIELD: list(tasks)}})
    return gathered


def python_workers() -> list[psutil.Process]:
    """Return the Python workers that the session of this process has started, without the daemon they stem from."""
    gathered: list[psutil.Process] = []
    for java in psutil.Process().children():
        if "java" in java.name():
            daemons = [child for child in java.children() if "python" in child.name()]
            gathered += [worker for daemon in daemons for worker in daemon.children()]
    return gathered


def kill_python_workers() -> set[int]:
    """Kill all workers of the session of this process and return their ids; idle ones are replaced by new ones."""
    doomed = python_workers()
    for process in doomed:
        process.kill()
    # They are children of the daemon, which reaps them.
    psutil.wait_procs(doomed, timeout=30)
    return {process.pid for process in doomed}
