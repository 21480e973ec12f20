"""The budget is real: the memory of the process, seen from outside, stays within it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.budget import parse_bytes
from semistream.store.master_table import MasterTable

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import memory_bound

BUDGETED = [name for name in ALGORITHMS if name not in ("oracle", "inlj")]


def grows_within(folder: Path, memory: str, algorithms: list[str], tuples: int) -> None:
    rows = 10 * parse_bytes(memory) // memory_bound.ROW_BYTES
    path = str(folder / "master")
    MasterTable.build(memory_bound.master_batches(rows), path, key="key")
    results = [memory_bound.measure(path, algorithm, memory, rows, tuples) for algorithm in algorithms]
    assert [result["rows_out"] for result in results] == [tuples] * len(algorithms)
    assert not [(r["algorithm"], r["share_of_budget"]) for r in results if not r["kept"]]


def test_a_join_in_16_megabytes_of_a_table_ten_times_larger_keeps_to_them(tmp_path: Path) -> None:
    grows_within(tmp_path, "16MB", ["hybridjoin", "cachejoin", "p-cachejoin"], 400_000)


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["16MB", "50MB", "250MB"])
def test_every_algorithm_keeps_to_its_budget(tmp_path: Path, memory: str) -> None:
    grows_within(tmp_path, memory, BUDGETED, 1_500_000)
