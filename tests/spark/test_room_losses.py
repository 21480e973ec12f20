"""Rooms that somebody else has changed: a lost or damaged file stops the query, and never loses rows in silence."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from room_driver import STREAM, Query, clock, master_rows, sales

from semistream.core.errors import CorruptTableError
from semistream.master_table import MasterTable
from semistream.spark.room.names import OFFSET_FIELDS
from semistream.spark.room.room import Room, RoomError
from semistream.spark.room.room_file import HEAD_BYTES, RoomHead
from semistream.spark.room.source import Offset, RoomReader
from semistream.store.address import Address

__all__ = ["clock"]
KEYS = 1_000
Follow = Callable[[Query], Query]


@pytest.fixture
def table(tmp_path: Path) -> MasterTable:
    return MasterTable.build(master_rows(np.arange(KEYS), 1), tmp_path / "master", key="key", page_bytes=1024)


def parking(table: MasterTable, folder: Path) -> Query:
    return Query(table.path, folder / "room", unmatched="park", max_wait=0.0)


def files_of(query: Query, slot: int) -> list[Path]:
    return sorted((query.room / "rows").glob(f"*-{slot:05d}.room"))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_older_file_of_parked_rows_that_is_gone_is_noticed_after_a_restart(
    table: MasterTable, tmp_path: Path, clock: Follow, place: int
) -> None:
    query = clock(parking(table, tmp_path))
    for batch in range(4):
        query.run(sales(100 * batch, 100, 2 * KEYS, batch))
    files = files_of(query, 0)
    assert len(files) == 4
    files[place].unlink()
    with pytest.raises(RoomError, match="has lost files, with rows that the query needs"):
        query.run(sales(400, 50, KEYS, 9))


def test_the_only_file_of_parked_rows_that_is_gone_is_noticed_while_the_query_runs(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(parking(table, tmp_path))
    query.run(sales(0, 100, 2 * KEYS, 0))
    reader = query.reader()
    _, now = reader.read(query.offset)
    (gone,) = files_of(query, 1)
    gone.unlink()
    with pytest.raises(RoomError, match=f"has lost .*{gone.name}"):
        reader.read(now)


def test_a_file_of_waiting_rows_that_is_gone_is_noticed_where_its_rows_were_to_leave(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(Query(table.path, tmp_path / "room", max_wait=30.0))
    query.run(sales(0, 400, KEYS, 1))
    tickets, after = query.reader().read(query.offset)
    assert len(list(tickets)) == 2
    files_of(query, 0)[0].unlink()
    with pytest.raises(RoomError, match="has lost files"):
        query.reader().readBetweenOffsets(query.offset, after)


def test_rows_that_are_parked_are_not_forgotten_by_a_query_that_parks_none(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(parking(table, tmp_path))
    query.run(sales(0, 100, 2 * KEYS, 0))
    parked = sum(task["parked"] for task in query.statistics[-1])
    query.unmatched = None
    with pytest.raises(RoomError, match=f"^{parked} rows are parked in the room .* set unmatched='park' again"):
        query.run(sales(100, 50, KEYS, 9))
    query.unmatched, query.retry, query.dead_letters = "park", 0.0, tmp_path / "letters"
    query.now += 60.0
    query.run(sales(100, 0, KEYS, 9))
    query.unmatched = None
    query.run(sales(100, 50, KEYS, 9))
    assert sum(task["dead"] for task in query.statistics[-2]) == parked, "the way out that the error names"


def test_parked_rows_are_looked_for_in_a_table_that_was_removed_and_built_again(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    for version in (2, 3):
        table.merge(master_rows(np.arange(10), version))
    query = clock(parking(table, tmp_path))
    query.run(sales(0, 100, 2 * KEYS, 0))
    assert sum(task["parked"] for task in query.statistics[-1]) > 0
    shutil.rmtree(table.path)
    MasterTable.build(master_rows(np.arange(2 * KEYS), 9), table.path, key="key", page_bytes=1024)
    for _ in range(2):
        query.now += 60.0
        query.run(sales(100, 0, KEYS, 0))
    assert sorted(row for output in query.out for row in output["o0"].to_pylist()) == list(range(100))


def test_progress_knows_a_room_by_its_offsets() -> None:
    assert tuple(Offset().as_dict()) == OFFSET_FIELDS


def test_what_killed_tasks_have_left_goes_at_the_next_start(table: MasterTable, tmp_path: Path, clock: Follow) -> None:
    query = clock(parking(table, tmp_path))
    query.run(sales(0, 100, 2 * KEYS, 0))
    rows = query.room / "rows"
    for name in (".left", ".under-way"):
        (rows / name).write_bytes(b"half a file")
    os.utime(rows / ".left", (query.now - 7_200, query.now - 7_200))
    os.utime(rows / ".under-way", (query.now, query.now))
    room = Address.of(query.room)
    _, terms = Room.checked(room, ["key"], STREAM, query.slots)
    RoomReader(Room(room), Address.of(table.path), 1_000.0, lambda: query.now, terms=terms).read(query.offset)
    assert [path.name for path in rows.glob(".*")] == [".under-way"]


def test_whatever_byte_of_a_head_is_damaged_is_noticed() -> None:
    head = RoomHead("query", 3, 1, 5.0, 7, "identity", waiting=123, parked=4, parked_in_all=9).as_bytes()
    assert len(head) == HEAD_BYTES
    assert RoomHead.parsed(head, "file").waiting == 123
    for place in range(HEAD_BYTES):
        damaged = head[:place] + bytes([head[place] ^ 0x01]) + head[place + 1 :]
        with pytest.raises(CorruptTableError, match="is damaged"):
            RoomHead.parsed(damaged, "file")
