"""`enrich` beside the rest of Spark: watermarks, several operators and queries, pins, drift, order, metrics."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from enrich_runs import (
    SalesStream,
    batch_statistics,
    build,
    multiset,
    products,
    run_each_batch,
    run_to_table,
    sales,
    spark_join,
    statistics,
    task_statistics,
)
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import semistream as ss
from semistream.store.paged.versions.pins import pinned_versions
from semistream.store.places.local_folder import LocalFolder

ON = {"product_id": "product_id"}
ROWS = 300


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> SalesStream:
    """Return a stream of three files."""
    made = SalesStream(spark, tmp_path / "stream")
    made.arrive(*(sales(number * ROWS, ROWS) for number in range(3)))
    return made


def test_a_watermark_travels_through_and_closes_windows(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path)
    source = SalesStream(spark, tmp_path / "stream")
    source.arrive(*(sales(number * 60, 60) for number in range(4)))
    timed = source.stream().withColumn("at", F.timestamp_seconds("sale_id")).withWatermark("at", "10 seconds")
    enriched = ss.enrich(timed, table, on="product_id", memory="4MB")
    assert enriched.schema["at"].metadata == {"spark.watermarkDelayMs": 10_000}
    counted = enriched.groupBy(F.window("at", "20 seconds")).agg(F.count("*").alias("n"), F.sum("price").alias("sum"))
    windows = counted.select(F.unix_seconds("window.start").alias("start"), "n", "sum")
    closed, _ = run_to_table(windows, tmp_path / "checkpoint", "closed_windows")
    # The newest sale is of second 239, or some before it if that one has no product.
    latest = spark_join(source.batch(), spark.createDataFrame(products()), ON).agg(F.max("sale_id")).collect()[0][0]
    actual = {row["start"]: (row["n"], row["sum"]) for row in closed.collect()}
    expected = spark_join(source.batch(), spark.createDataFrame(products()), ON)
    expected = expected.groupBy((F.floor(F.col("sale_id") / 20) * 20).alias("start"))
    sums = {
        row["start"]: (row["n"], row["sum"])
        for row in expected.agg(F.count("*").alias("n"), F.sum("price").alias("sum")).collect()
    }
    assert latest > 200
    assert len(actual) >= 10
    assert actual == {start: values for start, values in sums.items() if start in actual}
    assert max(actual) + 20 <= 240 - 10


def test_two_operators_in_a_query_count_for_themselves_and_share_their_memory(
    source: SalesStream, tmp_path: Path
) -> None:
    first = build(tmp_path / "one")
    second = build(tmp_path / "two", products(version=2).rename_columns(["product_id", "name2", "price2"]))
    once = ss.enrich(source.stream(), first, on="product_id", how="inner", memory="8MB", name="one")
    twice = ss.enrich(once, second, on="product_id", how="left", memory="8MB", name="two", columns=["price2"])
    query = source.run(twice.observe("written", F.count(F.lit(1)).alias("rows")))
    counted = statistics(query)
    assert sorted(counted) == ["one", "two"]
    for one, two in zip(counted["one"], counted["two"], strict=True):
        assert one.tuples_in == ROWS
        assert one.rows_out == one.cache_hits + one.read_hits == two.tuples_in == two.rows_out
        assert two.null_keys == two.absent == 0
        assert one.cache_hits + one.read_hits + one.absent + one.null_keys + one.refused == one.tuples_out
    progress = [batch for batch in query.recentProgress if batch.numInputRows]
    assert [batch.observedMetrics["written"]["rows"] for batch in progress] == [
        batch.rows_out for batch in counted["two"]
    ]
    expected = spark_join(source.batch(), source.spark.createDataFrame(products()), ON)
    expected = expected.withColumn("price2", F.col("price") + 1)
    assert multiset(source.written()) == multiset(expected)

    # A worker that has seen both masters gives each of them half, whatever it is asked for.
    of_process: dict[int, set[str]] = {}
    for batch in [*task_statistics(query, "one"), *task_statistics(query, "two")]:
        assert batch["memory_bytes"] <= batch["budget_bytes"] == 8_000_000
        of_process.setdefault(batch["process_id"], set()).add(batch["name"])
    for batch in [*task_statistics(query, "one")[-1:], *task_statistics(query, "two")[-1:]]:
        assert batch["memory_bytes"] <= 8_000_000 / len(of_process[batch["process_id"]])


def test_two_queries_at_a_time_give_their_rows(spark: SparkSession, source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)
    actual: dict[str, DataFrame] = {}
    failures: list[BaseException] = []

    def run(how: str) -> None:
        try:
            enriched = ss.enrich(source.stream(), table, on="product_id", how=how, memory="4MB", name=how)
            actual[how], query = run_to_table(enriched, tmp_path / how, f"query_{how}")
            assert len(statistics(query)[how]) == 3
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(how,)) for how in ("left", "anti")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for how, rows in actual.items():
        assert multiset(rows) == multiset(spark_join(source.batch(), spark.createDataFrame(products()), ON, how))


def test_a_batch_tells_its_metrics_too_and_hides_the_row_that_carries_them(source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)
    enriched = ss.enrich(source.batch(), table, on="product_id", how="left", memory="4MB", name="batch")
    rows = enriched.toArrow()
    assert rows.num_rows == enriched.count() == 3 * ROWS
    (counters,) = batch_statistics(enriched)
    assert (counters.name, counters.query_id, counters.batch_id) == ("batch", "", -1)
    assert counters.tuples_in == counters.tuples_out == counters.rows_out == rows.num_rows
    assert counters.null_keys == rows["product_id"].null_count
    assert counters.cache_hits + counters.read_hits + counters.absent + counters.null_keys == counters.tuples_out
    assert counters.as_dict()["hit_rate"] == counters.cache_hits / counters.tuples_in
    assert not enriched.where("sale_id IS NULL").collect(), "the carrier is no row of the result"
    assert len(enriched.limit(5).collect()) == 5


def test_rows_come_in_one_order_whether_they_were_cached_or_not(source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)
    one = source.batch().coalesce(1)
    outputs: list[pa.Table] = []
    reads: list[int] = []
    # Spark hands tasks to its idle workers in turn, so that it takes a while until one comes again.
    while len(reads) < 12 and 0 not in reads:
        enriched = ss.enrich(one, table, on="product_id", how="left", memory="4MB")
        outputs.append(enriched.toArrow())
        reads.append(batch_statistics(enriched)[0].page_reads)
    assert all(output.equals(outputs[0]) for output in outputs)
    assert outputs[0]["sale_id"].equals(one.toArrow()["sale_id"])
    assert reads[0] > 0
    assert reads[-1] == 0


def test_a_pin_that_is_given_fixes_the_version_in_own_threads(source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)
    sale = source.batch().where("product_id = 2").limit(1)

    def price(**settings: Any) -> Any:
        actual: list[Any] = []

        def work() -> None:
            actual.append(ss.enrich(sale, table, on="product_id", memory="4MB", **settings).collect()[0]["price"])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return actual[0]

    assert price(pin=("loader", 7)) == 21
    assert price(pin=False) == 21
    planned = ss.enrich(sale, table, on="product_id", memory="4MB")
    ss.MasterTable(table).merge(products(version=2))
    assert price(pin=("loader", 7)) == 21, "the replay of a batch sees what it saw"
    assert price(pin=("loader", 8)) == 22
    assert price(pin=False) == price() == 22
    assert planned.collect()[0]["price"] == 21, "a batch has the version of its plan"
    assert pinned_versions(LocalFolder(table)) == {1, 2}


def test_without_pins_a_stream_reads_the_newest_version_and_writes_none(source: SalesStream, tmp_path: Path) -> None:
    table = build(tmp_path)

    def merge_once(_: DataFrame, number: int) -> None:
        if number == 0:
            ss.MasterTable(table).merge(products(version=2))

    enriched = ss.enrich(source.stream(), table, on="product_id", memory="4MB", pin=False, name="sales")
    prices: list[int] = []

    def action(batch: DataFrame, number: int) -> None:
        prices.append(batch.where("product_id = 2").first()["price"])
        merge_once(batch, number)

    run_each_batch(enriched, source.checkpoint, action)
    assert prices == [21, 22, 22]
    assert not (table / "pins").exists()


@pytest.mark.parametrize("change", ["dropped", "retyped", "added"])
def test_a_master_that_changes_its_columns_while_a_query_runs(source: SalesStream, tmp_path: Path, change: str) -> None:
    table = build(tmp_path)
    new = products(version=2)
    if change == "dropped":
        new = new.drop_columns(["price"])
    elif change == "retyped":
        new = new.set_column(2, "price", new["price"].cast(pa.string()))
    else:
        new = new.add_column(1, "colour", pa.array(["red"] * new.num_rows))
    enriched = ss.enrich(source.stream(), table, on="product_id", memory="4MB")
    written: list[int] = []

    def action(batch: DataFrame, number: int) -> None:
        written.append(batch.agg(F.max("price")).collect()[0][0] % 10)
        if number == 0:
            ss.MasterTable.build(new, table, "product_id", page_bytes=1024)

    if change == "added":
        run_each_batch(enriched, source.checkpoint, action)
        assert written == [1, 2, 2]
        return
    with pytest.raises(PySparkException, match=r"SchemaDriftError.*price"):
        run_each_batch(enriched, source.checkpoint, action)
    assert written == [1], "nothing is written of the batch"
