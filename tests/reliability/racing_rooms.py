"""Two attempts of one task with a room at the same moment: one decides which rows leave, both let those leave.

The tasks are called as Spark calls them, each in a process of its own; an attempt that loses is called again.
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

sys.path.append(str(Path(__file__).parents[1] / "spark"))

from room_driver import Query, master_rows, sales

from semistream.master_table import MasterTable
from semistream.spark.room.room import RoomError

_KEYS = 3_000
_ROWS = 400
_SECONDS = 120.0


def run(folder: Path, *, seed: int, rounds: int) -> Figures:
    """Let two processes race for each of many micro-batches; account for every row."""
    table = MasterTable.build(master_rows(np.arange(_KEYS), 1), folder / "master", key="key", page_bytes=1024)
    query = Query(table.path, folder / "room", slots=1, max_wait=1.0)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    racers = []
    left: list[int] = []
    lost = 0
    try:
        for _ in range(2):
            ours, theirs = context.Pipe()
            process = context.Process(target=_race, args=(theirs, barrier, query.table, query.room), daemon=True)
            process.start()
            theirs.close()
            racers.append((process, ours))
        offset = query.reader().initialOffset()
        for batch in range(rounds + 1):
            tickets, offset = query.reader().read(offset)
            arrived = sales(batch * _ROWS, _ROWS if batch < rounds else 0, _KEYS, seed + batch)  # the last one drains
            rows = query.arriving(arrived, [ticket for _, ticket in tickets], 0)
            for _, connection in racers:
                connection.send((batch, rows))
            one, other = (_answer(connection) for _, connection in racers)
            assert one["ids"] == other["ids"], f"batch {batch}: the attempts let different rows leave"
            left += one["ids"]
            lost += one["lost"] + other["lost"]
    finally:
        for process, connection in racers:
            connection.close()
            process.join(_SECONDS)
            if process.is_alive():
                process.kill()
    assert sorted(left) == list(range(rounds * _ROWS)), "every row leaves once"
    return {"rounds": rounds, "rows": len(left), "lost": lost}


def _answer(connection: Connection) -> dict[str, Any]:
    assert connection.poll(_SECONDS), "an attempt does not end"
    answer: dict[str, Any] = connection.recv()
    if "error" in answer:
        raise AssertionError(answer["error"])
    return answer


def _race(connection: Connection, barrier: Any, table: Path, room: Path) -> None:
    """Answer micro-batches with the ids of the rows that left, until there are no more."""
    query = Query(table, room, slots=1, max_wait=1.0)
    while True:
        try:
            batch, rows = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            query.batch = batch
            barrier.wait(_SECONDS)
            connection.send(_attempted(query, rows))
        except Exception as error:
            connection.send({"error": f"batch {batch}: {error!r}\n{traceback.format_exc()}"})


def _attempted(query: Query, rows: pa.Table) -> dict[str, Any]:
    lost = 0
    while True:
        try:
            whole = pa.Table.from_batches(query.attempt(rows)) if rows.num_rows else None
        except RoomError as error:
            if "Another attempt" not in str(error) or lost:
                raise
            lost += 1
            continue
        ids = sorted(whole["o0"].drop_null().to_pylist()) if whole is not None else []
        return {"ids": ids, "lost": lost}


def _cases(seed: int) -> Iterator[Case]:
    for number in range(5):
        yield Case(f"race {number}", lambda folder, number=number: run(folder, seed=seed * 1_000 + number, rounds=200))


def _figure(figures: Sequence[Figures]) -> str:
    rounds, rows, lost = (sum(figure[name] for figure in figures) for name in ("rounds", "rows", "lost"))
    return f"{rounds:,} races, {rows:,} rows, 0 missing, 0 extra; {lost:,} attempts lost their put and were repeated"


RACING_ROOMS = Promise(
    "racing-rooms",
    "Of two attempts of a task at the same moment one decides which rows wait, and every row leaves exactly once",
    _cases,
    _figure,
)
