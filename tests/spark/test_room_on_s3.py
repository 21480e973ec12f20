"""A room in an object store: the same tasks, the same promises."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from room_driver import Query, clock, master_rows, sales

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
