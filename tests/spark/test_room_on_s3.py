"""A room in an object store: the same tasks, the same promises."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from room_driver import Query, clock, master_rows, sales

import semistream as ss
from semistream.master_table import MasterTable
from semistream.spark.room.room import RoomError
from servers.s3 import S3Server

__all__ = ["clock"]
KEYS = 1_000


def test_rows_wait_in_an_object_store_and_leave_once(
    s3: S3Server, tmp_path: Path, clock: Callable[[Query], Query]
) -> None:
    table = MasterTable.build(master_rows(np.arange(KEYS), 1), tmp_path / "master", key="key", page_bytes=1024)
    query = clock(Query(table.path, s3.address(), max_wait=3.0, unmatched="park"))
    for batch in range(5):
        query.run(sales(100 * batch, 100, 2 * KEYS, batch), faults=random.Random(batch))
    table.merge(master_rows(np.arange(KEYS, 2 * KEYS), 2))
    query.now += 60.0
    query.run(sales(500, 0, KEYS, 0))
    left = sorted(row for output in query.out for row in output["o0"].to_pylist())
    assert left == list(range(500))
    with pytest.raises(RoomError, match="belongs to the query"):
        query.reader()._room.claim("another")


def test_a_query_of_spark_has_its_room_in_an_object_store(
    spark: SparkSession, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "environment", {**spark.sparkContext.environment, **s3.settings})
    table = MasterTable.build(master_rows(np.arange(KEYS), 1), tmp_path / "master", key="key", page_bytes=1024)
    incoming, room = tmp_path / "in", s3.address("room")

    def run(first: int) -> int:
        incoming.mkdir(exist_ok=True)
        pq.write_table(sales(first, 300, KEYS + 200, first), incoming / f"{first}.parquet")
        rows = spark.readStream.schema("id BIGINT, key BIGINT").parquet(str(incoming))
        joined = ss.enrich(
            *(rows, table),
            on="key",
            memory="8MB",
            room=room,
            max_wait="1 hour",
            unmatched="park",
            dead_letters=tmp_path / "letters",
            name="sales",
        )
        writer = joined.writeStream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        query = writer.start(str(tmp_path / "out"), format="parquet")
        assert query.awaitTermination(120)
        return max(batch.enrichments[0].parked for batch in ss.progress(query) if batch.enrichments)

    assert run(0) > 0
    table.merge(master_rows(np.arange(KEYS, KEYS + 200), 2))
    run(300)
    left = spark.read.schema("id BIGINT").parquet(str(tmp_path / "out")).collect()
    assert sorted(row.id for row in left) == list(range(600))
