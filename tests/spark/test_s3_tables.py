"""Spark with a master table in S3: executors write its parts, workers read its pages, nobody shares a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from enrich_runs import SalesStream, multiset, products, sales, spark_join
from pyspark.sql import SparkSession

import semistream as ss
from semistream.spark import held_join
from semistream.store.paged.versions.pins import pinned_versions
from semistream.store.places.choice import place_of
from servers.s3 import SECRET, S3Server

ROWS = 300


@pytest.fixture
def reached(spark: SparkSession, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Return the server, with its settings in the environment of the workers too."""
    monkeypatch.setattr(held_join, "_FIRST_SAVE_SECONDS", 0.0)
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment.update(s3.settings)
    yield s3
    environment.clear()
    environment.update(before)


def test_a_stream_is_enriched_from_a_table_that_spark_wrote_to_s3(
    spark: SparkSession, reached: S3Server, tmp_path: Path
) -> None:
    table = ss.MasterTable.build(spark.createDataFrame(products()), reached.address(), "product_id", page_bytes=1024)
    assert table.verify()["files"] >= 1
    source = SalesStream(spark, tmp_path / "stream")
    source.arrive(*(sales(number * ROWS, ROWS) for number in range(3)))
    enriched = ss.enrich(source.stream(), table, on="product_id", how="left", memory="16MB", name="sales")
    plan = enriched._jdf.queryExecution().toString()
    assert SECRET not in plan
    query = source.run(enriched)
    assert SECRET not in str(query.lastProgress)
    expected = spark_join(source.batch(), spark.createDataFrame(products()), {"product_id": "product_id"}, "left")
    assert multiset(source.written()) == multiset(expected)
    assert pinned_versions(place_of(table.address)) == {1}

    changed = products(version=2)
    assert table.merge(spark.createDataFrame(changed)) == 2
    batch = ss.enrich(spark.createDataFrame(sales(0, ROWS)), table, on="product_id", memory="16MB")
    joined = spark_join(
        spark.createDataFrame(sales(0, ROWS)), spark.createDataFrame(changed), {"product_id": "product_id"}
    )
    assert multiset(batch) == multiset(joined)
    names = place_of(table.address).names()
    assert not [name for name in names if name.startswith("tmp-")]


def test_a_stream_with_a_tier_gives_the_rows_of_a_batch_join_also_after_a_rebuild(
    spark: SparkSession, reached: S3Server, tmp_path: Path
) -> None:
    address = reached.address()
    table = ss.MasterTable.build(products(), address, "product_id", page_bytes=1024)
    for run in range(3):
        if run == 2:
            place = place_of(address)
            for name in place.names():
                place.remove(name)
            table = ss.MasterTable.build(products(version=2), address, "product_id", page_bytes=1024)
        source = SalesStream(spark, tmp_path / f"stream-{run}")
        source.arrive(*(sales(number * ROWS, ROWS) for number in range(2)))
        enriched = ss.enrich(
            source.stream(), table, on="product_id", how="left", memory="16MB", disk="32MB", name=f"tier-{run}"
        )
        query = source.run(enriched)
        master = spark.createDataFrame(products(version=2) if run == 2 else products())
        expected = spark_join(source.batch(), master, {"product_id": "product_id"}, "left")
        assert multiset(source.written()) == multiset(expected)
        counts = [one for batch in ss.progress(query) for one in batch.enrichments]
        assert sum(one.tier_failures for one in counts) == 0
        assert sum(one.tier_hits + one.tier_misses + one.cache_hits for one in counts) > 0
        if run != 1:
            assert sum(one.remote_requests for one in counts) > 0
            assert max(one.tier_bytes for one in counts) > 0


def test_a_join_reads_through_a_tier_whose_blocks_are_damaged(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    table = ss.MasterTable.build(products(), s3.address(), "product_id", page_bytes=1024)
    stream = sales(0, ROWS)

    def joined() -> list[str]:
        batches = ss.join(stream, table, on="product_id", memory="16MB", disk="16MB")
        rows = sorted(map(str, batches.read_all().to_pylist()))
        assert batches.stats.tier_failures == 0
        return rows

    first = joined()
    assert first == joined()
    (blocks,) = tmp_path.rglob("*.blocks")
    with blocks.open("r+b") as file:
        file.write(bytes(blocks.stat().st_size))
    assert first == joined()
