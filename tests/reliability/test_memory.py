"""The budget is real: what the kernel sees of a join that is hard on memory stays within it."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import pytest
from memory import BUDGETED, EXPONENTS, grows_within, pairwise
from memory_child import Run
from memory_data import STREAMS, TABLES

MEMORY = 16_000_000
HARD = [
    ("hot fat rows", "20 bytes", "demandjoin", 25_000),
    ("hot fat rows", "20 bytes", "p-cachejoin", 25_000),
    ("3,000 matches", "200 bytes", "hybridjoin", 25_000),
    ("3,000 matches", "20 bytes", "op-cachejoin", 40_000),
    ("3,000 matches", "300 kB", "cachejoin", 400),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize(("table", "stream", "algorithm", "tuples"), HARD, ids=[" ".join(row[:3]) for row in HARD])
def test_a_join_of_hard_rows_in_16_megabytes_keeps_to_them(
    tables: Path, table: str, stream: str, algorithm: str, tuples: int
) -> None:
    grows_within(tables, Run("", table, stream, 1.0, algorithm, MEMORY, tuples))


def test_the_sample_lets_any_two_values_meet() -> None:
    factors = [TABLES, STREAMS, EXPONENTS, BUDGETED]
    rows = pairwise(factors, 5)
    for (first, ones), (second, others) in combinations(enumerate(factors), 2):
        assert {(row[first], row[second]) for row in rows} == set(product(ones, others))
    assert rows == pairwise(factors, 5)
    assert len(rows) < 2 * len(TABLES) * len(BUDGETED)
