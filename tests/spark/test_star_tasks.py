"""A star in one operator puts out what its dimensions put out one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Lock, current_thread, main_thread
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from enrich_tasks import handed_over, new_worker
from pyspark.sql.types import LongType, StringType, StructField, StructType
from star_tasks import chain_of, run_chain, run_star, star_of

from semistream.core.errors import BudgetTooSmallError, RowTooLargeError
from semistream.master_table import MasterTable
from semistream.spark.dimension import Dimension
from semistream.spark.unmatched_rows import UnmatchedRowError
from semistream.spark.worker import Worker
from semistream.store.found_rows import FoundRows
from semistream.store.paged.read.row_reader import FileRowReader

SCHEMA = StructType(
    [
        StructField("n", LongType()),
        StructField("customer", LongType()),
        StructField("store", StringType()),
        StructField("sku", LongType()),
    ]
)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Return a worker that has just started."""
    return new_worker(monkeypatch)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return tables by name: one of integers, one with a key of two columns, one with many rows a key, one of texts."""
    folder = tmp_path_factory.mktemp("star")
    customers = np.arange(0, 3000, 2)
    regions = [f"region {number % 7}" for number in customers.tolist()]
    data: dict[str, tuple[pa.Table, Any, str]] = {
        "customers": (
            pa.table({"customer": customers, "region": regions, "segment": pa.array(customers % 5, pa.int32())}),
            "customer",
            "error",
        ),
        "products": (
            pa.table(
                {
                    "store": [f"s{number % 3}" for number in range(900)],
                    "sku": [number // 3 for number in range(900)],
                    "maker": pa.array([number % 11 if number % 4 else None for number in range(900)], pa.int64()),
                    "text": ["x" * (number % 97) for number in range(900)],
                }
            ),
            ["store", "sku"],
            "error",
        ),
        "makers": (
            pa.table({"maker": [number % 9 for number in range(40)], "agent": [f"agent {n}" for n in range(40)]}),
            "maker",
            "all",
        ),
        "regions": (
            pa.table({"region": [f"region {n}" for n in range(5)], "text": [f"text {n}" for n in range(5)]}),
            "region",
            "error",
        ),
    }
    for name, (rows, key, duplicates) in data.items():
        MasterTable.build(rows, folder / name, key, page_bytes=512, on_duplicate=duplicates)
    return {name: folder / name for name in data}


def stream(count: int, seed: int, first: int = 0) -> pa.Table:
    """Return rows with keys that are absent and null, some of them frequent."""
    random = np.random.default_rng([seed, first])
    customers = np.minimum(random.zipf(1.3, count) * 2, 3200) + (random.random(count) < 0.1)
    return pa.table(
        {
            "n": np.arange(first, first + count),
            "customer": pa.array(customers, pa.int64(), mask=random.random(count) < 0.03),
            "store": pa.array(
                [f"s{number}" for number in random.integers(0, 4, count)], mask=random.random(count) < 0.03
            ),
            "sku": random.integers(0, 330, count),
        }
    )


def drawn_dimensions(tables: dict[str, Path], random: Random) -> list[Dimension]:
    """Return two to four dimensions in an order that works, each joined in one of the ways that fit."""
    hows = ["inner", "left", "left", "semi", "anti"]

    def settings(how: str) -> dict[str, Any]:
        routed = random.random() < 0.3 and how in ("inner", "left")
        flag = {"matched": f"m{random.randrange(10**6)}"} if how == "left" and random.random() < 0.4 else {}
        return {"how": how, **flag, **({"unmatched": "dead_letters"} if routed else {})}

    gives_columns = random.choice(["inner", "left"])
    customers = Dimension(
        tables["customers"],
        on="customer",
        columns=random.choice([["region"], None]),
        replace=random.choice([None, {"n": "segment"}]) if random.random() < 0.3 else None,
        **settings(gives_columns),
    )
    products = Dimension(tables["products"], on=["store", "sku"], **settings(random.choice(["inner", "left"])))
    makers = Dimension(tables["makers"], on="maker", **settings(random.choice(hows)))
    regions = Dimension(tables["regions"], on="region", suffix="_of_region", **settings(random.choice(hows)))
    again = Dimension(
        tables["customers"],
        on={"sku": "customer"},
        columns=["region"],
        suffix="_of_sku",
        name="again",
        **settings(random.choice(hows)),
    )
    return random.choice(
        [
            [customers, products, makers],
            [products, makers, customers, regions],
            [customers, regions],
            [products, customers, again],
            [customers, again, products, makers],
        ]
    )


def letters(folder: Path) -> dict[str, list[Any]]:
    """Return the rows in the dead letters of each dimension, but for the time."""
    found: dict[str, list[Any]] = {}
    for file in sorted(folder.rglob("*.parquet")):
        rows = pq.read_table(file).drop_columns(["first_arrival"]).to_pylist()
        found.setdefault(file.parent.parent.name, []).extend(rows)
    return {name: sorted(map(repr, rows)) for name, rows in found.items()}


@pytest.mark.parametrize("seed", range(12))
def test_a_star_puts_out_the_rows_of_a_chain_in_their_order(
    tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    dimensions = drawn_dimensions(tables, random)
    star = star_of(SCHEMA, dimensions, dead_letters=tmp_path / "star")
    chain = chain_of(star_of(SCHEMA, dimensions, dead_letters=tmp_path / "chain"))
    if seed % 3 == 0:  # reads side by side, as of stores that make one wait
        monkeypatch.setattr("semistream.spark.shared_reads._waits", lambda _: True)
        monkeypatch.setattr("semistream.spark.shared_reads._ALONE_EVERY", 1 << 40)
    in_star, in_chain = new_worker(monkeypatch), Worker()
    for first in (0, 2000):
        rows = stream(random.choice([1, 700, 2000]), seed, first)
        batch_rows = random.choice([7, 100, 5000]) if rows.num_rows < 1000 else 300
        monkeypatch.setattr("semistream.spark.task_run.WORKER", in_star)
        output, told = run_star(star, handed_over(rows, batch_rows))
        monkeypatch.setattr("semistream.spark.task_run.WORKER", in_chain)
        assert output.equals(run_chain(chain, rows, batch_rows))
        assert list(told) == [task.name for task in star.dimensions]
        assert told[star.dimensions[0].name]["tuples_in"] == rows.num_rows
        for before, after in zip(star.dimensions, star.dimensions[1:], strict=False):
            assert told[after.name]["tuples_in"] == told[before.name]["rows_out"]
        assert told[star.dimensions[-1].name]["rows_out"] == output.num_rows
    assert letters(tmp_path / "star") == letters(tmp_path / "chain")
    total = sum(held.memory_bytes for held in in_star._joins.values())
    assert total <= 12_000_000


def test_two_dimensions_of_one_table_have_a_cache_each(worker: Worker, tables: dict[str, Path]) -> None:
    dimensions = [
        Dimension(tables["customers"], on="customer", columns=["region"]),
        Dimension(tables["customers"], on={"n": "customer"}, columns=["region"], suffix="_of_n", name="again"),
    ]
    rows = stream(2000, 1)
    _, cold = run_star(star_of(SCHEMA, dimensions), handed_over(rows))
    output, told = run_star(star_of(SCHEMA, dimensions), handed_over(rows))
    assert len(worker._joins) == 2
    assert told["again"]["page_reads"] < cold["again"]["page_reads"] / 3, "what the second one has cached is kept"
    regions = {number: f"region {number % 7}" for number in range(0, 3000, 2)}
    expected = [
        (row["n"], regions[row["customer"]], regions[row["n"]])
        for row in rows.to_pylist()
        if row["customer"] in regions and row["n"] in regions
    ]
    assert list(zip(*(output[f"o{place}"].to_pylist() for place in (0, 4, 5)), strict=True)) == expected


@pytest.mark.usefixtures("worker")
def test_an_unmatched_row_that_must_not_be_stops_the_star_unless_an_earlier_dimension_drops_it(
    tables: dict[str, Path], worker: Worker
) -> None:
    strict = Dimension(tables["customers"], on="customer", columns=[], unmatched="fail")
    rows = pa.table({"n": [1, 2], "customer": [2, 3], "store": ["s1", "s9"], "sku": [4, 4]}, schema=None)
    products = Dimension(tables["products"], on=["store", "sku"], columns=[])
    output, _ = run_star(star_of(SCHEMA, [products, strict]), handed_over(rows))
    assert output["o0"].to_pylist() == [1]
    with pytest.raises(UnmatchedRowError, match="no match in the master table customers, among them one with key 3"):
        run_star(star_of(SCHEMA, [strict, products]), handed_over(rows))
    assert not worker._joins, "a run that has failed leaves joins behind"


@pytest.mark.usefixtures("worker")
def test_fat_rows_go_to_the_dead_letters_of_their_dimension_or_stop_the_star(
    tables: dict[str, Path], tmp_path: Path
) -> None:
    long = "x" * 600_000
    fat = pa.table({"sku": list(range(20)), "story": [long if n % 10 == 3 else "short" for n in range(20)]})
    MasterTable.build(fat, tmp_path / "fat", "sku")
    rows = pa.table({"n": range(40), "customer": [2] * 40, "store": ["s1"] * 40, "sku": [n % 20 for n in range(40)]})
    dimensions = [
        Dimension(tables["customers"], on="customer", columns=["region"]),
        Dimension(tmp_path / "fat", on="sku"),
    ]
    with pytest.raises(RowTooLargeError):
        run_star(star_of(SCHEMA, dimensions, memory_bytes=8_000_000), handed_over(rows))
    star = star_of(SCHEMA, dimensions, memory_bytes=8_000_000, dead_letters=tmp_path / "letters")
    output, told = run_star(star, handed_over(rows))
    assert (output.num_rows, told["fat"]["refused"]) == (36, 4)
    (file,) = (tmp_path / "letters").rglob("*.parquet")
    assert file.parent.parent.name == "fat"
    assert pq.read_table(file)["n"].to_pylist() == [3, 13, 23, 33]
    whole, _ = run_star(star_of(SCHEMA, dimensions, memory_bytes=64_000_000), handed_over(rows))
    assert [len(text) for text in whole["o5"].to_pylist()].count(600_000) == 4


def test_an_empty_partition_tells_of_each_dimension_and_touches_nothing(
    worker: Worker, tables: dict[str, Path]
) -> None:
    star = star_of(SCHEMA, [Dimension(tables["customers"], on="customer"), Dimension(tables["regions"], on="region")])
    output, told = run_star(star, iter(()))
    assert output.num_rows == 0
    assert {name: one["tuples_in"] for name, one in told.items()} == {"customers": 0, "regions": 0}
    assert not worker._joins


def test_dimensions_that_do_not_fit_into_the_memory_together_are_an_error(
    worker: Worker, tables: dict[str, Path]
) -> None:
    star = star_of(SCHEMA, [Dimension(tables["customers"], on="customer")] * 1)
    many = [Dimension(tables["customers"], on={"sku": "customer"}, columns=[], name=f"d{n}") for n in range(20)]
    with pytest.raises(BudgetTooSmallError):
        star_of(SCHEMA, many, memory_bytes=4_000_000)
    run_star(star, handed_over(stream(100, 1)))
    assert len(worker._joins) == 1


@pytest.mark.usefixtures("worker")
class Meetings:
    """Look-ups that wait, and how many are under way at the same time at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.most = self._now = 0
        self._lock = Lock()
        self._look_up = FileRowReader.look_up
        self._seconds = seconds
        monkeypatch.setattr(FileRowReader, "look_up", lambda *arguments: self._met(*arguments))

    def _met(self, reader: FileRowReader, *arguments: Any) -> FoundRows:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        sleep(self._seconds)
        found = self._look_up(reader, *arguments)
        with self._lock:
            self._now -= 1
        return found


@pytest.mark.usefixtures("worker")
def test_dimensions_read_side_by_side_only_where_their_stores_make_them_wait(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    dimensions = [
        Dimension(tables["customers"], on="customer", how="left", columns=["region"]),
        Dimension(tables["products"], on=["store", "sku"], how="left", columns=["maker"]),
        Dimension(tables["regions"], on="region", how="left"),
    ]
    star, chunks = star_of(SCHEMA, dimensions), [stream(300, 9, 1000 * number) for number in range(6)]
    expected = [run_chain(chain_of(star), rows) for rows in chunks]
    new_worker(monkeypatch)
    assert run_star(star, handed_over(chunks[0]))[0].equals(expected[0])
    slow = Meetings(monkeypatch, 0.02)
    for rows, output in zip(chunks[1:], expected[1:], strict=True):
        found, told = run_star(star, handed_over(rows))
        assert found.equals(output)
    assert slow.most == 2, "the keys of regions come from customers, so that they cannot be read with them"
    assert told["products"]["page_reads"] > 0


@pytest.mark.usefixtures("worker")
def test_quick_reads_are_made_in_turn(tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    star = star_of(
        SCHEMA,
        [
            Dimension(tables["customers"], on="customer", how="left", columns=["region"]),
            Dimension(tables["products"], on=["store", "sku"], how="left"),
        ],
    )
    monkeypatch.setattr("semistream.spark.shared_reads._MIN_WAIT_SECONDS", 1.0)
    reads = Meetings(monkeypatch, 0.005)
    for number in range(3):
        run_star(star, handed_over(stream(300, 9, 1000 * number)))
    assert reads.most == 1


@pytest.mark.usefixtures("worker")
def test_what_cannot_be_read_ahead_fails_where_it_is_needed(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that an earlier dimension drops must not stop the task."""
    dimensions = [
        Dimension(tables["customers"], on="customer", columns=[]),
        Dimension(tables["products"], on=["store", "sku"], columns=[]),
    ]
    monkeypatch.setattr("semistream.spark.shared_reads._waits", lambda _: True)
    star, rows = star_of(SCHEMA, dimensions), stream(300, 4)
    expected = run_chain(chain_of(star), rows)
    new_worker(monkeypatch)
    run_star(star, handed_over(stream(50, 5)))
    look_up, failures = FileRowReader.look_up, []

    def failing(reader: FileRowReader, *arguments: Any) -> Any:
        if current_thread() is not main_thread():
            failures.append(current_thread())
            raise OSError("the store does not answer")
        return look_up(reader, *arguments)

    monkeypatch.setattr(FileRowReader, "look_up", failing)
    assert run_star(star, handed_over(rows))[0].equals(expected)
    assert failures, "nothing was read ahead"


def test_a_star_that_is_left_early_leaves_no_joins_behind(worker: Worker, tables: dict[str, Path]) -> None:
    star = star_of(SCHEMA, [Dimension(tables["customers"], on="customer"), Dimension(tables["regions"], on="region")])
    rows: Iterator[pa.RecordBatch] = star(handed_over(stream(2000, 3)))
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert not worker._joins


@pytest.mark.usefixtures("worker")
def test_times_of_dimensions_are_told_apart(tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    star = star_of(SCHEMA, [Dimension(tables["customers"], on="customer"), Dimension(tables["regions"], on="region")])
    run_star(star, handed_over(stream(200, 3)))
    look_up = FileRowReader.look_up

    def slowly(reader: FileRowReader, *arguments: Any) -> Any:
        sleep(0.05)
        return look_up(reader, *arguments)

    monkeypatch.setattr(FileRowReader, "look_up", slowly)
    began = perf_counter()
    _, told = run_star(star, handed_over(stream(2000, 9, 5000), 500))
    took = perf_counter() - began
    own = sum(one["seconds"] for one in told.values())
    assert 0.05 <= told["customers"]["read_seconds"] <= told["customers"]["seconds"]
    assert told["regions"]["input_seconds"] < 0.01 > told["customers"]["output_seconds"], "neighbours are no waiting"
    waiting = told["customers"]["input_seconds"] + told["regions"]["output_seconds"]
    assert 0.8 * took <= own + waiting <= took, "the times of all dimensions make up the task"
