"""Pipelines at addresses that Spark has no connector for; names as Spark finds them, and matches that are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline_runs import SCHEMA, SmallPipeline, sale
from pyspark.sql import SparkSession

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.java_failures import missing_connector
from semistream.pipeline.planning import plan_pipeline

_SOURCE = f'format = "json"\npath = "s3a://bucket/in"\nschema = "{SCHEMA}"'


@pytest.mark.parametrize(
    "changes",
    [
        {"source": _SOURCE},
        {"sink": 'format = "parquet"\npath = "s3a://bucket/out"'},
        {"pipeline": 'name = "small"\ncheckpoint = "s3a://bucket/state"'},
    ],
    ids=["source", "sink", "checkpoint"],
)
def test_a_missing_connector_is_one_sentence(spark: SparkSession, tmp_path: Path, changes: dict[str, str]) -> None:
    pipeline = SmallPipeline(spark, tmp_path, **changes)
    pipeline.build()
    with pytest.raises(InvalidSettingError, match="no connector for s3a:// addresses") as raised:
        plan_pipeline(spark, pipeline.description)
    assert "org.apache.hadoop:hadoop-aws" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250


def test_every_connector_is_known_by_what_java_says() -> None:
    for text, scheme in (
        ("ClassNotFoundException: Class org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem not found", "abfss"),
        ('UnsupportedFileSystemException: No FileSystem for scheme "gs"', "gs"),
        ("java.io.IOException: No FileSystem for scheme: gs", "gs"),
    ):
        assert f"no connector for {scheme}:// addresses" in str(missing_connector(text))
    assert missing_connector("ClassNotFoundException: Class com.example.Thing not found") is None


def test_a_pipeline_tells_which_rows_have_a_match(spark: SparkSession, tmp_path: Path) -> None:
    dimension = 'table = "products"\non = "PRODUCT_ID"\nhow = "left_outer"\ncolumns = ["name"]\nmatched = "is_known"'
    steps = '[[transform]]\nfilter = "SALE_ID > 0"\n[[transform]]\ndrop = ["Quantity"]\n'
    pipeline = SmallPipeline(spark, tmp_path, enrich='memory = "16m"', dimension=dimension, transform=steps)
    pipeline.build()
    pipeline.arrive("a.json", [sale(1, 2), sale(2, 9), sale(3, None)])
    pipeline.run()
    assert pipeline.table().schema.names == ["sale_id", "product_id", "name", "is_known"]
    assert [(row["sale_id"], row["name"], row["is_known"]) for row in pipeline.written()] == [
        (1, "ink", True),
        (2, None, False),
        (3, None, False),
    ]
