"""A star begins before the versions of its far tables are certain: what leaves is joined with the right ones, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from enrich_tasks import handed_over, new_worker
from pyspark.sql.types import LongType, StructField, StructType
from star_tasks import run_star, star_of
from watched_pins import asked_for_versions, in_pin

from semistream.core.errors import StoreUnavailableError
from semistream.master_table import MasterTable
from semistream.spark.dimension import Dimension
from semistream.spark.pinning import Pin
from semistream.spark.task import StarTask
from semistream.spark.unmatched_rows import UnmatchedRowError
from semistream.spark.worker import Worker
from servers.s3 import S3Server

SCHEMA = StructType([StructField(name, LongType()) for name in ("n", "customer", "sku")])
ROWS = pa.table(
    {
        "n": range(2000),
        "customer": [n * 7 % 600 for n in range(2000)],
        "sku": [n * 11 % 450 for n in range(2000)],
    }
)
KEYS = {"customer": range(500), "sku": range(10, 400)}
"""The keys of both tables; those of the stream go beyond."""


def master_rows(key: str, version: int) -> pa.Table:
    return pa.table({key: list(KEYS[key]), "value": [1000 * version + number for number in KEYS[key]]})


def expected(versions: dict[str, int]) -> list[tuple[int, int | None, int]]:
    """Return what a left join with customers and an inner join with products put out."""
    return [
        (
            row["n"],
            1000 * versions["customer"] + row["customer"] if row["customer"] in KEYS["customer"] else None,
            1000 * versions["sku"] + row["sku"],
        )
        for row in ROWS.to_pylist()
        if row["sku"] in KEYS["sku"]
    ]


def left(output: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(output[f"o{place}"].to_pylist() for place in (0, 3, 4)), strict=True))


def in_batch(star: StarTask, batch: int) -> StarTask:
    return StarTask(tuple(replace(task, pin=Pin(owner="query", batch=batch)) for task in star.dimensions))


@pytest.fixture
def masters(s3: S3Server) -> dict[str, MasterTable]:
    return {key: MasterTable.build(master_rows(key, 1), s3.address(key), key) for key in KEYS}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Return a worker that has just started."""
    return new_worker(monkeypatch)


@pytest.fixture
def star(masters: dict[str, MasterTable], tmp_path: Path, worker: Worker) -> StarTask:
    """Return a star in a worker that has joined a batch with the first versions."""
    dimensions = [
        Dimension(masters["customer"].address, on="customer", how="left"),
        Dimension(masters["sku"].address, on="sku", suffix="_of_sku", unmatched="dead_letters"),
    ]
    made = star_of(SCHEMA, dimensions, dead_letters=tmp_path / "letters")
    made = StarTask(tuple(replace(task, hot_keys=8) for task in made.dimensions))
    output, _ = run_star(in_batch(made, 0), handed_over(ROWS.slice(0, 500)))
    assert output.num_rows
    assert len(worker._joins) == 2
    return made


@pytest.mark.parametrize("reads_together", [False, True])
@pytest.mark.parametrize("moved", [["customer"], ["sku"], ["customer", "sku"], []])
def test_rows_leave_once_and_with_the_pinned_versions_if_a_table_has_moved_on_meanwhile(
    star: StarTask,
    masters: dict[str, MasterTable],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    moved: list[str],
    reads_together: bool,
) -> None:
    if reads_together:
        monkeypatch.setattr("semistream.spark.shared_reads._waits", lambda _: True)
        monkeypatch.setattr("semistream.spark.shared_reads._ALONE_EVERY", 1 << 40)
    for key in moved:
        masters[key].merge(master_rows(key, 2))
    versions = {key: 2 if key in moved else 1 for key in KEYS}
    before = letters(tmp_path)
    with monkeypatch.context() as patched:
        asked = asked_for_versions(patched)
        in_pin(patched, lambda: asked.wait(20) or pytest.fail("nothing was looked up early"), lambda: None)
        output, told = run_star(in_batch(star, 1), handed_over(ROWS))
    assert left(output) == expected(versions)
    customers, products = (told[task.name] for task in star.dimensions)
    assert [one["version"] for one in (customers, products)] == list(versions.values())
    assert [one["tuples_in"] for one in (customers, products)] == [2000, 2000]
    assert [one["rows_out"] for one in (customers, products)] == [2000, output.num_rows]
    assert customers["absent"] + products["absent"] == sum(
        row[key] not in KEYS[key] for row in ROWS.to_pylist() for key in KEYS
    )
    assert customers["hot_keys"][0][1] <= 4, "a key of the stream counts once"
    assert [name for name in letters(tmp_path) if name not in before] == ["000000001-00000-unmatched.parquet"]
    assert letters(tmp_path)["000000001-00000-unmatched.parquet"] == 2000 - output.num_rows
    again, _ = run_star(in_batch(star, 1), handed_over(ROWS))
    assert again.equals(output), "a replay sees the same"
    old, _ = run_star(in_batch(star, 0), handed_over(ROWS))
    assert left(old) == expected({"customer": 1, "sku": 1})


def letters(folder: Path) -> dict[str, int]:
    """Return how many rows the files of dead letters have; one that is given up would be an error."""
    return {file.name: pq.read_table(file).num_rows for file in folder.rglob("*") if file.is_file()}


def test_nothing_leaves_before_all_versions_are_certain(star: StarTask, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, left_early = asked_for_versions(monkeypatch), Event()
    turns = Barrier(2)
    certain: list[int] = []

    def wait() -> None:
        assert asked.wait(20)
        if turns.wait(20):  # one of the two pins comes later
            assert not left_early.wait(0.2)
        certain.append(1)

    in_pin(monkeypatch, lambda: None, wait)
    for _ in in_batch(star, 1)(handed_over(ROWS)):
        left_early.set()
        assert len(certain) == 2
    assert left_early.is_set()


@pytest.mark.parametrize("is_fixed_by_now", [True, False])
def test_a_row_without_a_match_stops_the_task_only_if_the_pinned_version_lacks_its_key(
    star: StarTask, masters: dict[str, MasterTable], is_fixed_by_now: bool
) -> None:
    strict = StarTask((star.dimensions[0], replace(star.dimensions[1], unmatched="fail")))
    row = pa.table({"n": [1], "customer": [1], "sku": [900 if is_fixed_by_now else 20]})
    if is_fixed_by_now:
        masters["sku"].merge(pa.table({"sku": [900], "value": [5]}))
        output, _ = run_star(in_batch(strict, 1), handed_over(row))
        assert left(output) == [(1, 1001, 5)]
    else:
        masters["sku"].merge(deletes=pa.table({"sku": [20]}))
        with pytest.raises(UnmatchedRowError, match="among them one with key 20"):
            run_star(in_batch(strict, 1), handed_over(row))


def test_pins_are_made_side_by_side_and_what_is_not_held_is_not_looked_up_early(
    star: StarTask, masters: dict[str, MasterTable], worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    masters["customer"].merge(master_rows("customer", 2))
    worker.drop(next(held for held in worker._joins.values() if "sku" in held.kind))
    both = Barrier(2)
    in_pin(monkeypatch, lambda: both.wait(20), lambda: None)
    asked: list[object] = []
    real: Callable[..., Any] = Worker.joins_as_before
    monkeypatch.setattr(Worker, "joins_as_before", lambda *given: asked.append(real(*given)) or asked[-1])
    output, _ = run_star(in_batch(star, 1), handed_over(ROWS))
    assert left(output) == expected({"customer": 2, "sku": 1})
    assert asked == [None]


def test_an_error_of_one_pin_is_that_of_the_task_and_the_worker_goes_on(
    star: StarTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins: list[int] = []

    def fail_once() -> None:
        pins.append(1)
        if len(pins) == 2:
            raise StoreUnavailableError("nobody answers")

    with monkeypatch.context() as patched:
        in_pin(patched, lambda: None, fail_once)
        with pytest.raises(StoreUnavailableError, match="nobody answers"):
            run_star(in_batch(star, 1), handed_over(ROWS))
    output, _ = run_star(in_batch(star, 1), handed_over(ROWS))
    assert left(output) == expected({"customer": 1, "sku": 1})


def test_a_row_that_only_the_pinned_version_knows_leaves_although_nothing_was_found_early(
    masters: dict[str, MasterTable], worker: Worker
) -> None:
    dimensions = [Dimension(masters["customer"].address, on="customer"), Dimension(masters["sku"].address, on="sku")]
    star = star_of(SCHEMA, [dimensions[0], replace(dimensions[1], suffix="_of_sku")])
    run_star(in_batch(star, 0), handed_over(ROWS.slice(0, 500)))
    assert len(worker._joins) == 2
    masters["sku"].merge(pa.table({"sku": [900], "value": [5]}))
    row = pa.table({"n": [1], "customer": [1], "sku": [900]})
    assert run_star(in_batch(star, 0), handed_over(row))[0].num_rows == 0
    output, told = run_star(in_batch(star, 1), handed_over(row))
    assert left(output) == [(1, 1001, 5)]
    assert [one["version"] for one in told.values()] == [1, 2]
