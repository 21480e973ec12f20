"""Master tables that Spark builds: the same as those built without it, in several files, all or nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from master_data import KEY_FIELDS, as_frame, content, names, rows
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from semistream.core.errors import (
    ConcurrentWriteError,
    DuplicateKeyError,
    InvalidSettingError,
    KeyTypeError,
    NameClashError,
    NullKeyError,
    SemistreamError,
    UnknownColumnError,
)
from semistream.generator.sales import products
from semistream.master_table import MasterTable
from semistream.spark import master_build
from semistream.spark.master_tasks import PageTask
from semistream.store import build_in_parts

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def many_parts(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session that does not join small parts, so that small tables have several files, too."""
    changed = {"spark.sql.adaptive.coalescePartitions.enabled": "false", "spark.sql.shuffle.partitions": "3"}
    before = {name: spark.conf.get(name) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


class KilledTask(PageTask):
    """Dies without a chance to clean up, after pages were written."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from super().__call__(self._deadly(batches))

    def _deadly(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("kind", KEY_FIELDS)
def test_spark_builds_the_table_that_arrow_builds(kind: str, many_parts: SparkSession, tmp_path: Path) -> None:
    key = [field.name for field in KEY_FIELDS[kind]]
    unique = rows(kind, 300, seed=1)
    frame = as_frame(many_parts, unique)
    ours = MasterTable.build(frame, tmp_path / "spark", key, page_bytes=1024)
    theirs = MasterTable.build(unique, tmp_path / "arrow", key, page_bytes=1024)
    assert content(ours) == content(theirs)
    with ours.open() as store, theirs.open() as expected:
        assert store.schema.equals(expected.schema)
        assert store.unique
    if kind != "boolean":
        assert len(names(ours)) == 1 + 3


@pytest.mark.parametrize("kind", ["int64", "double", "composite"])
def test_duplicates_follow_the_rule_as_they_do_without_spark(
    kind: str, many_parts: SparkSession, tmp_path: Path
) -> None:
    key = [field.name for field in KEY_FIELDS[kind]]
    repeated = rows(kind, 300, seed=2, distinct=120)
    frame = as_frame(many_parts, repeated)
    for rule, order_by in [("all", None), ("latest", "seq")]:
        ours = MasterTable.build(
            frame, tmp_path / f"spark {rule}", key, page_bytes=1024, on_duplicate=rule, order_by=order_by
        )
        in_order = repeated.sort_by("seq")
        theirs = MasterTable.build(in_order, tmp_path / f"arrow {rule}", key, page_bytes=1024, on_duplicate=rule)
        assert content(ours) == content(theirs)
        assert ours.info()["unique"] == theirs.info()["unique"] == (rule == "latest")
    with pytest.raises(DuplicateKeyError, match=f"The key {key[0]}=.* occurs in several master rows"):
        MasterTable.build(frame, tmp_path / "error", key)
    assert [path.name for path in (tmp_path / "error").iterdir()] == ["writer.lock"]


def test_the_latest_row_is_the_same_however_the_rows_are_spread(many_parts: SparkSession, tmp_path: Path) -> None:
    repeated = rows("string", 200, seed=3, distinct=20)
    tied = repeated.set_column(1, "seq", pa.array([number % 2 for number in range(200)], pa.int64()))
    tables = [
        MasterTable.build(
            as_frame(many_parts, tied).repartition(parts),
            tmp_path / f"{parts}",
            "k",
            on_duplicate="latest",
            order_by=["seq"],
        )
        for parts in (1, 5)
    ]
    assert content(tables[0]) == content(tables[1])


def test_products_are_read_back_from_several_files(spark: SparkSession, tmp_path: Path) -> None:
    catalogue = pa.Table.from_batches(products(60_000, seed=5))
    frame = as_frame(spark, catalogue).repartition(4)
    table = MasterTable.build(frame, tmp_path / "t", "product_id")
    with table.open() as store:
        pages = store.locate(catalogue["product_id"].to_numpy()[::500])
        for page, row in zip(pages.tolist(), catalogue.take(list(range(0, 60_000, 500))).to_pylist(), strict=True):
            actual = store.read(*2 * [pages[pages == page][:1].astype("int64")])
            place = actual.codes.tolist().index(row["product_id"])
            assert actual.take(pa.array([place]).to_numpy(), store.schema.names).to_pylist() == [row]
    assert table.verify()["rows"] == 60_000


def test_an_empty_data_frame_makes_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    for number, frame in enumerate([spark.range(0), spark.range(9).where("id > 10")]):
        table = MasterTable.build(frame, tmp_path / f"{number}", "id")
        assert content(table) == []
        assert table.merge(pa.table({"id": pa.array([7], pa.int64())})) == 2
        assert table.info()["rows"] == 1


def test_timestamps_are_stored_alike_in_every_session_zone(spark: SparkSession, tmp_path: Path) -> None:
    data = rows("timestamp", 100, seed=6).append_column("naive", rows("timestamp without a zone", 100, seed=7)["k"])
    frame = as_frame(spark, data)
    contents = []
    for zone in ("UTC", "America/New_York", "Asia/Kathmandu"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            contents.append(content(MasterTable.build(frame, tmp_path / zone, "k")))
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert contents == 3 * [content(MasterTable.build(data, tmp_path / "arrow", "k"))]


def test_strings_of_fixed_and_limited_length_arrive_as_strings(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE short_texts (fixed CHAR(4), limited VARCHAR(9)) USING parquet")
    spark.sql("INSERT INTO short_texts VALUES ('ab', 'cd')")
    table = MasterTable.build(spark.table("short_texts"), tmp_path / "t", "fixed")
    assert [texts for _, texts in content(table)] == [['{"fixed": "ab  ", "limited": "cd"}']]
    spark.sql("DROP TABLE short_texts")


@pytest.mark.parametrize(
    "column",
    ["make_interval(1, 2)", "INTERVAL '1' YEAR", "parse_json('1')", "array(INTERVAL '1' MONTH)"],
)
def test_columns_that_cannot_be_stored_are_refused_by_name(column: str, spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(f"SELECT 1 AS id, {column} AS odd")
    with pytest.raises(InvalidSettingError, match=r"The column 'odd' has the type .* cannot hold: cast it"):
        MasterTable.build(frame, tmp_path / "t", "id")
    assert not (tmp_path / "t").exists()


def test_settings_that_make_no_sense_are_refused_before_spark_works(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 1L AS id, 'a' COLLATE UNICODE_CI AS name, map(1, 2) AS pairs")
    refused: list[tuple[type[SemistreamError], str, DataFrame, dict[str, Any]]] = [
        (KeyTypeError, "compared by their bytes", frame, {"key": "name"}),
        (KeyTypeError, "cannot be a key", frame, {"key": "pairs"}),
        (UnknownColumnError, "no column 'other'", frame, {"key": "other"}),
        (NameClashError, "several columns called 'id'", frame.select("id", "id"), {"key": "id"}),
        (InvalidSettingError, "have no order", frame, {"key": "id", "on_duplicate": "latest"}),
        (InvalidSettingError, "order_by does nothing", frame, {"key": "id", "order_by": "id"}),
        (InvalidSettingError, "cannot be sorted", frame, {"key": "id", "on_duplicate": "latest", "order_by": "pairs"}),
        (UnknownColumnError, "order_by names 'x'", frame, {"key": "id", "on_duplicate": "latest", "order_by": ["x"]}),
        (InvalidSettingError, "page_bytes is 1", frame, {"key": "id", "page_bytes": 1}),
        (InvalidSettingError, "from a stream", spark.readStream.format("rate").load(), {"key": "value"}),
    ]
    for error, text, data, settings in refused:
        with pytest.raises(error, match=text):
            MasterTable.build(data, tmp_path / "t", **settings)
    with pytest.raises(InvalidSettingError, match="order_by is for Spark DataFrames"):
        MasterTable.build(pa.table({"id": [1]}), tmp_path / "t", "id", on_duplicate="latest", order_by="id")
    assert not (tmp_path / "t").exists()


def test_null_keys_are_rejected_with_their_count(many_parts: SparkSession, tmp_path: Path) -> None:
    for number, key in enumerate(["if(id % 3 = 0, null, id)", "if(id % 3 = 0, null, string(id))"]):
        frame = many_parts.range(0, 300, 1, 4).selectExpr(f"{key} AS k", "id")
        with pytest.raises(NullKeyError, match=r"^100 master rows have a null key"):
            MasterTable.build(frame, tmp_path / f"{number}", "k")
    with pytest.raises(NullKeyError, match=r"^100 master rows have a null key"):
        MasterTable.build(frame, tmp_path / "both", ["id", "k"])
    assert [path.name for path in (tmp_path / "both").iterdir()] == ["writer.lock"]


def test_a_killed_build_leaves_the_old_version_and_the_next_one_cleans_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = MasterTable.build(spark.range(1000), tmp_path / "t", "id")
    before, files = content(table), names(table)
    with monkeypatch.context() as patch:
        patch.setattr(master_build, "PageTask", KilledTask)
        # A driver that dies removes nothing.
        patch.setattr(build_in_parts, "remove_leftovers", lambda _: [])
        with pytest.raises(Exception, match="Python worker exited unexpectedly"):
            MasterTable.build(spark.range(2000), tmp_path / "t", "id")
    left = {path.name for path in (tmp_path / "t").iterdir()} - files - {"writer.lock", "manifest-00000001.json"}
    assert left
    assert all(name.startswith("data-00000002-") for name in left)
    assert (table.version, content(table)) == (1, before)
    MasterTable.build(spark.range(3000), tmp_path / "t", "id")
    assert table.info()["rows"] == 3000
    assert table.version == 2
    assert not left & {path.name for path in (tmp_path / "t").iterdir()}


def test_a_build_from_rows_that_fail_raises_what_spark_says_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(1000).selectExpr("id", "if(id = 900, raise_error('bad row'), id) AS n")
    with pytest.raises(PySparkException, match="bad row"):
        MasterTable.build(frame, tmp_path / "t", "id")
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["writer.lock"]


def test_of_two_builders_one_wins_and_the_other_stops(spark: SparkSession, tmp_path: Path) -> None:
    refused = []

    def build_again(what: str, done: int, total: int | None) -> None:
        with pytest.raises(ConcurrentWriteError, match="Another writer is writing to"):
            MasterTable.build(spark.range(5), tmp_path / "t", "id")
        refused.append((what, done, total))

    table = MasterTable.build(spark.range(1000), tmp_path / "t", "id", progress=build_again)
    assert refused == [("reading", 0, None), ("writing", 1000, 1000)]
    assert (table.version, table.info()["rows"]) == (1, 1000)


def test_files_that_the_driver_does_not_see_are_reported_in_one_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = master_build.reported_parts

    def unseen(reports: pa.Table) -> list[Any]:
        parts = real(reports)
        (tmp_path / "t" / parts[0].file.name).unlink()
        return parts

    monkeypatch.setattr(master_build, "reported_parts", unseen)
    with pytest.raises(SemistreamError, match="the driver does not see it there: give a path on a file system"):
        MasterTable.build(spark.range(10), tmp_path / "t", "id")


def test_pages_are_small_in_a_table_that_spark_builds_if_it_is_small(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(3000).selectExpr("id", "repeat('x', 50) AS text")
    small = MasterTable.build(frame, tmp_path / "small", "id")
    assert small.info()["page_bytes"] == 4096
    monkeypatch.setattr(sys.modules["semistream.store.paged.write.build"], "_SMALL_TABLE_BYTES", 100_000)
    large = MasterTable.build(frame, tmp_path / "large", "id")
    assert large.info()["page_bytes"] == 8192
