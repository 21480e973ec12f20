"""Counts what an algorithm does on Spark with a bursty, skewed stream; it is charged later, store by store."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semistream.algorithms.registry import algorithm_named
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream_lab.experiments.measuring import rates, wall_clock
from semistream_lab.experiments.measuring.burst_files import BurstFiles
from semistream_lab.experiments.point import Point, Row, Scalar
from semistream_lab.python_workers import own_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIN_MEMORY = 4_000_000
"""Less than this, `enrich` does not take for a worker."""
_CORES = 4
_PAUSE_SECONDS = 0.2
_MAX_SECONDS = 600.0
_made_here: list[SparkSession] = []
"""The session that all points share, unless there was one before."""


class QueryStoppedError(SemistreamError):
    """A query on Spark ended before it had seen the whole stream."""


def run(point: Point, tables: Path) -> Row:
    """Count what the tasks of some micro-batches do.

    The options are `tasks`, which share the memory and the keys, and for rows that may wait `max_wait` and `trigger`,
    in seconds; without a room, micro-batches follow each other at once.
    """
    if point.clock != "model":
        raise InvalidSettingError("What is counted on Spark is charged with model costs: choose --clock model.")
    wall_clock.build_table(point.master_rows, tables)
    stream = BurstFiles.of(point, tables)
    began = time.perf_counter()
    reports = _reports(point, stream, tables / str(point.master_rows))
    return {**_row(reports, stream), "wall_seconds": time.perf_counter() - began}


def end_session() -> None:
    """Stop the session that points have shared, if it was made for them."""
    while _made_here:
        _made_here.pop().stop()


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    from semistream.spark.spark_session import make_session

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    _made_here.append(make_session("lab", f"local[{_CORES}]"))
    return _made_here[0]


def _reports(point: Point, stream: BurstFiles, table: Path) -> list[Mapping[str, Any]]:
    """Run a query over the whole stream, and return what Spark has observed in the micro-batches that count."""
    from semistream.spark.enrichment import enrich
    from semistream.spark.spark_session import local_checkpoint

    tasks, max_wait, trigger = (point.option(name) for name in ("tasks", "max_wait", "trigger"))
    spark = _session()
    with (
        own_workers(spark, point.digest),
        tempfile.TemporaryDirectory(prefix="semistream-lab-", ignore_cleanup_errors=True) as folder,
    ):
        reader = spark.readStream.schema("key BIGINT, number BIGINT").option("maxFilesPerTrigger", 1)
        room: dict[str, Any] = {"room": f"{folder}/room", "max_wait": max_wait} if max_wait else {}
        joined = enrich(
            reader.parquet(str(stream.folder)),
            table,
            on="key",
            algorithm=point.algorithm,
            memory=max(_MIN_MEMORY, int(point.memory_bytes / (tasks or 1))),
            partitioning=int(tasks or 1),
            parameters=dict(point.parameters),
            name="counted",
            **room,
        )
        writer = joined.writeStream.format("noop").option("checkpointLocation", f"{folder}/state")
        with local_checkpoint(spark, f"{folder}/state"):
            query = writer.trigger(processingTime=f"{trigger if max_wait else 0:g} seconds").start()
            try:
                _wait(query, len(stream.rows) - 1)
                reports = [report for report in query.recentProgress if "addBatch" in report.durationMs]
            finally:
                query.stop()
    return [report for report in reports if stream.first_measured <= report.batchId < len(stream.rows)]


def _wait(query: Any, last_batch: int) -> None:
    limit = time.monotonic() + _MAX_SECONDS
    while True:
        done = query.lastProgress
        if done is not None and done.batchId >= last_batch and "addBatch" in done.durationMs:
            return
        if not query.isActive:
            why = str(query.exception() or "").strip().splitlines() or ["nobody knows why"]
            raise QueryStoppedError(f"The query on Spark stopped: {why[-1]}")
        if time.monotonic() > limit:
            raise QueryStoppedError(f"The query on Spark took more than {_MAX_SECONDS:g} s: use a quieter machine.")
        time.sleep(_PAUSE_SECONDS)


def _row(reports: list[Mapping[str, Any]], stream: BurstFiles) -> Row:
    from semistream.spark.statistics import METRIC_PREFIX, TASKS_FIELD, BatchStatistics, of_progress

    observed: list[Any] = [report.observedMetrics for report in reports]  # type: ignore[attr-defined]
    told = [text for one in observed for text in one[f"{METRIC_PREFIX}counted"][TASKS_FIELD]]
    both, batches = BatchStatistics.of("counted", told), [of_progress(one)[0] for one in observed]
    seconds = [report.durationMs["triggerExecution"] / 1000 for report in reports]  # type: ignore[attr-defined]
    row: dict[str, Scalar] = {
        "stream_rows": stream.measured_rows,
        "micro_batches": len(batches),
        "mean_batch_seconds": sum(seconds) / len(seconds),
        "tuples_in": both.tuples_in,
        "tuples_out": both.tuples_out,
        "cache_hits": both.cache_hits,
        "read_hits": both.read_hits,
        "returned": both.returned,
        "waiting": max(one.waiting for one in batches),
        "page_reads": both.page_reads,
        "read_requests": both.read_requests,
        "bytes_read": both.bytes_read,
        "cached_rows": both.cached_rows,
        "latency_p50": both.latency_p50_seconds,
        "latency_p99": both.latency_p99_seconds,
        "latency_max": both.max_latency_seconds,
        "cores": len(os.sched_getaffinity(0)),
    }
    return row


def page_rows() -> int:
    """Return how many master rows a page has."""
    return rates.PAGE_BYTES // rates.ROW_BYTES


def works_side_by_side(algorithm: str) -> bool:
    """Say whether the stream is taken in while pages are read."""
    return algorithm_named(algorithm).side_by_side
