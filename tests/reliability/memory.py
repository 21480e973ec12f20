"""Promise: the process of a join grows by no more than 1.15 times its budget, whatever rows look like."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

from campaign import Case, Figures, Promise
from memory_child import Run, measure
from memory_data import FAT_BYTES, MATCHES, STREAMS, TABLES, build, bytes_out_per_tuple

from semistream.algorithms.registry import ALGORITHMS

ALLOWED = 1.15
BUDGETS = (16_000_000, 64_000_000, 256_000_000)
EXPONENTS = (0.0, 1.0)
BUDGETED = [name for name in ALGORITHMS if name != "oracle"]
_OUTPUT_BYTES = 1_500_000_000
_SLOW = {"inlj": 40, "nested": 20, "partitioned": 4, "growing to 2 kB": 4}
"""Where a tuple takes many times longer than elsewhere, so many times fewer are joined."""


def pairwise(factors: Sequence[Sequence[Any]], seed: int) -> list[tuple[Any, ...]]:
    """Return rows of values in which any two values of different factors meet at least once; greedy, by a seed."""
    draw = random.Random(seed)
    missing = {
        (first, one, second, other)
        for first, second in combinations(range(len(factors)), 2)
        for one, other in product(factors[first], factors[second])
    }
    rows = []
    while missing:
        first, one, second, other = draw.choice(sorted(missing))
        candidates = []
        for _ in range(30):
            row = [draw.choice(factor) for factor in factors]
            row[first], row[second] = one, other
            candidates.append((len(_pairs(row) & missing), row))
        row = max(candidates, key=lambda candidate: candidate[0])[1]
        missing -= _pairs(row)
        rows.append(tuple(row))
    return rows


def _pairs(row: Sequence[Any]) -> set[tuple[int, Any, int, Any]]:
    return {(first, row[first], second, row[second]) for first, second in combinations(range(len(row)), 2)}


def tuples_of(table: str, stream: str, exponent: float, algorithm: str, memory_bytes: int) -> int:
    """Return how many tuples fill the memory or take some seconds."""
    few = max(_SLOW.get(name, 1) for name in (table, stream, algorithm))
    by_memory = memory_bytes // 50 // few
    by_output = int(_OUTPUT_BYTES / bytes_out_per_tuple(table, stream, exponent))
    return max(400, min(by_memory, by_output))


def tables_folder() -> Path:
    """Return where tables are kept between cases."""
    return Path(os.environ.get("SEMISTREAM_SOAK_TABLES", "build/soak/tables"))


def grows_within(folder: Path, run: Run) -> Figures:
    """Do a run and return its figures, or raise if rows are lost or memory is exceeded."""
    path = build(run.table, run.memory_bytes, folder)
    figures = measure(Run(**{**run.__dict__, "path": str(path)}))
    expected = run.tuples - figures["refused"]
    if not figures["refused"]:
        expected += figures["many"] * MATCHES.get(run.table, 0)
    assert figures["rows_out"] == expected, f"{figures['rows_out']} rows came out, expected {expected}"
    assert figures["tuples_out"] == run.tuples
    row_bytes = FAT_BYTES + (300_000 if run.stream == "300 kB" else 2_000)
    assert figures["largest_batch_bytes"] <= run.memory_bytes // 10 + row_bytes, figures
    assert figures["share"] <= ALLOWED, f"grown by {figures['share']} of the budget: {figures}"
    return figures


def _run(memory_bytes: int, table: str, stream: str, exponent: float, algorithm: str, _: Path) -> Figures:
    folder = tables_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.iterdir():  # those of the largest budget would take 18 GB together
        if not other.name.startswith(f"{table.replace(' ', '-').replace(',', '')}-{memory_bytes}"):
            shutil.rmtree(other)
    tuples = tuples_of(table, stream, exponent, algorithm, memory_bytes)
    return grows_within(folder, Run("", table, stream, exponent, algorithm, memory_bytes, tuples))


def cases(seed: int) -> Iterator[Case]:
    """Make the pairwise sample, those of one table together."""
    for row in sorted(pairwise([BUDGETS, TABLES, STREAMS, EXPONENTS, BUDGETED], seed)):
        memory_bytes, table, stream, exponent, algorithm = row
        name = f"{memory_bytes // 10**6} MB, {table}, stream of {stream}, exponent {exponent:g}, {algorithm}"
        yield Case(name, partial(_run, memory_bytes, table, stream, exponent, algorithm))


def _figure(kept: Sequence[Figures]) -> str:
    return f"at most {max(figures['share'] for figures in kept):.2f} of the budget"


PROMISE = Promise("memory", f"The process of a join grows by at most {ALLOWED} times its budget", cases, _figure)
