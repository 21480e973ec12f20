"""`enrich` with a room on Spark: rows wait, drain, are parked and released, and mistakes show at once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import semistream as ss
from semistream.core.errors import InvalidSettingError

KEYS = 2_000


@pytest.fixture
def master(tmp_path: Path) -> ss.MasterTable:
    return ss.MasterTable.build(rows_of(np.arange(KEYS)), tmp_path / "master", key="key", page_bytes=1024)


def rows_of(keys: np.ndarray) -> pa.Table:
    return pa.table({"key": keys, "price": keys * 0.5})


def arrive(folder: Path, first: int, keys: np.ndarray) -> None:
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{first}"
    pq.write_table(pa.table({"id": np.arange(first, first + len(keys)), "key": keys}), hidden)
    hidden.rename(folder / f"{first}.parquet")


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema("id BIGINT, key BIGINT").option("maxFilesPerTrigger", 1).parquet(str(folder))


def started(rows: DataFrame, tmp_path: Path, **trigger: Any) -> Any:
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "state")).trigger(**trigger)
    return writer.start(str(tmp_path / "out"), format="parquet")


def wait_for(query: Any, condition: Callable[[], bool], seconds: float = 120.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert query.isActive, query.exception()
        assert time.monotonic() < limit, "took too long"
        time.sleep(0.1)


def left(spark: SparkSession, tmp_path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.schema("id BIGINT").parquet(str(tmp_path / "out")).collect())


def test_rows_wait_drain_and_are_released_across_a_restart_with_other_settings(
    spark: SparkSession, tmp_path: Path, master: ss.MasterTable
) -> None:
    incoming = tmp_path / "in"
    arrive(incoming, 0, np.arange(1_000) * 7 % (KEYS + 500))

    def enriched(**settings: Any) -> DataFrame:
        rows = stream(spark, incoming)
        room = {"room": tmp_path / "room", "partitioning": 2, "unmatched": "park", "how": "left", **settings}
        return ss.enrich(rows, master, on="key", memory="8MB", name="sales", **room)

    query = started(enriched(max_wait="1 hour"), tmp_path, processingTime="0 seconds")
    wait_for(query, lambda: any(batch.enrichments[0].parked for batch in ss.progress(query)))
    batches = ss.progress(query)
    query.stop()
    assert batches[0].rows_in == 1_000
    assert batches[0].enrichments[0].waiting > 900, "a new cache answers little, and nothing is due within an hour"
    parked = batches[-1].enrichments[0].parked
    assert parked == sum(key >= KEYS for key in (np.arange(1_000) * 7 % (KEYS + 500)).tolist())
    assert len(left(spark, tmp_path)) == 1_000 - parked, "a silent stream drains"
    assert any(batch.enrichments[0].max_latency_seconds > 0 for batch in batches)

    master.merge(rows_of(np.arange(KEYS, KEYS + 500)))
    arrive(incoming, 1_000, np.arange(500))
    query = started(enriched(max_wait=0, partitioning=7), tmp_path, availableNow=True)
    query.awaitTermination(120)
    released = sum(batch.enrichments[0].released for batch in ss.progress(query))
    assert released == parked
    assert left(spark, tmp_path) == list(range(1_500))
    assert sum(batch.rows_in for batch in ss.progress(query)) == 500, "tickets are no rows"
    assert ss.progress(query)[-1].enrichments[0].parked == 0


def test_a_stream_that_does_not_replay_stops_with_a_sentence(
    spark: SparkSession, tmp_path: Path, master: ss.MasterTable
) -> None:
    arrive(tmp_path / "in", 0, np.arange(100))

    def run() -> None:
        rows = stream(spark, tmp_path / "in").withColumn("token", F.expr("uuid()"))
        joined = ss.enrich(rows, master, on="key", memory="8MB", room=tmp_path / "room", max_wait="1 hour")

        def fail(batch: DataFrame, _: int) -> None:
            batch.collect()
            raise RuntimeError("after the rows were pinned")

        writer = joined.writeStream.option("checkpointLocation", str(tmp_path / "state")).foreachBatch(fail)
        writer.trigger(availableNow=True).start().awaitTermination(120)

    with pytest.raises(StreamingQueryException, match="after the rows were pinned"):
        run()
    with pytest.raises(StreamingQueryException, match="does not replay the same rows"):
        run()


def test_rows_that_nobody_asks_for_are_not_lost_in_silence(
    spark: SparkSession, tmp_path: Path, master: ss.MasterTable
) -> None:
    arrive(tmp_path / "in", 0, np.arange(100))
    joined = ss.enrich(
        stream(spark, tmp_path / "in"), master, on="key", memory="8MB", room=tmp_path / "room", max_wait="1 hour"
    )

    def look_once(batch: DataFrame, number: int) -> None:
        if number == 0:
            batch.collect()

    writer = joined.writeStream.option("checkpointLocation", str(tmp_path / "state")).foreachBatch(look_once)
    query = writer.trigger(processingTime="0 seconds").start()
    with pytest.raises(StreamingQueryException, match="not all of its rows were asked for"):
        query.awaitTermination(120)


def test_fat_rows_wait_and_one_above_the_budget_is_a_dead_letter(
    spark: SparkSession, tmp_path: Path, master: ss.MasterTable
) -> None:
    incoming, letters = tmp_path / "in", tmp_path / "letters"
    incoming.mkdir()
    blobs = ["x" * 300_000] * 12 + ["y" * 2_000_000] + ["z"] * 7
    pq.write_table(pa.table({"id": np.arange(20), "key": np.arange(20) * 90, "blob": blobs}), incoming / "1.parquet")
    rows = spark.readStream.schema("id BIGINT, key BIGINT, blob STRING").parquet(str(incoming))
    joined = ss.enrich(
        rows, master, on="key", memory="8MB", room=tmp_path / "room", max_wait="1 hour", dead_letters=letters
    )
    query = started(joined, tmp_path, availableNow=True)
    query.awaitTermination(120)
    assert 0 < ss.progress(query)[0].enrichments[0].waiting <= 19, "as many as the memory has room for"
    assert ss.progress(query)[0].enrichments[0].refused == 1
    assert left(spark, tmp_path) == [number for number in range(20) if number != 12]
    (file,) = letters.rglob("*.parquet")
    assert pq.read_table(file)["id"].to_pylist() == [12]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_wait": "1 second"}, "need a place: give `room`"),
        ({"room": "r"}, "How long may rows wait"),
        ({"room": "r", "max_wait": "soon"}, "not a duration"),
        ({"room": "r", "max_wait": 1, "order": "input"}, "overtaken"),
        ({"room": "r", "max_wait": 1, "partitioning": "none"}, "number of slots"),
        ({"room": "postgresql://h/d?table=t&key=k", "max_wait": 1}, "room cannot be at"),
        ({"unmatched": "park"}, "Parked rows need a place"),
        ({"unmatched": "dead_letters"}, "Unmatched rows need a place"),
        ({"unmatched": "keep"}, "set how to 'left'"),
        ({"unmatched": "drop", "how": "left"}, "set how to 'inner'"),
        ({"unmatched": "fail", "how": "anti"}, "can only keep unmatched rows"),
        ({"unmatched": "forget"}, "choose keep, drop, fail, park or dead_letters"),
    ],
)
def test_mistakes_about_rooms_show_when_the_query_is_planned(
    spark: SparkSession, tmp_path: Path, master: ss.MasterTable, settings: dict[str, Any], sentence: str
) -> None:
    if settings.get("room") == "r":
        settings = {**settings, "room": tmp_path / "r"}
    with pytest.raises(InvalidSettingError, match=sentence):
        ss.enrich(stream(spark, tmp_path / "in"), master, on="key", **settings)


def test_a_batch_and_a_watermark_cannot_have_a_room(
    spark: SparkSession, tmp_path: Path, master: ss.MasterTable
) -> None:
    with pytest.raises(InvalidSettingError, match="Only rows of a stream"):
        ss.enrich(spark.range(3).toDF("key"), master, on="key", room=tmp_path / "r", max_wait=1)
    late = stream(spark, tmp_path / "in").withColumn("at", F.current_timestamp()).withWatermark("at", "1 minute")
    with pytest.raises(InvalidSettingError, match="watermark on 'at'"):
        ss.enrich(late, master, on="key", room=tmp_path / "r", max_wait=1)


def test_unmatched_rows_fail_or_go_to_the_dead_letters_without_a_room(
    spark: SparkSession, tmp_path: Path, master: ss.MasterTable
) -> None:
    rows = spark.createDataFrame([(1, 5), (2, KEYS + 5), (3, None)], "id BIGINT, key BIGINT").coalesce(1)
    letters = tmp_path / "letters"
    kept = ss.enrich(rows, master, on="key", how="left", unmatched="dead_letters", dead_letters=letters, matched="hit")
    assert sorted((row.id, row.price, row.hit) for row in kept.collect()) == [(1, 2.5, True), (3, None, False)]
    (file,) = letters.rglob("*.parquet")
    dead = pq.read_table(file)
    assert dead["id"].to_pylist() == [2]
    assert dead.schema.names == ["id", "key", "first_arrival", "tries", "reason_refused"]
    with pytest.raises(Exception, match=f"no match in the master table master, among them one with key {KEYS + 5}"):
        ss.enrich(rows, master, on="key", unmatched="fail").collect()
    inner = ss.enrich(rows.where("id < 2"), master, on="key", unmatched="fail")
    assert [tuple(row) for row in inner.collect()] == [(1, 5, 2.5)]


def test_keys_of_several_columns_with_many_matches_and_nulls_wait_and_leave_to_a_function(
    spark: SparkSession, tmp_path: Path
) -> None:
    shops, items = [f"shop {number}" for number in range(40)], list(range(10))
    theirs = [(shop, item, copy) for shop in shops for item in items for copy in range(3)]
    table = pa.table([pa.array(column) for column in zip(*theirs, strict=True)], names=["shop", "item", "copy"])
    many = ss.MasterTable.build(table, tmp_path / "many", key=["shop", "item"], on_duplicate="all", page_bytes=1024)
    ours = [(row, None if row % 17 == 0 else f"shop {row % 45}", row % 10) for row in range(300)]
    incoming = tmp_path / "in"
    incoming.mkdir()
    pq.write_table(
        pa.table([pa.array(c) for c in zip(*ours, strict=True)], names=["id", "shop", "item"]), incoming / "1"
    )
    rows = spark.readStream.schema("id BIGINT, shop STRING, item BIGINT").parquet(str(incoming))
    left: list[tuple[Any, ...]] = []
    out = ss.enrich(
        rows, many, on=["shop", "item"], how="left", memory="8MB", room=tmp_path / "room", max_wait="1 hour"
    )

    def run() -> None:
        writer = out.writeStream.option("checkpointLocation", str(tmp_path / "state"))
        query = writer.foreachBatch(lambda batch, _: left.extend(map(tuple, batch.collect())))
        query.trigger(availableNow=True).start().awaitTermination(120)

    run()
    copies = [range(3) if shop in shops else [None] for _, shop, _ in ours]
    wanted = [(*row, copy) for row, found in zip(ours, copies, strict=True) for copy in found]
    assert sorted(left, key=str) == sorted(wanted, key=str)
    run()
    assert len(left) == len(wanted), "nothing has arrived, and nothing waits"
    shutil.rmtree(tmp_path / "room")
    with pytest.raises(StreamingQueryException, match="has lost files, with rows that the query needs"):
        run()
    shutil.rmtree(tmp_path / "state")
    run()
    assert len(left) == 2 * len(wanted), "a new room and a new checkpoint begin anew"
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(StreamingQueryException, match="a room and a checkpoint go together"):
        run()
