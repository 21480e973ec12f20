"""Enriches a stream on a cluster whose nodes share no folder: the master table is in S3.

    make demo-cluster

starts such a cluster on this machine (scripts/standalone_cluster.py --apart) and runs this program as its driver. The
executors write the table straight to S3 and read its pages there, and each keeps those that it needs often on its own
disk (`disk="2GB"`); keys are in ~/.aws of each node. The rows are compared with a batch join of Spark, and in the end
every node is asked what it has on its disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import semistream as ss

PRODUCTS, BATCHES = 200_000, 8
SALES_PER_BATCH = 20_000
TABLE = "s3://lake/products"
TABLE_FILES = (b"SSPAGES\0", b"SSINDEX\0")
"""What the files of a master table begin with."""
TIER = "semistream-tier-"
"""How the folder with the tier is called, in Spark's folder for local files."""


def main() -> None:
    """Build, enrich, merge, and prove both."""
    spark = session()
    marker = Path.home() / "only-on-the-driver"
    marker.touch()

    began = time.monotonic()
    table = ss.MasterTable.build(products(spark, version=1), TABLE, key="product_id")
    about = table.info()
    print(f"The executors wrote {about['rows']:,} products to {TABLE} in {time.monotonic() - began:.1f} s.")

    stream = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=SALES_PER_BATCH, numPartitions=2).load()
    enriched = ss.enrich(sales(stream), table, on="product_id", how="left", memory="64MB", disk="2GB")
    query = enriched.writeStream.format("memory").queryName("enriched").start()
    while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < BATCHES):
        time.sleep(0.1)
    seconds = [progress.batchDuration / 1000 for progress in query.recentProgress[2:]]
    if query.exception() is not None:
        raise SystemExit(str(query.exception()))
    spark.sparkContext.setLogLevel("FATAL")  # a micro-batch that is cut off by the stop is an error in Spark's log
    query.stop()
    written = spark.table("enriched")
    count = check_equal(written, joined(spark, written.count(), version=1))
    typical = sorted(seconds)[len(seconds) // 2]
    print(f"{count:,} sales were enriched, {SALES_PER_BATCH:,} in a micro-batch of {typical:.2f} s.")
    print("They are equal to a batch join of Spark.")

    table.merge(products(spark, version=2).where("product_id % 100 = 1"))
    again = ss.enrich(sales(spark.range(SALES_PER_BATCH).toDF("value")), table, on="product_id", how="left")
    count = check_equal(again, joined(spark, SALES_PER_BATCH, version=2))
    print(f"After a merge, {count:,} sales are equal to a batch join with version {table.version}.")

    for found in look_at_nodes(spark, marker):
        assert not found["sees_driver"], "this node can see a file of the driver"
        assert not found["table_files"], f"files of the table are on this node: {found['table_files']}"
        print(f"{found['node']} sees no file of the driver and has no file of the table; its tier has", end=" ")
        print(f"{found['tier_bytes'] / 1e6:.1f} MB.")
    spark.stop()


def session() -> SparkSession:
    """Return a session on the cluster; both workers take part."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "768m",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    }
    builder = SparkSession.builder.appName("enrich from S3").master(os.environ["SPARK_MASTER_URL"])
    return builder.config(map=settings).getOrCreate()


def products(spark: SparkSession, version: int) -> DataFrame:
    """Return the products of a version of the master table; every tenth number is not one of them."""
    changed = "product_id % 100 = 1" if version > 1 else "false"
    return (
        spark.range(PRODUCTS)
        .where("id % 10 > 0")
        .selectExpr("id AS product_id", "concat('product ', id) AS name")
        .selectExpr("*", f"product_id % 997 + IF({changed}, 0.5, 0.0) AS price")
    )


def sales(values: DataFrame) -> DataFrame:
    """Return a sale for each value; some products sell far better than others (Zipf's law, exponent 1)."""
    uniform = "pmod(xxhash64(value), 1000003) / 1000003D"
    rank = f"CAST(pow({PRODUCTS}D, {uniform}) AS BIGINT)"
    return values.selectExpr("value AS sale_id", f"pmod({rank} * 7919, {PRODUCTS}) AS product_id")


def joined(spark: SparkSession, count: int, version: int) -> DataFrame:
    """Return what the first sales become by a batch join of Spark."""
    return sales(spark.range(count).toDF("value")).join(products(spark, version), "product_id", "left")


def check_equal(found: DataFrame, expected: DataFrame) -> int:
    """Raise an error unless both have the same rows; return how many."""
    columns = ["sale_id", "product_id", "name", "price"]
    rows, wanted = (frame.select(columns).toArrow().sort_by("sale_id") for frame in (found, expected))
    for name in columns:
        if not rows[name].equals(wanted[name]):
            raise SystemExit(f"{name} of {rows.num_rows:,} enriched rows differs from {wanted.num_rows:,} joined ones.")
    return int(rows.num_rows)


def look_at_nodes(spark: SparkSession, marker: Path) -> list[dict[str, Any]]:
    """Return what each node sees: one task on each of them, at the same time."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        node = Path.home().parent
        files = [path for path in node.rglob("*") if path.is_file()]
        tier = [path for path in files if any(folder.name.startswith(TIER) for folder in path.parents)]
        found = {
            "node": node.name,
            "sees_driver": marker.exists(),
            "table_files": [str(path) for path in files if path not in tier and is_of_table(path)],
            "tier_bytes": sum(512 * path.stat().st_blocks for path in tier),
        }
        yield pa.RecordBatch.from_pylist([found])

    schema = "node string, sees_driver boolean, table_files array<string>, tier_bytes long"
    return spark.range(2, numPartitions=2).mapInArrow(look, schema, barrier=True).toArrow().to_pylist()


def is_of_table(path: Path) -> bool:
    """Say whether a file is one of a master table, by its name or its first bytes."""
    with path.open("rb") as file:
        return path.name.startswith("manifest-") or file.read(8) in TABLE_FILES


if __name__ == "__main__":
    main()
