"""Two attempts of one task at the same moment read the same version of the master table and give the same rows.

Spark does not speculate on one machine, so that the tasks are called here, as Spark calls them: each in a process of
its own, with the same name of the query and number of the batch.
"""

from __future__ import annotations

import multiprocessing
import sys
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from campaign import Case, Figures, Promise
from exactly_once_project import PRODUCTS, MasterChanges

sys.path.append(str(Path(__file__).parents[1] / "spark"))

from enrich_tasks import enrich_task, handed_over, run_task

from semistream.spark.pinning import Pin

_ROWS = 2_000
_SECONDS = 120.0


def run(folder: Path, *, seed: int, rounds: int) -> Figures:
    """Let two processes race for each of many batches while the table is merged and vacuumed."""
    changes = MasterChanges(folder / "products", seed, 0.05)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    racers = []
    try:
        for _ in range(2):
            ours, theirs = context.Pipe()
            process = context.Process(target=_race, args=(theirs, barrier, changes.table.path, seed), daemon=True)
            process.start()
            theirs.close()
            racers.append((process, ours))
        for _, connection in racers:  # loaded and compiled, so that the rounds are races
            assert connection.recv() == "ready"
        changes.start()
        versions = set()
        for batch in range(rounds):
            for _, connection in racers:
                connection.send(batch)
            one, other = (_answer(connection) for _, connection in racers)
            assert one["version"] == other["version"], f"batch {batch}: versions {one['version']}, {other['version']}"
            assert one["rows"].equals(other["rows"]), f"batch {batch}: the attempts gave different rows"
            expected = changes.versions[one["version"]][one["rows"]["product"].to_numpy()]
            assert np.array_equal(one["rows"]["changed"].to_numpy(), expected), (
                f"batch {batch}: rows of another version"
            )
            versions.add(one["version"])
    finally:
        for process, connection in racers:
            connection.close()
            process.join(_SECONDS)
            if process.is_alive():
                process.kill()
        if changes.is_alive():
            changes.stop()
    return {"rounds": rounds, "rows": 2 * rounds * _ROWS, "versions": len(versions)}


def _answer(connection: Connection) -> dict[str, Any]:
    assert connection.poll(_SECONDS), "an attempt does not end"
    answer: dict[str, Any] = connection.recv()
    if "error" in answer:
        raise AssertionError(answer["error"])
    return answer


def _race(connection: Connection, barrier: Any, table: Path, seed: int) -> None:
    """Answer numbers of batches with the rows of a task, until there are no more."""
    stream = pa.schema([("sale_id", pa.int64()), ("product_id", pa.int64())])
    run_task(enrich_task(table, stream, pin=Pin(wanted=False)), handed_over(_sales(seed, 0)))
    connection.send("ready")
    while True:
        try:
            batch = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            task = enrich_task(table, stream, pin=Pin(None, "race", batch))
            barrier.wait(_SECONDS)
            rows, counters = run_task(task, handed_over(_sales(seed, batch)))
            ordered = rows.rename_columns(["sale", "product", "changed", "pad"]).sort_by("sale")
            connection.send({"version": counters["version"], "rows": ordered})
        except Exception as error:
            connection.send({"error": f"batch {batch}: {error!r}\n{traceback.format_exc()}"})


def _sales(seed: int, batch: int) -> pa.Table:
    generator = np.random.default_rng([seed, batch])
    return pa.table({"sale_id": np.arange(_ROWS), "product_id": generator.integers(0, PRODUCTS, _ROWS)})


def _cases(seed: int) -> Iterator[Case]:
    for number in range(5):
        yield Case(f"race {number}", lambda folder, number=number: run(folder, seed=seed * 1_000 + number, rounds=200))


def _figure(figures: Sequence[Figures]) -> str:
    rounds, rows, versions = (sum(figure[name] for figure in figures) for name in ("rounds", "rows", "versions"))
    return f"{rounds:,} races, {rows:,} rows, 0 different, {versions:,} versions pinned"


RACING_ATTEMPTS = Promise(
    "racing-attempts",
    "Two attempts of one task at the same moment read one version and give the same rows",
    _cases,
    _figure,
)
