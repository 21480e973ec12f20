"""Formats that are passed on to Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline_runs import SmallPipeline, sale
from pyspark.sql import SparkSession

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.failures import CheckpointMismatchError
from semistream.pipeline.jars import FOLDER_VARIABLE
from semistream.pipeline.planning import plan_pipeline
from servers.spark_jars import jars_of, servers_folder


def test_a_format_of_spark_is_read_with_its_options(spark: SparkSession, tmp_path: Path) -> None:
    source = 'format = "orc"\npath = "incoming"\nschema = "sale_id BIGINT, product_id BIGINT, quantity INT"\n'
    small = SmallPipeline(spark, tmp_path / "small", source=source + "options = { pathGlobFilter = '*.orc' }")
    small.build()
    spark.createDataFrame(
        [tuple(sale(n, n % 4).values()) for n in range(8)], "sale_id BIGINT, product_id BIGINT, quantity INT"
    ).write.mode("append").orc(str(small.incoming))
    small.run()
    names = [None, "pen", "ink", "nib"]
    assert [(row["sale_id"], row["name"]) for row in small.written()] == [(n, names[n % 4]) for n in range(8)]


def test_a_table_of_a_catalog_is_read_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    small = SmallPipeline(spark, tmp_path / "small", source='format = "orc"\ntable = "sales_of_catalog"')
    small.build()
    spark.sql(
        f"CREATE TABLE sales_of_catalog (sale_id BIGINT, product_id BIGINT, quantity INT) USING orc "
        f"LOCATION '{tmp_path / 'sales'}'"
    )
    try:
        spark.sql("INSERT INTO sales_of_catalog VALUES (1, 1, 5), (2, 9, 5)")
        small.run()
        assert [(row["sale_id"], row["name"]) for row in small.written()] == [(1, "pen"), (2, None)]
        small.parts["source"] = 'format = "orc"\ntable = "another"'
        with pytest.raises(CheckpointMismatchError, match="another"):
            small.run()
    finally:
        spark.sql("DROP TABLE sales_of_catalog")


@pytest.mark.parametrize("key", ["path", "schema"])
def test_beside_the_name_of_a_table_neither_path_nor_schema_is_taken(
    spark: SparkSession, tmp_path: Path, key: str
) -> None:
    small = SmallPipeline(spark, tmp_path / "small", source=f'format = "orc"\ntable = "sales"\n{key} = "x BIGINT"')
    with pytest.raises(InvalidSettingError, match=f"{key} is not taken beside table"):
        _ = small.description


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            'format = "com.example.Queue"',
            "'com.example.Queue', which Spark does not know: correct it, or name the jars",
        ),
        ('format = "jdbc"', r"\[source\] cannot be opened: .*jdbc"),
        ('format = "delta"\npath = "incoming"', "The Spark session has no jars of delta: start it with"),
        ('format = "orc"\npath = "incoming"', r"\[source\] cannot be opened: .*[Ss]chema"),
    ],
)
def test_what_spark_cannot_read_as_a_stream_is_one_sentence(
    spark: SparkSession, tmp_path: Path, source: str, says: str
) -> None:
    small = SmallPipeline(spark, tmp_path / "small", source=source)
    small.build()
    with pytest.raises(InvalidSettingError, match=says) as refused:
        plan_pipeline(spark, small.description)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_delta_table_is_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    jars_of("delta")
    source = 'format = "delta"\npath = "sales"\noptions = { ignoreDeletes = true }'
    small = SmallPipeline(spark, tmp_path / "small", source=source)
    small.build()
    assert small.description.sources[0].format == "delta"
    command = [sys.executable, str(Path(__file__).with_name("delta_source.py")), str(small.folder)]
    environment = {**os.environ, FOLDER_VARIABLE: str(servers_folder())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=400)
    assert done.returncode == 0, done.stderr[-6000:]
