"""Rows are looked up while their version is being pinned: none leaves before that is certain, and none with another."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from enrich_tasks import enrich_task, handed_over, new_worker, run_task
from watched_pins import asked_for_versions, in_pin

from semistream.core.errors import SemistreamError, StoreUnavailableError
from semistream.master_table import MasterTable
from semistream.spark import pinning
from semistream.spark.pinning import Pin
from semistream.spark.task import EnrichTask
from semistream.store.address import Address
from semistream.store.paged.table import PagedTable
from semistream.store.places import object_holds, object_store
from semistream.store.tables import table_at
from servers.s3 import S3Server

SALES = pa.table({"key": [1, 7, 2, 900, 3], "day": ["a", "b", "c", "d", "e"]})


def rows(value: int) -> pa.Table:
    return pa.table({"key": range(500), "value": [value] * 500})


@pytest.fixture
def master(s3: S3Server) -> MasterTable:
    return MasterTable.build(rows(1), s3.address(), "key")


@pytest.fixture
def task(master: MasterTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnrichTask:
    """Return a task of batch 1 in a worker that has joined batch 0 with the first version."""
    new_worker(monkeypatch)
    local = MasterTable.build(rows(1), tmp_path / "local", "key")
    made = enrich_task(local.path, SALES.schema, on="key", pin=Pin(owner="query", batch=0), memory_bytes=8_000_000)
    made = replace(made, table=Address.of(master.address), dead_letters=tmp_path / "dead", hot_keys=8)
    assert values(made) == [1, 1, 1, None, 1]
    return replace(made, pin=Pin(owner="query", batch=1))


def values(task: EnrichTask) -> list[int | None]:
    output, _ = run_task(task, handed_over(SALES))
    found: list[int | None] = output[output.schema.names[-1]].to_pylist()
    return found


def test_rows_are_looked_up_before_the_version_is_certain_and_leave_after_it(
    task: EnrichTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, certain, left = asked_for_versions(monkeypatch), threading.Event(), threading.Event()

    def wait() -> None:
        assert asked.wait(20), "the first rows are ready, and somebody wants to know the version"
        assert not left.wait(0.1), "nothing has left"
        certain.set()

    in_pin(monkeypatch, lambda: None, wait)
    for _ in task(iter(handed_over(SALES))):
        assert certain.is_set()
        left.set()
    assert left.is_set()


def test_rows_of_a_version_that_was_replaced_meanwhile_do_not_leave(task: EnrichTask, master: MasterTable) -> None:
    master.merge(rows(2))
    output, counters = run_task(task, handed_over(SALES))
    assert output[output.schema.names[-1]].to_pylist() == [2, 2, 2, None, 2]
    assert (counters["version"], counters["tuples_in"], counters["rows_out"]) == (2, 5, 5)
    assert sum(count for _, count in counters["unmatched_keys"]) == 1, "what was done in vain does not count"
    assert sum(count for _, count in counters["hot_keys"]) == 5
    assert values(task) == [2, 2, 2, None, 2], "a replay sees the same"
    assert values(replace(task, pin=Pin(owner="query", batch=0))) == [1, 1, 1, None, 1]


def test_all_input_comes_again_if_the_version_is_another_one(
    task: EnrichTask, master: MasterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinning, "_REMEMBERED_BYTES", 1000)
    master.merge(rows(2))
    many = pa.table({"key": [number % 700 for number in range(5000)], "day": ["x"] * 5000})
    inner = task
    for turn in (2, 3):
        output, counters = run_task(inner, handed_over(many, 50))
        assert output["o0"].to_pylist() == many["key"].to_pylist()
        expected = [turn if key < 500 else None for key in many["key"].to_pylist()]
        assert output[output.schema.names[-1]].to_pylist() == expected
        assert counters["tuples_in"] == 5000
        master.merge(rows(3))
        inner = replace(inner, pin=Pin(owner="query", batch=2))


def test_dead_letters_of_what_was_done_in_vain_are_not_kept(
    master: MasterTable, task: EnrichTask, tmp_path: Path
) -> None:
    fat = pa.table({"key": [7], "value": [9]})
    flagged = replace(task, flag_at=2, unmatched="drop")
    master.merge(fat)
    list(flagged(iter(handed_over(SALES))))
    (file,) = (tmp_path / "dead").rglob("*.parquet")
    assert pq.read_table(file).num_rows == 1, "key 900, once"


def test_an_error_of_the_pin_is_that_of_the_task_and_the_worker_goes_on(
    task: EnrichTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise StoreUnavailableError("nobody answers")

    with monkeypatch.context() as patched:
        in_pin(patched, fail, lambda: None)
        with pytest.raises(StoreUnavailableError, match="nobody answers"):
            run_task(task, handed_over(SALES))
    assert values(task) == [1, 1, 1, None, 1]


def test_attempts_that_race_see_one_version(task: EnrichTask, master: MasterTable) -> None:
    start, seen = threading.Barrier(6), []

    def race(table: PagedTable) -> None:
        start.wait()
        seen.append(table.pin("query", 5))

    def merge() -> None:
        start.wait()
        master.merge(rows(2))

    tables = [table_at(task.table) for _ in range(5)]
    threads = [threading.Thread(target=race, args=(table,)) for table in tables]
    threads.append(threading.Thread(target=merge))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 5
    assert len(set(seen)) == 1
    assert table_at(task.table).pin("query", 5) == seen[0]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_vacuum_between_the_look_for_the_newest_version_and_its_pin_does_not_remove_it(
    master: MasterTable, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    table, real, vacuums = table_at(master.address), object_store.ObjectStore.put_or_found, []

    def put_or_found(place: object_store.ObjectStore, name: str, content: bytes) -> bytes | None:
        if not vacuums:
            master.merge(rows(2))
            vacuums.append(threading.Thread(target=lambda: master.vacuum(keep_for=0)))
            vacuums[0].start()
            if is_late:
                vacuums[0].join()
            else:
                while not place.names("condemned/manifest-00000001.json"):
                    pass
        return real(place, name, content)

    assert table.current_version() == 1
    monkeypatch.setattr(object_holds, "NEWEST_SECONDS", 0.0 if is_late else 30.0)
    monkeypatch.setattr(object_store, "HOLDERS_SECONDS", 1.0 if is_late else 3.0)
    with monkeypatch.context() as patched:
        patched.setattr(object_store.ObjectStore, "put_or_found", put_or_found)
        pinned = table.pin("late" if is_late else "soon", 0)
    vacuums[0].join()
    with table.open(pinned) as store:
        assert store.row_count == 500
    if is_late:
        with pytest.raises(SemistreamError, match="has no version 1"):
            table.open(1)
    else:
        assert pinned == 1
