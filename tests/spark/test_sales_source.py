"""Spark reads generated sales, in batches and in streams, and gets each of them once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from semistream.generator import SalesPlan
from semistream.generator.sales import SALES_SCHEMA
from semistream.spark import sales_source

LONGEST_SECONDS = 120
PLAN = SalesPlan(products=1_000, stride=2, absent=0.1, rate=2_000.0, arrivals="bursty", seed=5)
OPTIONS = {"products": 1_000, "stride": 2, "absent": 0.1, "rate": 2_000, "arrivals": "bursty", "seed": 5}
takes_all_at_one_start = pytest.mark.skipif(
    tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < (4, 2),
    reason="before 4.2 availableNow takes one batch of a Python source at each start",
)


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: SparkSession) -> None:
    sales_source.register(spark)


class Batches:
    """Gathers the micro-batches of a query by their number, and says when there are enough."""

    def __init__(self, wanted: int = 1) -> None:
        self.tables: dict[int, pa.Table] = {}
        self.enough = threading.Event()
        self._wanted = wanted

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.tables[number] = _sorted(batch)
        if len(self.tables) >= self._wanted:
            self.enough.set()


def _sorted(rows: DataFrame) -> pa.Table:
    return rows.toArrow().cast(SALES_SCHEMA).sort_by("sale_id")


def _first_sales(count: int) -> pa.Table:
    return pa.Table.from_batches(PLAN.sales().rows(0, count), SALES_SCHEMA)


def _run(
    spark: SparkSession, checkpoint: Path, gathered: Batches, *, until_enough: bool = False, **more: object
) -> None:
    """Run the query on all that is available, or until enough batches are there, and stop it."""
    stream = spark.readStream.format("semistream-sales").options(**OPTIONS, **more).load()
    writer = stream.writeStream.foreachBatch(gathered).option("checkpointLocation", str(checkpoint))
    query = (writer if until_enough else writer.trigger(availableNow=True)).start()
    try:
        if until_enough:
            assert gathered.enough.wait(LONGEST_SECONDS)
        else:
            assert query.awaitTermination(LONGEST_SECONDS)
    finally:
        query.stop()


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_batch_read_has_the_rows_of_the_plan_whatever_the_partitions(spark: SparkSession, partitions: int) -> None:
    rows = spark.read.format("semistream-sales").options(**OPTIONS, rows=25_000, partitions=partitions).load()
    assert rows.rdd.getNumPartitions() == partitions
    assert _sorted(rows).equals(_first_sales(25_000))


def test_tasks_are_as_many_as_the_session_runs_at_once(spark: SparkSession) -> None:
    rows = spark.read.format("semistream-sales").options(products=10, rows=100).load()
    assert rows.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism


@pytest.fixture
def _new_york(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.usefixtures("_new_york")
def test_the_zone_of_the_session_does_not_move_the_dates(spark: SparkSession) -> None:
    rows = spark.read.format("semistream-sales").options(**OPTIONS, rows=100).load()
    assert _sorted(rows).equals(_first_sales(100))


@takes_all_at_one_start
def test_a_stream_stopped_and_started_again_gives_each_sale_once(spark: SparkSession, tmp_path: Path) -> None:
    gathered = Batches()
    _run(spark, tmp_path, gathered, rowsPerBatch=1_000, rows=2_500)
    assert [table.num_rows for table in gathered.tables.values()] == [1_000, 1_000, 500]
    _run(spark, tmp_path, gathered, rowsPerBatch=700, rows=4_000, partitions=3)
    assert [table.num_rows for table in gathered.tables.values()] == [1_000, 1_000, 500, 700, 700, 100]
    assert pa.concat_tables(gathered.tables.values()).equals(_first_sales(4_000))


@takes_all_at_one_start
def test_a_batch_that_was_not_committed_is_repeated_exactly(spark: SparkSession, tmp_path: Path) -> None:
    first, again = Batches(), Batches()
    _run(spark, tmp_path, first, rowsPerBatch=1_000, rows=2_000, partitions=1)
    for leftover in (tmp_path / "commits" / "1", tmp_path / "commits" / ".1.crc"):
        leftover.unlink(missing_ok=True)
    _run(spark, tmp_path, again, rowsPerBatch=5, rows=2_000, partitions=4)
    assert list(again.tables) == [1]
    assert again.tables[1].equals(first.tables[1])


def test_a_stream_by_the_clock_is_the_batch_read_however_often_it_is_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables: dict[int, pa.Table] = {}
    for _ in range(2):
        gathered = Batches(wanted=2)
        _run(spark, tmp_path, gathered, until_enough=True, maxRowsPerBatch=5_000)
        tables |= gathered.tables
    sales = pa.concat_tables(tables[number] for number in sorted(tables))
    assert max(table.num_rows for table in tables.values()) <= 5_000
    assert sales.equals(_first_sales(sales.num_rows))


def test_other_options_on_an_old_checkpoint_stop_the_query(spark: SparkSession, tmp_path: Path) -> None:
    _run(spark, tmp_path, Batches(), rowsPerBatch=10, rows=10)
    with pytest.raises(StreamingQueryException, match="differ from those in the checkpoint"):
        _run(spark, tmp_path, Batches(), rowsPerBatch=10, rows=20, exponent=0.3)


def test_a_wrong_option_is_named_before_the_query_starts(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"rate must be a number above 0, but -5\.0 was given\."):
        spark.readStream.format("semistream-sales").options(products=10, rate=-5).load()


def test_columns_of_the_callers_choice_are_refused(spark: SparkSession) -> None:
    sales = spark.read.format("semistream-sales").schema("sale_id string").options(products=10, rows=5)
    with pytest.raises(AnalysisException, match="semistream-sales has columns of its own: leave the schema out"):
        sales.load().collect()
