"""Queries that stop, fail or lose a worker go on from their checkpoint with the rows and versions they had."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from enrich_operators import FailsOnce, KillsTheOthers
from enrich_runs import (
    SalesStream,
    build,
    finish,
    kill_python_workers,
    multiset,
    products,
    run_each_batch,
    sales,
    spark_join,
    statistics,
)
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.store.paged.versions.pins import pinned_versions
from semistream.store.places.local_folder import LocalFolder

ON = {"product_id": "product_id"}
ROWS = 300


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> SalesStream:
    """Return a stream of five files."""
    made = SalesStream(spark, tmp_path / "stream")
    made.arrive(*(sales(number * ROWS, ROWS) for number in range(5)))
    return made


def joined(source: SalesStream, version: int, first: int = 0, last: int = 5 * ROWS) -> DataFrame:
    """Return Spark's join of some of the sales with a version of the products."""
    sales = source.batch().where(f"sale_id >= {first} AND sale_id < {last}")
    return spark_join(sales, source.spark.createDataFrame(products(version=version)), ON, "left")


def test_a_replay_sees_the_pinned_version_although_the_master_was_merged_and_vacuumed(
    source: SalesStream, tmp_path: Path
) -> None:
    table = build(tmp_path)
    allowed = tmp_path / "allowed"

    def query() -> DataFrame:
        enriched = ss.enrich(source.stream(), table, on="product_id", how="left", memory="4MB", name="sales")
        return enriched.mapInArrow(FailsOnce(2 * ROWS + 5, allowed), enriched.schema)

    with pytest.raises(PySparkException, match="cannot be written yet"):
        source.run(query())
    assert multiset(source.written()) == multiset(joined(source, 1, last=2 * ROWS))

    master = ss.MasterTable(table)
    assert master.merge(products(version=2)) == 2
    assert master.merge(products(version=3)) == 3
    assert pinned_versions(LocalFolder(table)) == {1}
    assert master.vacuum(keep_for=0)["kept"] == [1, 3]
    allowed.touch()
    again = source.run(query())

    counters = statistics(again)["sales"]
    assert [(batch.batch_id, batch.version) for batch in counters] == [(2, 1), (3, 3), (4, 3)]
    expected = joined(source, 1, last=3 * ROWS).unionAll(joined(source, 3, first=3 * ROWS))
    assert multiset(source.written()) == multiset(expected)
    # The pins are now of the newest version alone, so that the old one may go unless an idle worker still has it open.
    assert pinned_versions(LocalFolder(table)) == {3}
    reasons = master.vacuum(keep_for=0)["reasons"]
    assert not any("pin" in reason for reason in reasons.get(1, [])), reasons
    assert set(reasons) <= {1, 3}


def test_an_action_that_fails_once_is_repeated_with_the_rows_it_had(source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)
    seen: list[tuple[int, pa.Table]] = []

    def action(batch: DataFrame, number: int) -> None:
        inside = ss.enrich(batch.drop("name", "price"), table, on="product_id", how="left", memory="4MB")
        seen.append((number, inside.toArrow()))
        assert multiset(seen[-1][1]) == multiset(batch)
        if number == 1 and len(seen) == 2:
            raise RuntimeError("the warehouse is away")

    def enriched() -> DataFrame:
        return ss.enrich(source.stream(), table, on="product_id", how="left", memory="4MB")

    with pytest.raises(PySparkException, match="the warehouse is away"):
        run_each_batch(enriched(), source.checkpoint, action)
    ss.MasterTable(table).merge(products(version=2))
    run_each_batch(enriched(), source.checkpoint, action)
    assert [number for number, _ in seen] == [0, 1, 1, 2, 3, 4]
    assert seen[1][1].equals(seen[2][1]), "the rows of the replay, or their order, are others"
    assert multiset(seen[3][1]) == multiset(joined(source, 2, 2 * ROWS, 3 * ROWS))


def test_a_query_that_is_stopped_at_any_time_goes_on_where_it_was(source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)

    def enriched() -> DataFrame:
        return ss.enrich(source.stream(), table, on="product_id", how="left", memory="4MB")

    for _ in range(2):
        query = source.start(enriched(), processingTime="0 seconds")
        while query.isActive and not any(batch.numInputRows for batch in query.recentProgress):
            query.awaitTermination(0.02)
        query.stop()
        assert query.exception() is None
    source.run(enriched())
    assert multiset(source.written()) == multiset(joined(source, 1))


def test_a_killed_worker_fails_the_batch_and_its_replay_gives_the_rows(source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)
    killed = tmp_path / "killed"

    def query() -> DataFrame:
        before = source.stream()
        murderous = before.mapInArrow(KillsTheOthers(ROWS + 5, killed), before.schema)
        return ss.enrich(murderous, table, on="product_id", how="left", memory="4MB")

    # A local session tries a task only once, so that the query fails.
    with pytest.raises(PySparkException, match=r"(?i)crashed|exited unexpectedly|connection reset|broken pipe"):
        source.run(query())
    assert killed.exists()
    assert source.written().count() == ROWS
    source.run(query())
    assert multiset(source.written()) == multiset(joined(source, 1))


def test_workers_that_were_killed_between_batches_are_replaced(source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)
    enriched = ss.enrich(source.stream(), table, on="product_id", how="left", memory="4MB", name="sales")
    query = source.start(enriched, processingTime="0 seconds")
    query.processAllAvailable()
    dead = kill_python_workers()
    assert dead
    source.arrive(sales(5 * ROWS, ROWS))
    query.processAllAvailable()
    query.stop()
    finish(query)
    assert statistics(query)["sales"][-1].tuples_in == ROWS
    assert multiset(source.written()) == multiset(joined(source, 1, last=6 * ROWS))
