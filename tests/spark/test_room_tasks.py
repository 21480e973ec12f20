"""Tasks of a query that has a room: whatever happens to their attempts, every row leaves exactly once."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from room_driver import QUERY, STREAM, Query, clock, master_rows, sales

from semistream.algorithms.registry import ALGORITHMS
from semistream.master_table import MasterTable
from semistream.spark.room.room import Room, RoomError
from semistream.spark.room.room_file import Kind
from semistream.spark.room.source import RoomReader
from semistream.store.address import Address

__all__ = ["clock"]
KEYS = 3_000
Follow = Callable[[Query], Query]


@pytest.fixture
def table(tmp_path: Path) -> MasterTable:
    return MasterTable.build(master_rows(np.arange(KEYS), 1), tmp_path / "master", key="key", page_bytes=1024)


def version_of(output: pa.Table) -> list[int]:
    return sorted(set(output["o2"].drop_null().to_pylist()))


def left_ids(query: Query) -> list[int]:
    return sorted(pa.concat_tables(query.out)["o0"].to_pylist())


def test_misses_wait_their_turn_and_leave_within_the_longest_wait(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(Query(table.path, tmp_path / "room", max_wait=5.0))
    first = query.run(sales(0, 500, KEYS, 1))
    assert first.num_rows == 0, "a new query has an empty cache, and nothing is due"
    for batch in range(1, 7):
        query.run(sales(500 * batch, 500, KEYS, batch))
    ids = left_ids(query)
    assert set(range(500)) <= set(ids), "what came five seconds ago has left"
    waiting = sum(task["waiting"] for task in query.statistics[-1])
    assert 0 < waiting < 6 * 500
    assert len(ids) + waiting == 7 * 500
    assert max(task["max_latency_seconds"] for tasks in query.statistics for task in tasks) <= 6.0


def test_rows_that_are_cached_leave_at_once_while_others_wait(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(Query(table.path, tmp_path / "room", max_wait=3.0))
    for batch in range(8):
        query.run(sales(500 * batch, 500, 40, batch))
    hits = sum(task["cache_hits"] for task in query.statistics[-1])
    assert hits == 500 == query.out[-1].num_rows + query.out[-2].num_rows


def test_a_silent_stream_drains(table: MasterTable, tmp_path: Path, clock: Follow) -> None:
    query = clock(Query(table.path, tmp_path / "room", max_wait=3600.0))
    query.run(sales(0, 700, KEYS, 1))
    query.run(sales(700, 0, KEYS, 1))
    assert left_ids(query) == list(range(700))
    tickets, end = query.reader().read(query.offset)
    assert not list(tickets)
    assert end == query.offset, "nothing more to do, so no more micro-batches"


def test_without_a_wait_a_room_is_emptied_and_stays_empty(table: MasterTable, tmp_path: Path, clock: Follow) -> None:
    query = clock(Query(table.path, tmp_path / "room", max_wait=3600.0))
    query.run(sales(0, 300, KEYS, 1))
    query.max_wait = 0.0
    query.run(sales(300, 300, KEYS, 2))
    assert left_ids(query) == list(range(600))
    assert [task["waiting"] for task in query.statistics[-1]] == [0, 0]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), wait=st.sampled_from([0.0, 2.0, 5.0]), how=st.sampled_from(["left", "inner"]))
def test_every_row_leaves_once_with_the_version_of_its_micro_batch(
    tmp_path_factory: pytest.TempPathFactory, clock: Follow, seed: int, wait: float, how: str
) -> None:
    folder = tmp_path_factory.mktemp("room")
    table = MasterTable.build(master_rows(np.arange(KEYS), 1), folder / "master", key="key", page_bytes=1024)
    query = clock(Query(table.path, folder / "room", max_wait=wait, how=how, slots=1 + seed % 3))
    faults = random.Random(seed)
    for batch in range(5):
        version = table.merge(master_rows(np.arange(KEYS), batch + 2)) if faults.random() < 0.5 else None
        left = query.run(sales(200 * batch, 200, KEYS + 200, seed + batch), faults=faults, share=0.5)
        if left.num_rows and version is not None:
            assert version_of(left) in ([batch + 2], [])
        assert len(version_of(left) if left.num_rows else []) <= 1
    query.run(sales(0, 0, KEYS, 0), faults=faults)
    query.run(sales(0, 0, KEYS, 0), faults=faults)
    rows = pa.concat_tables([sales(200 * batch, 200, KEYS + 200, seed + batch) for batch in range(5)])
    wanted = rows if how == "left" else rows.filter(pa.array(rows["key"].to_numpy() < KEYS))
    assert left_ids(query) == sorted(wanted["id"].to_pylist())
    assert sum(task["waiting"] for task in query.statistics[-1]) == 0


@pytest.mark.parametrize("algorithm", sorted(set(ALGORITHMS) - {"demandjoin", "oracle"}))
def test_every_algorithm_lets_each_row_leave_once(
    table: MasterTable, tmp_path: Path, clock: Follow, algorithm: str
) -> None:
    query = clock(Query(table.path, tmp_path / "room", max_wait=3.0, algorithm=algorithm))
    for batch in range(4):
        query.run(sales(300 * batch, 300, KEYS, batch), faults=random.Random(batch))
    query.run(sales(0, 0, KEYS, 0))
    assert left_ids(query) == list(range(1200))


@pytest.mark.parametrize(("how", "wanted"), [("semi", 0.5), ("anti", 0.5)])
def test_joins_that_only_filter_have_rooms_too(
    table: MasterTable, tmp_path: Path, clock: Follow, how: str, wanted: float
) -> None:
    query = clock(Query(table.path, tmp_path / "room", max_wait=3.0, how=how))
    rows = [sales(200 * batch, 200, 2 * KEYS, batch) for batch in range(3)]
    for part in rows:
        query.run(part, faults=random.Random(7))
    query.run(sales(0, 0, KEYS, 0))
    known = pa.concat_tables(rows).filter(pc.less(pa.concat_tables(rows)["key"], KEYS))["id"].to_pylist()
    left = left_ids(query)
    assert left == sorted(known if how == "semi" else set(range(600)) - set(known))
    assert abs(len(left) / 600 - wanted) < 0.1


def test_of_two_attempts_at_once_one_loses_and_the_next_follows_the_winner(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(Query(table.path, tmp_path / "room", slots=1, max_wait=100.0))
    rows = query.arriving(sales(0, 400, KEYS, 5), [], 0)
    slow, fast = (query.task(0)(iter(rows.to_batches())) for _ in range(2))
    won = list(fast)
    query.now += 500.0  # the loser would let all rows leave
    with pytest.raises(RoomError, match="Another attempt"):
        _run_as_if_the_file_had_come_later(slow)
    again = list(query.task(0)(iter(rows.to_batches())))
    assert sum(batch.num_rows for batch in won) == sum(batch.num_rows for batch in again)
    assert Room(Address.of(tmp_path / "room")).head(0, 0).waiting == 400  # type: ignore[union-attr]


def _run_as_if_the_file_had_come_later(attempt: Iterator[pa.RecordBatch]) -> None:
    real = Room.head
    hidden = iter([True])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Room, "head", lambda room, *at: None if next(hidden, False) else real(room, *at))
        list(attempt)


def test_rows_that_an_upstream_does_not_replay_are_a_named_error(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(Query(table.path, tmp_path / "room", slots=1, max_wait=100.0))
    query.attempt(query.arriving(sales(0, 50, KEYS, 5), [], 0))
    with pytest.raises(RoomError, match=r"50 rows that micro-batch 0 kept back are not among its rows now.*uuid"):
        query.attempt(query.arriving(sales(1000, 50, KEYS, 6), [], 0))


def test_a_room_belongs_to_one_query(table: MasterTable, tmp_path: Path, clock: Follow) -> None:
    query = clock(Query(table.path, tmp_path / "room", slots=1))
    query.run(sales(0, 10, KEYS, 1))
    with pytest.raises(RoomError, match=f"belongs to the query {QUERY}, and this is another"):
        Room(Address.of(tmp_path / "room")).claim("another")


def test_rows_of_several_slots_in_one_task_are_refused(table: MasterTable, tmp_path: Path, clock: Follow) -> None:
    query = clock(Query(table.path, tmp_path / "room", slots=2))
    mixed = pa.concat_tables([query.arriving(sales(0, 20, KEYS, 1), [], slot) for slot in (0, 1)])
    with pytest.raises(RoomError, match="several slots"):
        query.attempt(mixed.combine_chunks())


# Parked rows.


def parking(table: MasterTable, tmp_path: Path, **settings: object) -> Query:
    return Query(table.path, tmp_path / "room", unmatched="park", max_wait=0.0, **settings)  # type: ignore[arg-type]


def test_parked_rows_leave_once_when_a_version_has_their_key(table: MasterTable, tmp_path: Path, clock: Follow) -> None:
    query = clock(parking(table, tmp_path))
    query.run(sales(0, 400, KEYS + 3_000, 1))
    parked = sum(task["parked"] for task in query.statistics[-1])
    assert 100 < parked < 300
    query.run(sales(400, 50, KEYS, 2))
    assert sum(task["parked"] for task in query.statistics[-1]) == parked
    assert sum(task["released"] for task in query.statistics[-1]) == 0
    table.merge(master_rows(np.arange(KEYS, KEYS + 1_500), 2))
    query.now += 60.0
    query.run(sales(450, 0, KEYS, 3))
    released = sum(task["released"] for task in query.statistics[-1])
    assert 0 < released < parked
    table.merge(master_rows(np.arange(KEYS + 1_500, KEYS + 3_000), 3))
    query.now += 60.0
    query.run(sales(450, 0, KEYS, 3), faults=random.Random(4), share=0.8)
    assert left_ids(query) == list(range(450))
    assert [task["parked"] for task in query.statistics[-1]] == [0, 0]


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), wait=st.sampled_from([0.0, 3.0]))
def test_parked_rows_leave_once_whatever_is_killed_while_the_master_table_changes(
    tmp_path_factory: pytest.TempPathFactory, clock: Follow, seed: int, wait: float
) -> None:
    folder, faults, known = tmp_path_factory.mktemp("room"), random.Random(seed), KEYS
    table = MasterTable.build(master_rows(np.arange(KEYS), 1), folder / "master", key="key", page_bytes=1024)
    query = clock(Query(table.path, folder / "room", unmatched="park", max_wait=wait, slots=1 + seed % 3))
    for batch in range(6):
        if faults.random() < 0.7:
            table.merge(master_rows(np.arange(known, known + 150), batch + 2))
            known += 150
        left = query.run(sales(150 * batch, 150, KEYS + 900, seed + batch), faults=faults, share=0.5)
        query.now += 30.0
        keys = left["o1"].to_pylist() if left.num_rows else []
        assert max(keys, default=0) < known, "only rows that the pinned version has leave"
    table.merge(master_rows(np.arange(KEYS, KEYS + 900), 99))
    for _ in range(3):
        query.now += 60.0
        query.run(sales(0, 0, KEYS, 0), faults=faults, share=0.5)
    assert left_ids(query) == list(range(900))


@pytest.mark.parametrize("unmatched", [None, "park"])
def test_a_room_that_is_gone_is_told_where_the_checkpoint_knows_it(
    table: MasterTable, tmp_path: Path, clock: Follow, unmatched: str | None
) -> None:
    query = clock(Query(table.path, tmp_path / "room", unmatched=unmatched, max_wait=0.0 if unmatched else 50.0))
    query.run(sales(0, 400, KEYS + 3_000, 1))
    before = query.offset
    tickets, after = query.reader().read(before)
    shutil.rmtree(tmp_path / "room")
    place = Address.of(tmp_path / "room")
    _, terms = Room.checked(place, ["key"], STREAM, 2)
    restarted = RoomReader(Room(place), None, None, terms=terms)
    with pytest.raises(RoomError, match="from the same backup, or begin with a new room"):
        restarted.read(before)
    assert not (tmp_path / "room").exists(), "nothing is made in its place"
    if list(tickets):
        with pytest.raises(RoomError, match="has lost files"):
            query.reader().readBetweenOffsets(before, after)
    new_query = RoomReader(Room(place), None, None, terms=terms)
    new_query.read(new_query.initialOffset())
    assert Room(place).is_made()


def test_parked_rows_are_not_read_while_the_master_table_does_not_change(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(parking(table, tmp_path))
    query.run(sales(0, 400, KEYS + 3_000, 1))
    query.now += 3600.0 / 4
    tickets, end = query.reader().read(query.offset)
    assert not list(tickets)
    assert end == query.offset


def test_rows_whose_keys_a_merge_did_not_touch_are_not_looked_for(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    query = clock(parking(table, tmp_path))
    query.run(sales(0, 400, KEYS + 3_000, 1))
    parked = sum(task["parked"] for task in query.statistics[-1])
    table.merge(master_rows(np.arange(3), 2))
    query.now += 60.0
    query.run(sales(400, 0, KEYS, 3))
    assert sum(task["parked"] for task in query.statistics[-1]) == parked
    assert sum(task["tuples_in"] for task in query.statistics[-1]) < parked


def test_after_its_time_a_parked_row_is_a_dead_letter_with_its_story(
    table: MasterTable, tmp_path: Path, clock: Follow
) -> None:
    letters = tmp_path / "letters"
    query = clock(parking(table, tmp_path, retry=100.0, dead_letters=letters))
    query.run(sales(0, 400, KEYS + 3_000, 1))
    parked = sum(task["parked"] for task in query.statistics[-1])
    query.now += 101.0
    query.run(sales(400, 0, KEYS, 3), faults=random.Random(1), share=0.9)
    assert sum(task["dead"] for task in query.statistics[-1]) == parked
    dead = pa.concat_tables([pq.read_table(file) for file in sorted(letters.rglob("*.parquet"))])
    assert dead.schema.names == ["id", "key", "first_arrival", "tries", "reason_refused"]
    assert dead.num_rows == parked
    assert set(dead["tries"].to_pylist()) == {1}
    assert sorted(dead["id"].to_pylist() + left_ids(query)) == list(range(400))


def test_null_keys_never_park(table: MasterTable, tmp_path: Path, clock: Follow) -> None:
    query = clock(parking(table, tmp_path, slots=1))
    rows = pa.table([pa.array([1, 2]), pa.array([None, 5], pa.int64())], schema=sales(0, 0, 1, 1).schema)
    of_rows = pa.table(
        [*rows.columns, pa.array([0, 0], pa.int32()), pa.nulls(2, pa.string())],
        schema=query.arriving(sales(0, 0, 1, 1), [], 0).schema,
    )
    left = pa.Table.from_batches(query.attempt(of_rows))
    assert sorted(left["o0"].drop_null().to_pylist()) == [1, 2]


def test_many_files_of_parked_rows_become_one(
    table: MasterTable, tmp_path: Path, clock: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semistream.spark.room.source._MAX_PARKED_FILES", 3)
    query = clock(parking(table, tmp_path, slots=1))
    for batch in range(12):
        query.run(sales(20 * batch, 20, 2 * KEYS, batch))
    room = Room(Address.of(tmp_path / "room"))
    with_parked = [
        head for head in room.heads((b, s) for b, slots in room.files().items() for s in slots).values() if head.parked
    ]
    assert len(with_parked) <= 6
    kept = sum(rows.num_rows for head in with_parked for rows in room.rows(head.batch, 0, Kind.PARKED))
    assert kept == query.statistics[-1][0]["parked"] == 240 - len(left_ids(query))
