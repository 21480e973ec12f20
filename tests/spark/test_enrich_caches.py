"""The caches of workers live on: from micro-batch to micro-batch, through merges, and in workers that start later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from enrich_runs import (
    SalesStream,
    build,
    kill_python_workers,
    multiset,
    products,
    sales,
    spark_join,
    task_statistics,
)
from pyspark.sql import SparkSession

import semistream as ss
from semistream.spark import sales_source

ROWS = 2000
FEW = 200
"""So few products that a batch asks for all that are asked for often."""


def hit_rate(counters: dict[str, int]) -> float:
    return counters["cache_hits"] / (counters["cache_hits"] + counters["read_hits"])


def test_caches_outlive_micro_batches_merges_and_workers(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path)
    source = SalesStream(spark, tmp_path / "stream")

    def arrive(count: int) -> None:
        first = len(list(source.incoming.iterdir()))
        source.arrive(*(sales(number * ROWS, ROWS, products=FEW) for number in range(first, first + count)))

    kill_python_workers()  # those of other tests would take turns with the new ones
    enriched = ss.enrich(source.stream(), table, on="product_id", how="left", memory="8MB", name="sales")
    query = source.start(enriched, processingTime="0 seconds")
    try:
        arrive(6)
        query.processAllAvailable()
        cold, *later = task_statistics(query, "sales")
        # One file is one task, and the same worker is idle each time.
        assert [counters["batch_id"] for counters in (cold, *later)] == list(range(6))
        assert {counters["process_id"] for counters in later} == {cold["process_id"]}
        assert cold["warm_rows"] == cold["cache_hits"] == 0
        assert cold["page_reads"] > 10
        steady = hit_rate(later[-1])
        assert steady > 0.95
        assert all(hit_rate(counters) > 0.9 for counters in later)

        # Saved now and then, but not in the first second of a cache.
        for _ in range(200):
            if (table / "hot").is_dir() and any((table / "hot").glob("*.rows")):
                break
            arrive(1)
            query.processAllAvailable()
        else:
            pytest.fail("nothing was saved")

        dead = kill_python_workers()
        arrive(1)
        query.processAllAvailable()
        warm = task_statistics(query, "sales")[-1]
        assert warm["process_id"] not in dead
        assert warm["warm_rows"] > 50
        assert hit_rate(warm) > 0.8 * steady

        changed = products(version=2).filter(pa.array(np.isin(np.arange(3000), [30, 2500])))
        ss.MasterTable(table).merge(changed)
        before = len(list(source.incoming.iterdir()))
        arrive(2)
        query.processAllAvailable()
        after_merge, settled = task_statistics(query, "sales")[-2:]
        assert (warm["version"], after_merge["version"], settled["version"]) == (1, 2, 2)
        assert after_merge["process_id"] == warm["process_id"]
        assert after_merge["warm_rows"] > 50
        assert hit_rate(after_merge) > 0.8 * steady
        assert hit_rate(settled) > 0.9
    finally:
        query.stop()
    rows = {row["product_id"]: row for row in products().to_pylist()}
    rows |= {row["product_id"]: row for row in changed.to_pylist()}
    now = spark.createDataFrame(pa.Table.from_pylist(list(rows.values()), schema=products().schema))
    first_new = before * ROWS
    on = {"product_id": "product_id"}
    old = spark_join(source.batch().where(f"sale_id < {first_new}"), spark.createDataFrame(products()), on, "left")
    new = spark_join(source.batch().where(f"sale_id >= {first_new}"), now, on, "left")
    assert multiset(source.written()) == multiset(old.unionAll(new))


def test_the_workers_of_a_python_source_take_no_turns_with_those_of_the_join(
    spark: SparkSession, tmp_path: Path
) -> None:
    sales_source.register(spark)
    options = {"products": FEW, "rows": 4 * ROWS, "rowsPerBatch": ROWS, "partitions": 1}
    stream = spark.readStream.format("semistream-sales").options(**options).load()
    kill_python_workers()
    enriched = ss.enrich(stream, build(tmp_path), on="product_id", how="left", memory="8MB", name="alone")
    checkpoint = str(tmp_path / "checkpoint")
    query = enriched.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True)
    running = query.start()
    running.awaitTermination()
    tasks = task_statistics(running, "alone")
    assert len(tasks) == 4
    assert len({counters["process_id"] for counters in tasks}) == 1
