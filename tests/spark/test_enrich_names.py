"""Names are found as Spark finds them: of columns, of joins, and of operators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from enrich_runs import build, multiset, spark_join
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import semistream as ss
from semistream.core.errors import InvalidSettingError, NameClashError, SchemaDriftError, UnknownColumnError

MASTER = pa.table({"id": [1, 2, 3], "v": ["a", None, "c"], "w": [10, 20, 30]})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("names"), MASTER, "id")


@contextmanager
def case_sensitive(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_capitals_do_not_matter_unless_spark_is_told_so(spark: SparkSession, table: Path) -> None:
    df = spark.range(1, 5).toDF("Id")
    settings = {"how": "left", "memory": "4MB"}
    expected = ss.enrich(df, table, on="Id", **settings)
    assert expected.columns == ["Id", "v", "w"]
    for on in ("id", "ID", ["iD"], {"ID": "id"}, {"id": "ID"}):
        enriched = ss.enrich(df, table, on=on, **settings)
        assert enriched.schema == expected.schema
    assert multiset(enriched) == multiset(expected)
    assert ss.enrich(df, table, on="ID", columns=["W", "V"], **settings).columns == ["Id", "w", "v"]
    replaced = ss.enrich(df, table, on="id", replace={"ID": "W"}, columns=[], **settings)
    assert sorted(map(tuple, replaced.collect()), key=repr) == [(10,), (20,), (30,), (None,)]
    with case_sensitive(spark):
        with pytest.raises(UnknownColumnError, match="no column 'ID'"):
            ss.enrich(df, table, on="ID", **settings)
        with pytest.raises(UnknownColumnError, match="no column 'W'"):
            ss.enrich(df, table, on={"Id": "id"}, columns=["W"], **settings)


def test_names_that_differ_by_case_only_clash_unless_spark_tells_them_apart(spark: SparkSession, table: Path) -> None:
    df = spark.range(1, 5).withColumn("V", F.lit("mine"))
    with pytest.raises(NameClashError, match="have a column 'v'"):
        ss.enrich(df, table, on="id")
    enriched = ss.enrich(df, table, on="id", suffix="_m", memory="4MB")
    assert enriched.columns == ["id", "V", "v_m", "w"]
    assert {tuple(row) for row in enriched.select("v", "V_M").collect()} == {
        ("mine", "a"),
        ("mine", None),
        ("mine", "c"),
    }
    taken = df.withColumn("V_M", F.lit(1))
    with pytest.raises(NameClashError, match="'V_M' and 'v_m' are the same to Spark"):
        ss.enrich(taken, table, on="id", suffix="_m")
    with pytest.raises(NameClashError, match="already a column 'v'"):
        ss.enrich(df, table, on="id", how="left", columns=["w"], matched="v")
    with case_sensitive(spark):
        both = ss.enrich(df, table, on="id", memory="4MB")
        assert both.columns == ["id", "V", "v", "w"]
        assert {tuple(row) for row in both.select("V", "v").collect()} == {("mine", "a"), ("mine", None), ("mine", "c")}


def test_builds_and_merges_find_columns_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "Id BIGINT, Name STRING")
    table = ss.MasterTable.build(rows, tmp_path / "m", key="ID")
    assert table.info()["key"] == ["Id"]
    table.merge(spark.createDataFrame([("c", 2, 1)], "NAME STRING, id BIGINT, at INT"), order_by="AT")
    table.merge(deletes=spark.createDataFrame([(1,)], "ID BIGINT"))
    with pytest.raises(SchemaDriftError, match="no column 'colour', so its values would be lost"):
        table.merge(spark.createDataFrame([(2, "d", "red")], "Id BIGINT, Name STRING, colour STRING"))
    joined = ss.join(pa.table({"Id": [1, 2]}), table, on="Id").read_all()
    assert joined.to_pylist() == [{"Id": 2, "Name": "c"}]


@pytest.mark.parametrize("order", ["input", "any"])
def test_matched_is_true_where_spark_finds_a_row(spark: SparkSession, tmp_path: Path, order: str) -> None:
    master = pa.table({"k": ["a", "b", "b"], "v": pa.array([None, 1, 2], pa.int64())})
    table = build(tmp_path, master, "k", on_duplicate="all")
    df = spark.createDataFrame([(1, "a"), (2, "b"), (3, "c"), (4, None)], "n INT, k STRING")
    enriched = ss.enrich(df, table, on="k", how="left_outer", matched="is_known", order=order, memory="4MB")
    theirs = spark.createDataFrame(master).withColumn("is_known", F.lit(True))
    expected = spark_join(df, theirs, {"k": "k"}, "left").fillna(False, ["is_known"])
    assert enriched.columns == expected.columns
    assert multiset(enriched) == multiset(expected)
    with pytest.raises(NameClashError, match="already a column 'v'"):
        ss.enrich(df, table, on="k", how="left", matched="v")
    with pytest.raises(InvalidSettingError, match="matched is for left joins"):
        ss.enrich(df, table, on="k", how="leftsemi", matched="known")


def test_joins_have_the_names_that_spark_gives_them(spark: SparkSession, table: Path) -> None:
    df = spark.range(6)
    theirs = spark.createDataFrame(MASTER)
    for how in ("left_outer", "left_semi", "leftanti"):
        enriched = ss.enrich(df, table, on="id", how=how, memory="4m")
        assert multiset(enriched) == multiset(df.join(theirs, "id", how))
    for how in ("right", "rightouter", "full", "full_outer", "outer"):
        with pytest.raises(InvalidSettingError, match="would add the master rows"):
            ss.enrich(df, table, on="id", how=how)


def test_two_operators_of_one_name_are_refused_in_one_sentence(spark: SparkSession, table: Path) -> None:
    once = ss.enrich(spark.range(4), table, on="id", columns=["v"], name="shop", memory="4MB")
    with pytest.raises(NameClashError, match="is already enriched under the name 'shop': give each enrich a `name`"):
        ss.enrich(once, table, on="id", columns=["w"], name="shop", memory="4MB")
    twice = ss.enrich(once, table, on="id", columns=["w"], name="shop-2", memory="4MB")
    assert twice.columns == ["id", "v", "w"]
    unnamed = ss.enrich(ss.enrich(spark.range(4), table, on="id", columns=["v"]), table, on="id", columns=["w"])
    assert unnamed.columns == ["id", "v", "w"]


def test_what_is_no_dataframe_or_no_master_is_told_what_to_use(spark: SparkSession, table: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"An object of type Table is not a Spark DataFrame: use ss\.join"):
        ss.enrich(MASTER, table, on="id")  # type: ignore[arg-type]
    with pytest.raises(InvalidSettingError, match=r"does not take Spark DataFrames: use ss\.enrich"):
        ss.join(spark.range(3), table, on="id")  # type: ignore[arg-type]
    for data in (spark.createDataFrame(MASTER), MASTER, MASTER.to_pandas()):
        with pytest.raises(InvalidSettingError, match=r"build one from it with MasterTable\.build"):
            ss.enrich(spark.range(3), data, on="id")  # type: ignore[arg-type]
    address = table.as_uri()
    assert ss.enrich(spark.range(3), address, on="id", memory="4MB").columns == ["id", "v", "w"]
