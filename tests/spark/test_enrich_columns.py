"""Columns come out under their names with their values, whatever the names are; keys may be of any type."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from enrich_runs import SALES_SCHEMA, build, multiset, spark_join
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from master_data import KEY_FIELDS, rows
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import semistream as ss

HOWS = ("inner", "left", "semi", "anti")


def enriched_rows(df: DataFrame, table: Path, **settings: Any) -> list[tuple[Any, ...]]:
    actual = ss.enrich(df, table, **{"memory": "4MB", **settings}).toArrow()
    columns = [column.to_pylist() for column in actual.columns]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("kind", ["string", "composite", "date", "timestamp", "decimal", "double"])
def test_keys_of_any_type_join_many_to_many_as_in_spark(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    keys = [field.name for field in KEY_FIELDS[kind]]
    # What a stream carries: payload columns of all types but maps, which no set can hold.
    ours = rows(kind, 400, 1, distinct=60).drop_columns(["seen"])
    ours = ours.rename_columns([name if name in keys else f"our {name}" for name in ours.schema.names])
    nulls = ours.slice(0, 20).set_column(ours.schema.names.index(keys[0]), keys[0], pa.nulls(20, ours[keys[0]].type))
    ours = pa.concat_tables([ours, nulls])
    theirs = rows(kind, 150, 1, distinct=90).drop_columns(["seen"])
    table = build(tmp_path, theirs, keys, on_duplicate="all", page_bytes=512)
    stream, master = spark.createDataFrame(ours), spark.createDataFrame(theirs)
    made = []
    expected = []
    for how in ("left", "anti") if kind != "composite" else HOWS:
        both = [
            ss.enrich(stream, table, on=keys, how=how, memory="4MB"),
            spark_join(stream, master, {key: key for key in keys}, how),
        ]
        assert both[0].columns == both[1].columns
        assert [field.dataType for field in both[0].schema] == [field.dataType for field in both[1].schema]
        for place, frame in enumerate(both):
            texts = [F.to_json(F.struct(frame[f"`{name}`"])).alias(f"x{n}") for n, name in enumerate(frame.columns)]
            whole = F.concat_ws("|", *texts) if texts else F.lit("")
            (made, expected)[place].append(frame.select(F.lit(how).alias("how"), whole.alias("row")))
    actual = multiset(reduce(DataFrame.unionAll, made))
    assert actual == multiset(reduce(DataFrame.unionAll, expected))
    matched = sum(count for (how, row), count in actual.items() if how == "left" and '"text"' in str(row))
    assert matched > 100, "many rows have a match"


def test_timestamps_mean_the_same_in_any_session_zone(spark: SparkSession, tmp_path: Path) -> None:
    theirs = rows("timestamp", 100, 5).select(["k", "sold", "seq"])
    table = build(tmp_path, theirs, "k")
    stream = spark.createDataFrame(theirs.select(["k"]))
    actual = []
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for name in ("UTC", "America/New_York", "Asia/Kathmandu"):
            spark.conf.set("spark.sql.session.timeZone", name)
            enriched = ss.enrich(stream, table, on="k", memory="4MB")
            micros = enriched.select(F.unix_micros("k"), F.unix_micros("sold"), "seq")
            actual.append(multiset(micros))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")
    assert actual[0].total() == 100
    assert actual[0] == actual[1] == actual[2]


def test_dotted_strange_and_double_names_come_out_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    master = pa.table({"m.key": [1, 2], "a.b": ["x1", "x2"], "`q`": ["y1", "y2"], "": ["z1", "z2"]})
    table = build(tmp_path, master, "m.key")
    values = [(1, "l", "p", "q", "r"), (3, "l", "s", "t", "u")]
    df = spark.createDataFrame(values, "a BIGINT, b STRING, c STRING, d STRING, e STRING")
    df = df.toDF("k.1", "same", "same", "other.same", "näme with `ticks` and.dots")
    enriched = ss.enrich(df, table, on={"k.1": "m.key"}, how="left", memory="4MB")
    assert enriched.columns == ["k.1", "same", "same", "other.same", "näme with `ticks` and.dots", "a.b", "`q`", ""]
    assert sorted(map(tuple, enriched.collect())) == [
        (1, "l", "p", "q", "r", "x1", "y1", "z1"),
        (3, "l", "s", "t", "u", None, None, None),
    ]


@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_column_is_ever_swapped_with_another(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """All columns are texts that say which column and row they are of, so that any mistake shows."""
    folder = tmp_path_factory.mktemp("swapped")
    theirs = data.draw(st.permutations(["key", "b", "c.d", "e", "b_m", "f"]))
    ours = data.draw(st.permutations(["id", "b", "x", "e", "y"]))
    chosen = data.draw(st.lists(st.sampled_from([name for name in theirs if name != "key"]), unique=True, min_size=1))
    replaced = data.draw(st.sampled_from([{}, {"x": "f"}, {"id": "f"}, {"x": "f", "y": "c.d"}]))
    chosen = [name for name in chosen if name not in replaced.values()]
    keys = [f"key {number}" for number in range(30)]
    master = pa.table({name: keys if name == "key" else [f"master {name} {key}" for key in keys] for name in theirs})
    table = build(folder, master, "key", page_bytes=512)
    asked = [f"key {number % 40}" for number in range(100)]
    stream = pa.table({name: asked if name == "id" else [f"{name} {n}" for n in range(100)] for name in ours})
    enriched = ss.enrich(
        spark.createDataFrame(stream),
        table,
        on={"id": "key"},
        how="left",
        columns=chosen,
        replace=replaced,
        suffix=" of master",
        memory="4MB",
    )
    shown = [replaced.get(name, name) for name in ours]
    shown += [name + " of master" if name in shown else name for name in chosen]
    assert enriched.columns == shown
    expected = []
    for number, key in enumerate(asked):
        known = key in keys
        row = [
            (f"master {replaced[name]} {key}" if known else None)
            if name in replaced
            else (key if name == "id" else f"{name} {number}")
            for name in ours
        ]
        expected.append((*row, *(f"master {name} {key}" if known else None for name in chosen)))
    actual = enriched.toArrow()
    assert sorted(zip(*(column.to_pylist() for column in actual.columns), strict=True), key=repr) == sorted(
        expected, key=repr
    )


def test_nothing_joined_with_something_and_something_with_nothing(spark: SparkSession, tmp_path: Path) -> None:
    empty = pa.table({"product_id": pa.array([], pa.int64()), "name": pa.array([], pa.string())})
    full = pa.table({"product_id": [1, 2], "name": ["a", "b"]})
    empty_table, table = build(tmp_path / "empty", empty), build(tmp_path / "full", full)
    one = spark.createDataFrame([(7, 1, "n"), (8, None, "o")], SALES_SCHEMA)
    none = one.where("sale_id < 0")
    nothing = spark.createDataFrame([], SALES_SCHEMA)
    for how, count in (("inner", 0), ("left", 2), ("semi", 0), ("anti", 2)):
        assert len(enriched_rows(one, empty_table, on="product_id", how=how)) == count
    assert sorted(enriched_rows(one, empty_table, on="product_id", how="left")) == [
        (7, 1, "n", None),
        (8, None, "o", None),
    ]
    for rows_of_none in (none, nothing):
        assert enriched_rows(rows_of_none, table, on="product_id", how="left") == []
        assert ss.enrich(rows_of_none, table, on="product_id", memory="4MB").columns[-1] == "name"
    assert enriched_rows(one, table, on="product_id", how="semi") == [(7, 1, "n")]


def test_settings_of_spark_that_change_arrow_batches_do_not_change_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = build(
        tmp_path, pa.table({"k": [f"key {n}" for n in range(100)], "v": [b"%d" % n for n in range(100)]}), "k"
    )
    df = spark.range(300).select(F.concat(F.lit("key "), F.col("id") % 120).alias("k"), "id")
    expected = multiset(ss.enrich(df, table, on="k", how="left", memory="4MB"))
    assert expected.total() == 300
    changed = {
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    }
    for name, value in changed.items():
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        try:
            again = ss.enrich(df, table, on="k", how="left", memory="4MB").collect()
        finally:
            spark.conf.set(name, before or "")
        assert {(row[0], row[1], None if row[2] is None else bytes(row[2])) for row in again} == set(expected)


def test_a_number_of_partitions_shuffles_and_keeps_every_row(spark: SparkSession, tmp_path: Path) -> None:
    master = pa.table({"product_id": list(range(0, 2000, 2)), "v": [f"v{n}" for n in range(1000)]})
    table = build(tmp_path, master, page_bytes=512)
    df = spark.range(0, 2100, 1, 3).select(F.when(F.col("id") % 50 > 0, F.col("id")).alias("product_id"))
    expected = multiset(ss.enrich(df, table, on="product_id", how="left", memory="4MB", partitioning="none"))
    assert expected.total() == 2100
    spread = ss.enrich(df, table, on="product_id", how="left", memory="4MB", partitioning=3)
    assert spread.rdd.getNumPartitions() == 3
    assert multiset(spread) == expected


def test_stream_columns_of_any_type_pass_through_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path, pa.table({"id": [0, 1, 2], "v": ["a", "b", "c"]}), "id")
    texts = """
        CAST(id AS BYTE) AS b; CAST(id AS FLOAT) / 3 AS f; CAST(id AS DECIMAL(38, 5)) AS d; CAST('x' AS BINARY) AS bin;
        DATE '2020-01-31' AS day; TIMESTAMP '2020-03-29 02:30:00' AS at; TIMESTAMP_NTZ '2020-03-29 02:30:00' AS ntz;
        INTERVAL '1 02:03:04' DAY TO SECOND AS span; NULL AS nothing; id > 1 AS yes; array('x', 'y') AS full;
        array(id, NULL) AS holes; named_struct('a', 1, 'b', array(named_struct('c', 'z'))) AS nested;
        map('k', id, 'l', 2L) AS m; map('k', CAST(NULL AS STRING)) AS mn; CAST('ab' AS CHAR(5)) AS padded;
        'Case' COLLATE UTF8_LCASE AS collated; repeat('long ', 2000) AS long_text
    """
    df = spark.range(5).selectExpr("id", *(text.strip() for text in texts.split(";")))
    enriched = ss.enrich(df, table, on="id", how="left", memory="4MB")
    assert [(field.name, field.dataType) for field in enriched.drop("v").schema] == [
        (field.name, field.dataType) for field in df.schema
    ]
    assert sorted(enriched.drop("v").collect(), key=lambda row: row["id"]) == df.orderBy("id").collect()
    assert [row["v"] for row in enriched.orderBy("id").collect()] == ["a", "b", "c", None, None]
