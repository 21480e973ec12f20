"""A Python worker of Spark keeps to its memory where one key has a fat row, or many rows, and many ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from worker_memory import grows_within

MEMORY = 16_000_000


@pytest.mark.parametrize(
    ("table", "rows", "algorithm", "order"),
    [
        ("3,000 matches", 300, "demandjoin", "input"),
        pytest.param("hot fat rows", 1_500, "cachejoin", "any", marks=pytest.mark.slow),
    ],
    ids=["many rows of one key, in order", "a fat row of one key, as answered"],
)
def test_a_worker_with_16_megabytes_keeps_to_them(
    tmp_path: Path, table: str, rows: int, algorithm: str, order: str
) -> None:
    figures = grows_within(tmp_path, table, "one key", rows, algorithm, order, MEMORY)
    # The key itself has a row, too.
    assert figures["rows_out"] == rows * (3_001 if table == "3,000 matches" else 1)
