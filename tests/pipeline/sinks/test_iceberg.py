"""Pipelines from and into Iceberg tables, on the versions of Spark for which Iceberg has a runtime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import semistream as ss

pytestmark = pytest.mark.skipif(
    tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2),
    reason="Iceberg has no runtime for Spark 4.2: run `make test-spark PYSPARK=4.1.4`.",
)
_SPARK = """\
[spark]
master = "local[2]"
"spark.sql.catalog.lake" = "org.apache.iceberg.spark.SparkCatalog"
"spark.sql.catalog.lake.type" = "hadoop"
"spark.sql.catalog.lake.warehouse" = "{folder}/lake"
"spark.sql.shuffle.partitions" = 1
"""
_INTO_ICEBERG = """\
[pipeline]
name = "sales"
checkpoint = "state/sales"
[source]
format = "json"
path = "incoming"
schema = "sale_id BIGINT, product_id BIGINT"
max_files_per_trigger = 1
[enrich]
memory = "16MB"
[[dimension]]
table = "products"
on = "product_id"
how = "left"
[sink]
format = "iceberg"
options = {{ path = "lake.shop.sales", fanout-enabled = "true" }}
[trigger]
available_now = true
{spark}"""
_FROM_ICEBERG = """\
[pipeline]
name = "copy"
checkpoint = "state/copy"
[source]
format = "iceberg"
table = "lake.shop.sales"
[enrich]
memory = "16MB"
[[dimension]]
table = "suppliers"
on = "price"
how = "left"
[sink]
format = "parquet"
path = "copied"
[trigger]
available_now = true
{spark}"""
_MADE = """
import sys
from semistream.pipeline import read_description
from semistream.pipeline.jars import settings_with_jars
from semistream.spark.spark_session import make_session
description = read_description(sys.argv[1])
spark = make_session("made", "local[1]", settings_with_jars(["iceberg"], description.spark.settings))
spark.sql("CREATE TABLE lake.shop.sales (sale_id BIGINT, product_id BIGINT, price BIGINT) USING iceberg")
"""


@pytest.mark.timeout(2_400)  # five sessions of Spark, and the first one fetches a runtime
def test_batches_are_appended_to_an_iceberg_table_once_and_can_be_read_as_a_stream(tmp_path: Path) -> None:
    products = pa.table({"product_id": range(50), "price": [7 * number for number in range(50)]})
    ss.MasterTable.build(products, tmp_path / "products", key="product_id")
    suppliers = pa.table({"price": [7 * number for number in range(50)], "supplier": [str(n) for n in range(50)]})
    ss.MasterTable.build(suppliers, tmp_path / "suppliers", key="price")
    spark = _SPARK.format(folder=tmp_path)
    (tmp_path / "sales.toml").write_text(_INTO_ICEBERG.format(spark=spark))
    (tmp_path / "copy.toml").write_text(_FROM_ICEBERG.format(spark=spark))
    (tmp_path / "incoming").mkdir()
    _done(sys.executable, "-c", _MADE, str(tmp_path / "sales.toml"))
    expected = []
    for first in (0, 400):
        for part in range(2):
            sales = [(first + 200 * part + n, n % 60) for n in range(200)]
            lines = (json.dumps({"sale_id": sale, "product_id": product}) + "\n" for sale, product in sales)
            (tmp_path / "incoming" / f"{first}-{part}.json").write_text("".join(lines))
            expected += [(s, p, *((7 * p, str(p)) if p < 50 else (None, None))) for s, p in sales]
        _done(sys.executable, "-m", "semistream", "run", str(tmp_path / "sales.toml"))
        _done(sys.executable, "-m", "semistream", "run", str(tmp_path / "copy.toml"))
        copied = pq.read_table([str(file) for file in (tmp_path / "copied").glob("*.parquet")]).to_pylist()
        names = ("sale_id", "product_id", "price", "supplier")
        assert sorted(tuple(row[name] for name in names) for row in copied) == expected


def _done(*command: str) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=400)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
