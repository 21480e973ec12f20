"""A Python worker of Spark stays within its base, 1.15 times `memory` and two Arrow batches, whatever the rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from campaign import Case, Figures, Promise
from memory import ALLOWED, tables_folder
from memory_data import build
from worker_memory_child import SparkRun, measure

MEMORIES = (16_000_000, 64_000_000)
SITUATIONS = (
    ("plain", "20 bytes", 400_000),
    ("plain", "300 kB", 300),
    ("hot fat rows", "one key", 10_000),
    ("hot fat rows", "200 bytes", 30_000),
    ("growing", "20 bytes", 60_000),
    ("nested", "200 bytes", 60_000),
    ("3,000 matches", "one key", 1_000),
)
WAYS = (("demandjoin", "input"), ("demandjoin", "any"), ("cachejoin", "any"), ("ssij", "any"), ("op-cachejoin", "any"))


def grows_within(
    folder: Path, table: str, stream: str, rows: int, algorithm: str, order: str, memory_bytes: int
) -> Figures:
    """Enrich, and assert that the worker has kept to its memory."""
    path = build(table, memory_bytes, folder).absolute()
    figures = measure(SparkRun(str(path), table, stream, algorithm, order, memory_bytes, rows))
    assert figures["share"] <= ALLOWED, f"the worker has grown by {figures['share']} times its memory: {figures}"
    assert figures["rows_out"] > 0
    return figures


def _cases(seed: int) -> Iterator[Case]:
    del seed  # there is nothing random in what is tried
    for memory_bytes in MEMORIES:
        for number, (table, stream, rows) in enumerate(SITUATIONS):
            ways = [WAYS[0], WAYS[1 + number % 4], WAYS[1 + (number + 2) % 4]]
            for algorithm, order in ways:
                name = f"{memory_bytes // 1_000_000} MB, {table}, {stream}, {algorithm}, {order}"

                def run(
                    _: Path,
                    table: str = table,
                    stream: str = stream,
                    rows: int = rows,
                    algorithm: str = algorithm,
                    order: str = order,
                    memory_bytes: int = memory_bytes,
                ) -> Figures:
                    folder = tables_folder()
                    folder.mkdir(parents=True, exist_ok=True)
                    return grows_within(folder, table, stream, rows, algorithm, order, memory_bytes)

                yield Case(name, run)


def _figure(kept: Sequence[Figures]) -> str:
    shares = [figures["share"] for figures in kept]
    bases = [figures["base_bytes"] // 1_000_000 for figures in kept]
    return f"at most {max(shares):.2f} times `memory`; base {min(bases)} to {max(bases)} MB"


PROMISE = Promise(
    "worker-memory",
    "A Python worker of Spark stays below its base, 1.15 times `memory` and two Arrow batches",
    _cases,
    _figure,
)
