"""Changes that come from Spark DataFrames: the same merge as without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from master_data import KEY_FIELDS, as_frame, content, names, rows
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from used_tables import ordered_by_use

from semistream.core.errors import (
    ConcurrentWriteError,
    DuplicateKeyError,
    InvalidSettingError,
    KeyTypeError,
    MasterNotFoundError,
    NullKeyError,
    SchemaDriftError,
    UnknownColumnError,
)
from semistream.master_table import MasterTable


def temporary_names(table: MasterTable) -> list[str]:
    """Return the names of files that a merge should have removed."""
    return [path.name for path in table.path.iterdir() if path.name.startswith("tmp-")]


@pytest.mark.parametrize("is_by_use", [False, True])
@pytest.mark.parametrize("kind", ["int64", "timestamp", "composite"])
def test_spark_merges_what_arrow_merges(kind: str, is_by_use: bool, spark: SparkSession, tmp_path: Path) -> None:
    key = [field.name for field in KEY_FIELDS[kind]]
    everything = rows(kind, 500, seed=11)
    first, fresh = everything.slice(0, 350), everything.slice(350)
    changed = first.slice(100, 60).set_column(0, "text", pa.array([f"changed {row}" for row in range(60)]))
    upserts = pa.concat_tables([fresh, changed])
    deletes = everything.slice(200, 90).select(key)
    ours, theirs = (MasterTable.build(first, tmp_path / name, key, page_bytes=1024) for name in ("spark", "arrow"))
    if is_by_use:
        ordered_by_use(ours)
    with_nulls = as_frame(spark, deletes).unionAll(as_frame(spark, deletes).selectExpr(*["null"] * len(key)))
    assert ours.merge(as_frame(spark, upserts), with_nulls) == 2 + is_by_use
    assert (ours.info()["by_use"] is not None) == is_by_use
    assert theirs.merge(upserts, deletes) == 2
    assert content(ours) == content(theirs)
    assert temporary_names(ours) == []
    ours.verify()


def test_only_one_side_need_come_from_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = MasterTable.build(spark.range(100), tmp_path / "t", "id")
    assert table.merge(pa.table({"id": [200, 201]}), spark.range(10)) == 2
    assert table.merge(spark.range(300, 305), pa.table({"id": pa.array([200], pa.int32())})) == 3
    assert table.merge(deletes=spark.range(90, 95).selectExpr("int(id) AS id")) == 4
    with table.open() as store:
        assert [code for code, _ in content(table)] == [*range(10, 90), *range(95, 100), 201, *range(300, 305)]
        assert store.row_count == 91


def test_changes_that_change_nothing_make_no_version(spark: SparkSession, tmp_path: Path) -> None:
    table = MasterTable.build(spark.range(100), tmp_path / "t", "id")
    before = {path.name for path in table.path.iterdir()}
    assert table.merge(spark.range(0), spark.range(500, 600)) == 1
    assert {path.name for path in table.path.iterdir()} == before


def test_several_upserts_of_a_key_need_an_order(spark: SparkSession, tmp_path: Path) -> None:
    table = MasterTable.build(pa.table({"id": [1, 2], "v": ["a", "b"]}), tmp_path / "t", "id")
    changes = spark.sql("SELECT * FROM VALUES (1L, 'old', 1), (1L, 'new', 2), (3L, 'c', 0) AS t(id, v, moment)")
    with pytest.raises(DuplicateKeyError, match=r"The key id=1 occurs in several .* in order_by\.$"):
        table.merge(changes.drop("moment"))
    assert (table.version, temporary_names(table)) == (1, [])
    # The order may come from a column that the table does not have.
    assert table.merge(changes, order_by="moment") == 2
    assert [texts for _, texts in content(table)] == [
        [f'{{"id": {n}, "v": "{v}"}}'] for n, v in [(1, "new"), (2, "b"), (3, "c")]
    ]


def test_a_table_that_keeps_duplicates_keeps_all_upserts(spark: SparkSession, tmp_path: Path) -> None:
    data = spark.sql("SELECT * FROM VALUES (1L, 'a'), (1L, 'b'), (2L, 'c') AS t(id, v)")
    table = MasterTable.build(data, tmp_path / "t", "id", on_duplicate="all")
    table.merge(spark.sql("SELECT * FROM VALUES (1L, 'x'), (2L, 'y'), (2L, 'z') AS t(id, v)"))
    assert [len(texts) for _, texts in content(table)] == [1, 2]
    assert not table.info()["unique"]


def test_changes_of_another_form_are_refused_before_spark_works(spark: SparkSession, tmp_path: Path) -> None:
    table = MasterTable.build(spark.range(5).selectExpr("id", "string(id) AS v"), tmp_path / "t", "id")
    with pytest.raises(SchemaDriftError, match=r"The column 'v' .* is missing"):
        table.merge(spark.range(5))
    with pytest.raises(SchemaDriftError, match="The column 'id' is int32, but it is int64"):
        table.merge(spark.sql("SELECT 1 AS id, 'a' AS v"))
    with pytest.raises(KeyTypeError, match="The key column 'id' is string"):
        table.merge(deletes=spark.sql("SELECT 'a' AS id"))
    with pytest.raises(UnknownColumnError, match="order_by names 'moment'"):
        table.merge(spark.sql("SELECT 1L AS id, 'a' AS v"), order_by="moment")
    with pytest.raises(InvalidSettingError, match="order_by is for upserts in a Spark DataFrame"):
        table.merge(deletes=spark.range(5), order_by="id")
    with pytest.raises(MasterNotFoundError, match="There is no master table"):
        MasterTable(tmp_path / "none").merge(spark.range(5))
    assert table.version == 1


def test_a_merge_that_fails_leaves_the_old_version_and_no_files(spark: SparkSession, tmp_path: Path) -> None:
    table = MasterTable.build(spark.range(1000), tmp_path / "t", "id")
    before = {path.name for path in table.path.iterdir()}
    with pytest.raises(PySparkException, match="bad row"):
        table.merge(spark.range(500), spark.range(1000).selectExpr("if(id = 900, raise_error('bad row'), id) AS id"))
    with pytest.raises(NullKeyError, match=r"^7 master rows have a null key"):
        table.merge(spark.range(20).selectExpr("if(id < 7, null, id) AS id"))
    assert {path.name for path in table.path.iterdir()} == before
    assert table.version == 1


def test_nobody_else_writes_while_changes_are_sorted(spark: SparkSession, tmp_path: Path) -> None:
    table = MasterTable.build(spark.range(10), tmp_path / "t", "id")
    files = names(table)
    seen = []

    def write_too(what: str, done: int, total: int | None) -> None:
        with pytest.raises(ConcurrentWriteError, match="Another writer is writing to"):
            table.vacuum(keep_for=0)
        seen.append((what, done, total))

    assert table.merge(spark.range(5, 15), progress=write_too) == 2
    assert seen[:2] == [("reading upserts", 0, None), ("reading upserts", 10, 10)]
    assert files != names(table)


def test_counts_of_keys_do_not_come_from_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = MasterTable.build(spark.range(100), tmp_path / "t", "id")
    with pytest.raises(InvalidSettingError, match="toArrow"):
        table.recluster(spark.range(10))
    table.recluster(spark.sql("SELECT id, id AS count FROM range(10)").toArrow())
    assert table.info()["by_use"]["keys"] == 9
