"""What every sink must keep that writes batch by batch; each kind joins by a subclass."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.core.errors import (
    InvalidSettingError,
    SchemaDriftError,
    SemistreamError,
    UnknownColumnError,
)
from semistream.pipeline import PipelineDescription, read_description
from semistream.pipeline.failures import CheckpointMismatchError
from semistream.pipeline.running import run_pipeline
from semistream.pipeline.sinks import sink_of
from semistream.pipeline.sinks.contract import Batch, BatchSink
from semistream.pipeline.sinks.upserts import check_upsert

SCHEMA = "sale_id BIGINT, product_id BIGINT, version INT"


def pipeline_file(
    folder: Path, sink: str, name: str = "sales", state: str = "state", master: str = "products"
) -> PipelineDescription:
    """Return a pipeline with this sink that reads sales and enriches them."""
    file = folder / f"{name}.toml"
    file.write_text(
        f'[pipeline]\nname = "{name}"\ncheckpoint = "{state}"\n'
        f'[source]\nformat = "json"\npath = "incoming"\nschema = "{SCHEMA}"\nmax_files_per_trigger = 1\n'
        f'[enrich]\nmemory = "8MB"\n[[dimension]]\ntable = "{master}"\non = "product_id"\nhow = "left"\n'
        f"[sink]\n{sink}\n[trigger]\navailable_now = true\n"
    )
    return read_description(file)


def arrive(folder: Path, name: str, rows: list[tuple[int, int, int]]) -> None:
    """Let a file of sales arrive."""
    (folder / "incoming").mkdir(exist_ok=True)
    lines = [json.dumps(dict(zip(("sale_id", "product_id", "version"), row, strict=True))) for row in rows]
    (folder / "incoming" / f".{name}").write_text("\n".join(lines) + "\n")
    (folder / "incoming" / f".{name}").rename(folder / "incoming" / name)


def build_products(folder: Path) -> None:
    """Build a master table of three products."""
    rows = pa.table({"product_id": pa.array([1, 2, 3]), "price": pa.array([10, 20, 30])})
    ss.MasterTable.build(rows, folder / "products", key="product_id")


def batch_of(folder: Path, number: int, pipeline: str = "sales") -> Batch:
    """Return the name of a batch; each test has a query of its own."""
    return Batch(pipeline, hashlib.blake2s(str(folder).encode(), digest_size=16).hexdigest(), number, "state")


class BatchSinkContract(ABC):
    """The suite; a subclass says how its sink is described and what it holds."""

    @abstractmethod
    def described(self, folder: Path, table: str, *, upsert: bool = False, order: bool = True) -> str:
        """Return the keys of [sink] for a table of this name."""

    @abstractmethod
    def held(self, spark: SparkSession, folder: Path, table: str) -> list[dict[str, Any]]:
        """Return the rows that the table holds."""

    @abstractmethod
    def remove(self, folder: Path, table: str) -> None:
        """Remove a table, as somebody else may."""

    @pytest.fixture
    def rows(self, spark: SparkSession) -> DataFrame:
        """Return three sales, two of which are equal."""
        return spark.createDataFrame([(1, 1, 1), (2, 1, 1), (2, 1, 1)], SCHEMA)

    def sink(self, folder: Path, table: str, **settings: bool) -> BatchSink:
        """Return the sink of a table."""
        sink = sink_of(pipeline_file(folder, self.described(folder, table, **settings)))
        assert isinstance(sink, BatchSink)
        return sink

    def newest(self, sink: BatchSink, spark: SparkSession, query: str) -> int:
        """Return the newest batch that a table has of a query."""
        return next(each.newest for each in sink.written(spark) if each.query == query)

    def counted(self, spark: SparkSession, folder: Path, table: str) -> Counter[tuple[Any, ...]]:
        """Return how often the table holds each sale."""
        return Counter((row["sale_id"], row["version"]) for row in self.held(spark, folder, table))

    def test_a_batch_that_is_written_again_changes_nothing(
        self, spark: SparkSession, tmp_path: Path, rows: DataFrame
    ) -> None:
        sink = self.sink(tmp_path, "again")
        sink.check(rows)
        for _ in range(2):
            sink.write(rows, batch_of(tmp_path, 0))
        assert self.counted(spark, tmp_path, "again") == {(1, 1): 1, (2, 1): 2}
        restarted = self.sink(tmp_path, "again")
        restarted.check(rows)
        assert self.newest(restarted, spark, batch_of(tmp_path, 0).query) == 0
        for number, again in enumerate((rows, rows.limit(1), rows.limit(0))):
            restarted.write(again, batch_of(tmp_path, number, "renamed"))
        assert self.counted(spark, tmp_path, "again").total() == 4
        assert self.newest(self.sink(tmp_path, "again"), spark, batch_of(tmp_path, 0).query) == 2, (
            "an empty batch counts"
        )

    def test_an_upsert_keeps_the_newest_row_of_each_key(self, spark: SparkSession, tmp_path: Path) -> None:
        sink = self.sink(tmp_path, "newest", upsert=True)
        first = spark.createDataFrame([(1, 1, 1), (1, 3, 3), (1, 2, 2), (2, 1, 5)], SCHEMA)
        sink.check(first)
        sink.write(first, batch_of(tmp_path, 0))
        assert self.counted(spark, tmp_path, "newest") == {(1, 3): 1, (2, 5): 1}
        later = spark.createDataFrame([(1, 1, 4), (2, 1, 4), (3, 1, None)], SCHEMA)
        for _ in range(2):
            sink.write(later, batch_of(tmp_path, 1))
        assert self.counted(spark, tmp_path, "newest") == {(1, 4): 1, (2, 5): 1, (3, None): 1}
        no_key = spark.createDataFrame([(None, 1, 4)], SCHEMA)
        with pytest.raises((PySparkException, SemistreamError), match="has no value in sale_id"):
            sink.write(no_key, batch_of(tmp_path, 2))

    def test_of_rows_that_are_equally_new_every_attempt_takes_the_same(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        given = [(1, product, 1) for product in range(20)]
        for table, ordered in (("even", given), ("odd", given[::-1])):
            rows = spark.createDataFrame(ordered, SCHEMA).coalesce(1)
            self.sink(tmp_path, table, upsert=True).write(rows, batch_of(tmp_path / table, 0))
        held = [[row["product_id"] for row in self.held(spark, tmp_path, table)] for table in ("even", "odd")]
        assert len(held[0]) == 1
        assert held[0] == held[1]

    def test_a_table_that_is_gone_stops_the_pipeline(self, tmp_path: Path, rows: DataFrame) -> None:
        sink = self.sink(tmp_path, "removed")
        sink.check(rows)
        for number in range(2):
            sink.write(rows, batch_of(tmp_path, number))
        self.remove(tmp_path, "removed")
        with pytest.raises(SchemaDriftError, match="is gone: restore it"):
            sink.write(rows, batch_of(tmp_path, 2))

    def test_an_upsert_without_an_order_stops_at_two_rows_of_a_key(self, spark: SparkSession, tmp_path: Path) -> None:
        sink = self.sink(tmp_path, "unordered", upsert=True, order=False)
        equal = spark.createDataFrame([(1, 1, 1), (1, 1, 1), (2, 1, 1)], SCHEMA)
        sink.check(equal)
        sink.write(equal, batch_of(tmp_path, 0))
        assert self.counted(spark, tmp_path, "unordered") == {(1, 1): 1, (2, 1): 1}
        with pytest.raises((PySparkException, SemistreamError), match="by order_by in"):
            sink.write(spark.createDataFrame([(1, 1, 1), (1, 1, 2)], SCHEMA), batch_of(tmp_path, 1))
        assert self.counted(spark, tmp_path, "unordered") == {(1, 1): 1, (2, 1): 1}

    def test_other_columns_stop_before_any_write(self, spark: SparkSession, tmp_path: Path, rows: DataFrame) -> None:
        sink = self.sink(tmp_path, "columns")
        sink.write(rows, batch_of(tmp_path, 0))
        with pytest.raises(SchemaDriftError, match="no column 'more'"):
            sink.check(rows.selectExpr("*", "1 AS more"))
        with pytest.raises(SchemaDriftError, match="'version'"):
            sink.check(rows.selectExpr("sale_id", "product_id", "'x' AS version"))
        sink.check(rows.select("product_id", "sale_id"))  # a column of the table that the rows lack is null
        sink.write(rows.select("product_id", "sale_id").limit(1), batch_of(tmp_path, 1))
        assert sum(row["version"] is None for row in self.held(spark, tmp_path, "columns")) == 1

    def test_a_checkpoint_and_a_table_that_do_not_fit_are_refused_at_the_start(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        build_products(tmp_path)
        arrive(tmp_path, "0.json", [(1, 1, 1), (2, 9, 1)])
        sink = self.described(tmp_path, "fit")
        run_pipeline(pipeline_file(tmp_path, sink), spark=spark)
        held = self.held(spark, tmp_path, "fit")
        assert {(row["sale_id"], row["price"]) for row in held} == {(1, 10), (2, None)}
        with pytest.raises(CheckpointMismatchError, match=r"restore that checkpoint.*another name") as refused:
            run_pipeline(pipeline_file(tmp_path, sink, state="other"), spark=spark)
        assert "\n" not in str(refused.value)
        arrive(tmp_path, "1.json", [(3, 1, 1)])
        run_pipeline(pipeline_file(tmp_path, sink), spark=spark)
        assert self.counted(spark, tmp_path, "fit") == {(1, 1): 1, (2, 1): 1, (3, 1): 1}
        for log in ("offsets", "commits"):
            (tmp_path / "state" / log / "1").unlink()
            (tmp_path / "state" / log / ".1.crc").unlink(missing_ok=True)
        with pytest.raises(CheckpointMismatchError, match=r"batches up to 1, but the checkpoint .* only up to 0"):
            run_pipeline(pipeline_file(tmp_path, sink), spark=spark)
        run_pipeline(pipeline_file(tmp_path, sink, name="another", state="third"), spark=spark)
        assert self.counted(spark, tmp_path, "fit").total() == 6, "another pipeline may write to the same table"

    def test_columns_that_are_not_there_are_named(self, tmp_path: Path, rows: DataFrame) -> None:
        description = pipeline_file(tmp_path, self.described(tmp_path, "named", upsert=True))
        with pytest.raises(UnknownColumnError, match=r"\[sink\] key names 'sale_id'"):
            check_upsert(rows.drop("sale_id"), description.sink)
        with pytest.raises(InvalidSettingError, match="master table without versions"):
            check_upsert(rows, description.sink, unsure={"sale_id"})
        without = pipeline_file(tmp_path, self.described(tmp_path, "named", upsert=True, order=False)).sink
        with pytest.raises(InvalidSettingError, match="rows may wait"):
            check_upsert(rows, without, rows_may_wait=True)
        check_upsert(rows, description.sink, rows_may_wait=True)
