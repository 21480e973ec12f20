"""Workers keep to the memory they were promised, seen from outside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from enrich_operators import LoadsKernels
from enrich_runs import SalesStream, build, finish, kill_python_workers, python_workers
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

import semistream as ss

pytestmark = pytest.mark.slow
MEMORY = 48_000_000
MASTER_ROWS = 1_500_000
SLACK = 24_000_000
"""Arrow batches on their way in and out, and what the allocator keeps."""


def peak_bytes(process_id: int) -> int:
    """Return the most memory that a process ever had in RAM."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def peaks() -> list[int]:
    return [peak_bytes(process.pid) for process in python_workers()]


def test_workers_of_two_queries_with_two_operators_each_keep_to_their_memory(
    spark: SparkSession, tmp_path: Path
) -> None:
    masters, source, base = prepared(spark, tmp_path, ("one", "two"))
    queries = []
    for number in range(2):
        enriched = source.stream()
        for place, master in enumerate(masters):
            enriched = ss.enrich(enriched, master, on="k", columns=["v"], suffix=f"{place}", memory=MEMORY)
        counted = enriched.agg(F.count("*"), F.max("v"))
        writer = counted.writeStream.format("noop").outputMode("complete").trigger(availableNow=True)
        queries.append(writer.option("checkpointLocation", str(tmp_path / f"checkpoint{number}")).start())
    check_growth(queries, base)


def test_a_worker_of_a_star_keeps_to_the_memory_that_its_dimensions_share(spark: SparkSession, tmp_path: Path) -> None:
    masters, source, base = prepared(spark, tmp_path, ("one", "two", "three"))
    dimensions = [
        ss.Dimension(master, on="k", columns=["v"], suffix=f"{place}", name=f"d{place}")
        for place, master in enumerate(masters)
    ]
    counted = ss.enrich(source.stream(), dimensions, memory=MEMORY).agg(F.count("*"), F.max("v"))
    writer = counted.writeStream.format("noop").outputMode("complete").trigger(availableNow=True)
    check_growth([writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()], base)


def prepared(spark: SparkSession, folder: Path, names: Sequence[str]) -> tuple[list[Path], SalesStream, int]:
    """Return large tables, a stream of their keys, and what a worker takes that has only loaded what it needs."""
    keys = np.arange(MASTER_ROWS)
    wide = pa.table({"k": keys, "v": [f"a value of some forty bytes, number {key:7}" for key in keys]})
    masters = [build(folder / name, wide, "k", page_bytes=8192) for name in names]
    small = build(folder / "small", wide.slice(0, 10), "k")
    source = SalesStream(spark, folder / "stream", "k BIGINT", files_per_batch=2)
    random = np.random.default_rng(1)
    source.arrive(*(pa.table({"k": random.integers(0, MASTER_ROWS, 100_000)}) for _ in range(6)))
    kill_python_workers()
    identity = source.batch().mapInArrow(LoadsKernels(small), "k BIGINT")
    assert identity.count() == 600_000
    base = max(peaks())
    kill_python_workers()
    return masters, source, base


def check_growth(queries: Sequence[StreamingQuery], base: int) -> None:
    """Run queries to their end and compare the most that a worker took with its memory."""
    worst = 0
    while any(query.isActive for query in queries):
        worst = max([worst, *peaks()])
        next((query for query in queries if query.isActive), queries[0]).awaitTermination(0.2)
    for query in queries:
        finish(query)
    worst = max([worst, *peaks()])
    assert worst > base + MEMORY // 4, "the memory is used"
    assert worst < base + 1.15 * MEMORY + SLACK, f"{(worst - base) / MEMORY:.2f} of the memory"
