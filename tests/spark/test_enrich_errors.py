"""What cannot work is told by `enrich` itself, in one sentence, before any row is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from enrich_runs import SALES_SCHEMA, build
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.core.errors import (
    BudgetTooSmallError,
    CorruptTableError,
    InvalidSettingError,
    KeyTypeError,
    MasterNotFoundError,
    NameClashError,
    SemistreamError,
    UnknownAlgorithmError,
    UnknownColumnError,
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a master table whose columns are id, name, price and span, an interval of a kind Spark has not."""
    rows = pa.table(
        {
            "product_id": pa.array([1, 2], pa.int64()),
            "name": ["a", "b"],
            "price": pa.array([1, 2], pa.int32()),
            "span": pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval()),
        }
    )
    return build(tmp_path_factory.mktemp("errors"), rows)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a master table with a text as its key."""
    return build(tmp_path_factory.mktemp("texts"), pa.table({"code": ["a", "b"], "v": [1, 2]}), "code")


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Return a stream, so that nothing can be read while it is planned."""
    return spark.readStream.schema(SALES_SCHEMA).json(str(tmp_path_factory.mktemp("incoming")))


def refused(kind: type[SemistreamError], says: str, df: DataFrame, master: Any, **settings: Any) -> None:
    given = {"on": "product_id", "columns": ["name"], **settings}
    with pytest.raises(kind, match=says) as raised:
        ss.enrich(df, master, **given)
    message = str(raised.value)
    assert type(raised.value) is kind
    assert "\n" not in message
    assert message.endswith(".")
    assert len(re.findall(r"\. [A-Z]", message)) == 0, "more than one sentence"


def test_columns_that_do_not_exist_are_named(stream: DataFrame, table: Path) -> None:
    refused(UnknownColumnError, "no column 'sku'", stream, table, on={"sku": "product_id"})
    refused(UnknownColumnError, "key is product_id", stream, table, on={"product_id": "name"})
    refused(UnknownColumnError, "key is product_id", stream, table, on=["product_id", "sale_id"])
    refused(InvalidSettingError, r"on is \[\]: give a column name", stream, table, on=[])
    refused(UnknownColumnError, "no column 'colour'", stream, table, columns=["name", "colour"])
    refused(UnknownColumnError, "no column 'colour'", stream, table, replace={"product_id": "colour"})
    refused(UnknownColumnError, "no column 'sku'", stream, table, replace={"sku": "name"})


def test_names_that_would_be_double_are_refused(stream: DataFrame, table: Path) -> None:
    notes = stream.withColumnRenamed("note", "name")
    refused(NameClashError, "'name'", notes, table)
    refused(NameClashError, "suffix '_m'", notes.withColumnRenamed("sale_id", "name_m"), table, suffix="_m")
    refused(NameClashError, "'name'", notes, table, replace={"product_id": "name"}, columns=["price"])
    double = stream.select("product_id", "sale_id", stream["note"].alias("product_id"))
    refused(NameClashError, "2 columns named 'product_id'", double, table)


def test_keys_that_cannot_be_compared_are_refused(stream: DataFrame, table: Path, texts: Path) -> None:
    refused(KeyTypeError, "string in the stream but int64", stream, table, on={"note": "product_id"})
    as_text = stream.selectExpr("CAST(product_id AS STRING) AS product_id", "note")
    refused(KeyTypeError, "string in the stream but int64", as_text, table)
    refused(KeyTypeError, "int64 in the stream but string", stream, texts, on={"product_id": "code"}, columns=["v"])
    collated = stream.selectExpr("note COLLATE UTF8_LCASE AS code", "sale_id")
    refused(KeyTypeError, "COLLATE UTF8_BINARY", collated, texts, on="code", columns=["v"])


def test_columns_of_types_that_do_not_pass_through_workers_are_refused(stream: DataFrame, table: Path) -> None:
    months = stream.selectExpr("product_id", "INTERVAL '1' MONTH AS span_of_life")
    refused(InvalidSettingError, "'span_of_life'.*interval month", months, table)
    refused(SemistreamError, "'span' is month_day_nano_interval", stream, table, columns=["name", "span"])
    refused(SemistreamError, "'span' is month_day_nano_interval", stream, table, columns=None)


def test_settings_that_make_no_sense_are_refused(stream: DataFrame, table: Path) -> None:
    refused(InvalidSettingError, "'outer' is not a join type", stream, table, how="outer")
    refused(UnknownAlgorithmError, "no algorithm 'hashjoin'.*cachejoin", stream, table, algorithm="hashjoin")
    refused(BudgetTooSmallError, "at least 4", stream, table, memory="1MB")
    for memory in ("plenty", "-5MB", 0, -1):
        with pytest.raises(SemistreamError):
            ss.enrich(stream, table, on="product_id", columns=["name"], memory=memory)
    for partitioning in ("some", 0, -2, True, 1.5, None):
        refused(InvalidSettingError, "is not a valid partitioning", stream, table, partitioning=partitioning)
    refused(InvalidSettingError, "cannot name an operator", stream, table, name="a b")
    refused(InvalidSettingError, "cannot name an operator", stream, table, name="")
    refused(InvalidSettingError, "cannot name an operator", stream, table, name=3)
    refused(InvalidSettingError, "give the path of a folder", stream, table, dead_letters=3)
    for pin in (("name",), "name", ("name", "1"), (1, 1), True, ("name", -1)):
        refused(InvalidSettingError, "is not a valid pin", stream, table, pin=pin)
    with pytest.raises(SemistreamError, match="tresholdd"):
        ss.enrich(stream, table, on="product_id", columns=["name"], parameters={"tresholdd": 1})
    refused(
        InvalidSettingError, "so gaps, share would have no effect", stream, table, parameters={"share": 1, "gaps": 0}
    )
    refused(InvalidSettingError, "at most 0.4, but is 0.6", stream, table, parameters={"cache_share": 0.6})
    ss.enrich(stream, table, on="product_id", columns=["name"], order="any", parameters={"share": 1, "gaps": 0})
    ss.enrich(stream, table, on="product_id", columns=["name"], parameters={"cache_share": 0.3, "absent": False})


def test_a_master_table_that_is_not_there_or_damaged_is_named(stream: DataFrame, tmp_path: Path) -> None:
    refused(MasterNotFoundError, "no master table at .*nowhere", stream, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    refused(MasterNotFoundError, "empty", stream, str(tmp_path / "empty"))
    (tmp_path / "file").write_text("no table")
    refused(MasterNotFoundError, "is a file", stream, tmp_path / "file")
    refused(InvalidSettingError, "redis://", stream, "redis://localhost/products")
    damaged = build(tmp_path)
    manifest = next(damaged.glob("manifest-*"))
    manifest.write_bytes(manifest.read_bytes()[:-10])
    refused(CorruptTableError, "truncated", stream, damaged)


def test_an_error_of_enrich_shows_no_secret_of_an_address(stream: DataFrame) -> None:
    with pytest.raises(SemistreamError) as raised:
        ss.enrich(stream, "postgresql://user:hunter2@localhost/db", on="product_id")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("order", ["input", "any"])
def test_planning_leaves_the_memory_settings_of_the_users_process_alone(
    stream: DataFrame, table: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[object] = []
    for module in ("session", "ordered_session"):
        monkeypatch.setattr(f"semistream.joining.{module}.return_freed_memory", changed.append)
    ss.enrich(stream, table, on="product_id", columns=["name"], order=order)
    assert not changed
