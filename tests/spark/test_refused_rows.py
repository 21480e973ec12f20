"""Rows that are too large for the memory of a task go to a file with the reason, or stop the task by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from enrich_tasks import enrich_task, handed_over, new_worker, run_task

from semistream.core.errors import RowTooLargeError
from semistream.master_table import MasterTable
from semistream.spark.held_join import Order
from semistream.spark.pinning import Pin

ORDERS: list[Order] = ["input", "any"]


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    new_worker(monkeypatch)


def fat_master(folder: Path) -> Path:
    texts = ["x" * (900_000 if key == 7 else 20) for key in range(9000)]
    MasterTable.build(pa.table({"key": range(9000), "text": texts}), folder / "master", "key")
    return folder / "master"


SALES = pa.table({"key": [1, 7, 2, 7, 9300], "day": ["a", "b", "c", "d", "e"]})


@pytest.mark.parametrize("order", ORDERS)
def test_a_row_whose_master_row_is_too_large_goes_to_the_dead_letters(tmp_path: Path, order: Order) -> None:
    pin = Pin(owner="query", batch=3)
    task = enrich_task(
        fat_master(tmp_path), SALES.schema, on="key", order=order, pin=pin, dead_letters=tmp_path / "dead"
    )
    for _ in range(2):  # a replay replaces the file
        output, counters = run_task(task, handed_over(SALES))
        assert sorted(output["o1"].to_pylist()) == ["a", "c", "e"]
        assert (counters["refused"], counters["tuples_out"]) == (2, 5)
        (file,) = (tmp_path / "dead").rglob("*.parquet")
        assert file.relative_to(tmp_path / "dead").as_posix() == "query/000000003-00000.parquet"
        letters = pq.read_table(file)
        assert letters.schema.names == ["key", "day", "reason_refused"]
        assert letters["day"].to_pylist() == ["b", "d"]
        assert all("too large for the memory" in reason for reason in letters["reason_refused"].to_pylist())


@pytest.mark.parametrize("order", ORDERS)
def test_without_dead_letters_it_is_a_named_error(tmp_path: Path, order: Order) -> None:
    task = enrich_task(fat_master(tmp_path), SALES.schema, on="key", order=order)
    with pytest.raises(RowTooLargeError, match="give at least"):
        run_task(task, handed_over(SALES))
    output, _ = run_task(task, handed_over(SALES.filter(pa.array([True, False, True, False, True]))))
    assert output.num_rows == 3, "the worker goes on"


def test_a_task_that_refuses_nothing_leaves_no_file(tmp_path: Path) -> None:
    task = enrich_task(fat_master(tmp_path), SALES.schema, on="key", dead_letters=tmp_path / "dead")
    run_task(task, handed_over(SALES.slice(0, 1)))
    assert not (tmp_path / "dead").exists()


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    task = enrich_task(
        fat_master(tmp_path), SALES.schema, on="key", dead_letters=tmp_path / "dead", memory_bytes=4_000_000
    )

    def failing() -> object:
        yield from handed_over(SALES)
        raise OSError("the input broke")

    with pytest.raises(OSError, match="the input broke"):
        run_task(task, failing())  # type: ignore[arg-type]
    assert not [path for path in (tmp_path / "dead").rglob("*") if path.is_file()]
