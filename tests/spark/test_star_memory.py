"""The memory of a worker moves to the dimension whose cache saves most."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from enrich_tasks import handed_over
from pyspark.sql.types import LongType, StructField, StructType
from star_tasks import run_star, star_of

from semistream.master_table import MasterTable
from semistream.spark.dimension import Dimension
from semistream.spark.worker import Worker

ROWS, TASKS = 20_000, 40
MEMORY = 9_000_000
SCHEMA = StructType([StructField("much", LongType()), StructField("little", LongType())])


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("masters")
    keys = np.arange(ROWS)
    texts = [f"{key:200}" for key in keys.tolist()]
    for name in SCHEMA.names:
        MasterTable.build(pa.table({name: keys, f"text_{name}": texts}), folder / name, name)
    return [folder / name for name in SCHEMA.names]


def rows(count: int, seed: int, swapped: bool = False) -> pa.Table:
    """Return rows whose one key is spread over all of a table, and whose other is one of a few."""
    random = np.random.default_rng(seed)
    ranks = np.floor(np.exp(random.random(count) * np.log(ROWS))).astype(np.int64)
    wide, narrow = ranks * 7919 % ROWS, random.integers(0, 100, count) * 150
    return pa.table(dict(zip(SCHEMA.names, (narrow, wide) if swapped else (wide, narrow), strict=True)))


def hit_rates(
    tables: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    worker: Worker,
    first: int = 0,
    swapped: bool = False,
) -> list[dict[str, float]]:
    """Run tasks in a worker and return the hit rates of the dimensions; memory and rows are checked as well."""
    monkeypatch.setattr("semistream.spark.task_run.WORKER", worker)
    # No worker is to find what another has saved.
    monkeypatch.setattr("semistream.spark.held_join._FIRST_SAVE_SECONDS", 1e9)
    star = star_of(SCHEMA, [Dimension(table, on=table.name) for table in tables], memory_bytes=MEMORY)
    told = []
    for number in range(first, first + TASKS):
        arriving = rows(5000, number, swapped)
        output, counts = run_star(star, handed_over(arriving, 5000))
        assert sum(held.memory_bytes for held in worker._joins.values()) <= MEMORY
        assert sum(held.more_bytes for held in worker._joins.values()) == 0
        told.append({name: one["cache_hits"] / one["tuples_in"] for name, one in counts.items()})
    for place, name in enumerate(SCHEMA.names):
        assert output[f"o{2 + place}"].to_pylist() == [f"{key:200}" for key in arriving[name].to_pylist()]
    return told


def test_memory_goes_to_the_dimension_that_gains_and_comes_back_when_the_stream_changes(
    tables: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    moving, fixed = Worker(look_seconds=0.0), Worker(look_seconds=1e9)
    told, equal = (hit_rates(tables, monkeypatch, worker) for worker in (moving, fixed))
    much, little = moving._joins.values()
    assert much.more_bytes == -little.more_bytes > MEMORY // 12, "the dimension that gains has more memory"
    assert all(not held.more_bytes for held in fixed._joins.values())

    def late(each: list[dict[str, float]], name: str) -> float:
        return float(np.mean([one[name] for one in each[-6:]]))

    assert much.cached_rows > 1.3 * next(iter(fixed._joins.values())).cached_rows
    assert late(told, "much") > late(equal, "much") + 0.015, "more memory answers more"
    assert late(told, "little") > 0.99, "what is of use is kept"

    hit_rates(tables, monkeypatch, moving, first=100, swapped=True)
    assert much.more_bytes < 0 < little.more_bytes, "memory follows the stream"


def test_memory_stays_where_it_is_while_caches_save_alike(tables: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    worker, divided = Worker(look_seconds=0.0), []
    monkeypatch.setattr("semistream.spark.task_run.WORKER", worker)
    star = star_of(SCHEMA, [Dimension(table, on=table.name) for table in tables], memory_bytes=MEMORY)
    for number in range(16):
        wide = rows(5000, number)["much"]
        alike = pa.table({"much": wide, "little": rows(5000, 1000 + number)["much"]})
        run_star(star, handed_over(alike, 5000))
        divided.append(next(held.more_bytes for held in worker._joins.values()))
    moves = sum(one != other for one, other in pairwise(divided))
    assert moves <= 1, f"caches are emptied for a move again and again: {divided}"
