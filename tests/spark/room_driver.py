"""Runs the micro-batches of a query that has a room in this process, and lets attempts fail as Spark's would."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from semistream.engine.output.output_plan import OutputPlan, plan_output
from semistream.joining.matched import with_matched
from semistream.master_table import MasterTable
from semistream.spark import task_run as tasks
from semistream.spark.pinning import Pin
from semistream.spark.room import run as runs
from semistream.spark.room.room import Room
from semistream.spark.room.source import RoomReader
from semistream.spark.room.use import ROOM_COLUMNS
from semistream.spark.room.visit import RoomUse
from semistream.spark.task import EnrichTask
from semistream.spark.wide_plan import widened
from semistream.spark.worker import Worker
from semistream.store.address import Address

QUERY = "query"
STREAM = pa.schema([("id", pa.int64()), ("key", pa.int64())])
POSITIONAL = pa.schema([("c0", pa.int64()), ("c1", pa.int64())])
ARRIVING = POSITIONAL.append(pa.field("slot", pa.int32())).append(pa.field("ticket", pa.string()))


class KilledError(Exception):
    """Stands for what ends an attempt."""


@dataclass
class Query:
    """A query over a master table with the columns `key` and `changed`, and what has become of its rows."""

    table: Path
    room: Path
    slots: int = 2
    max_wait: float = 10.0
    retry: float = 1000.0
    how: str = "left"
    unmatched: str | None = None
    algorithm: str = "demandjoin"
    dead_letters: Path | None = None
    offset: dict[str, int] = field(default_factory=dict)
    batch: int = 0
    out: list[pa.Table] = field(default_factory=list)
    statistics: list[list[dict[str, Any]]] = field(default_factory=list)
    now: float = 1_000_000.0

    def __post_init__(self) -> None:
        room, terms = Room.checked(Address.of(self.room), ["key"], STREAM, self.slots)
        room.make(terms)

    @property
    def parks(self) -> bool:
        return self.unmatched == "park"

    def reader(self) -> RoomReader:
        address = Address.of(self.table) if self.parks else None
        return RoomReader(Room(Address.of(self.room)), address, self.retry if self.parks else None, lambda: self.now)

    def task(self, batch: int) -> EnrichTask:
        with MasterTable(self.table).open() as store:
            how = "left" if self.unmatched else self.how
            plan = plan_output(POSITIONAL, store.schema, [("c1", "key")], how=how)
            if self.unmatched:
                plan, _ = with_matched(plan, store.schema, "flag")
            read = pa.schema([store.schema.field(name) for name in (*plan.master_columns, "key")])
        output = [f.with_name(f"o{place}").with_nullable(True) for place, f in enumerate(plan.schema)]
        positional = OutputPlan(
            plan.how, pa.schema(output), plan.sources, plan.master_columns, plan.stream_keys, plan.master_keys
        )
        wide, shown = widened(positional, POSITIONAL, ROOM_COLUMNS)
        visible = len(output) - bool(self.unmatched)
        return EnrichTask(
            name="sales",
            table=Address.of(self.table),
            pin=Pin(None, QUERY, batch),
            algorithm=self.algorithm,
            parameters={},
            order="any",
            plan=wide,
            master_schema=read,
            declared=pa.schema([*output[:visible], pa.field("statistics", pa.string())]),
            memory_bytes=4_000_000,
            stream_names=tuple(STREAM.names),
            dead_letters=self.dead_letters,
            shown=shown[:visible],
            flag_at=shown[-1] if self.unmatched else None,
            unmatched="park" if self.parks else "drop",
            keeps_null_keys=self.how == "left",
            room=RoomUse(Address.of(self.room), self.slots, self.max_wait, self.retry, parks=self.parks),
        )

    def run(self, rows: pa.Table, *, faults: random.Random | None = None, share: float = 0.3) -> pa.Table:
        """Run a micro-batch to its end, through attempts that fail; return the rows that left."""
        begin = self.offset or self.reader().initialOffset()
        tickets, end = self.reader().read(begin)
        tickets = list(tickets)
        left: list[pa.Table] = []
        counted: list[dict[str, Any]] = []
        for slot in range(self.slots):
            part = self.arriving(rows, [ticket for number, ticket in tickets if number == slot], slot)
            if part.num_rows:
                output, statistics = self.attempted(part, faults, share)
                left.append(output)
                counted.append(statistics)
        again = list(self.reader().readBetweenOffsets(begin, end))
        assert again == tickets, "a replay has the same tickets"
        self.offset, self.batch, self.now = end, self.batch + 1, self.now + 1.0
        self.out += left
        self.statistics.append(counted)
        return pa.concat_tables(left) if left else pa.table({})

    def arriving(self, rows: pa.Table, tickets: list[str], slot: int) -> pa.Table:
        mine = rows.filter(pa.array(rows["key"].to_numpy(zero_copy_only=False) % self.slots == slot))
        nothing = [pa.nulls(len(tickets), kind) for kind in STREAM.types]
        of_tickets = pa.table([*nothing, [slot] * len(tickets), tickets], schema=ARRIVING)
        of_rows = pa.table(
            [*mine.columns, pa.array([slot] * mine.num_rows, pa.int32()), pa.nulls(mine.num_rows, pa.string())],
            schema=ARRIVING,
        )
        return pa.concat_tables([of_rows, of_tickets])

    def attempted(self, rows: pa.Table, faults: random.Random | None, share: float) -> tuple[pa.Table, dict[str, Any]]:
        for _ in range(20):
            order = list(range(rows.num_rows))
            if faults is not None:
                faults.shuffle(order)  # a shuffle does not keep the order of its input
            shuffled = rows.take(order)
            try:
                batches = self.attempt(shuffled, faults if faults and faults.random() < share else None)
            except KilledError:
                continue
            whole = pa.Table.from_batches(batches)
            statistics = json.loads(whole["statistics"][whole.num_rows - 1].as_py())
            return whole.slice(0, whole.num_rows - 1).drop_columns(["statistics"]), statistics
        raise AssertionError("all attempts were killed")

    def attempt(self, rows: pa.Table, faults: random.Random | None = None) -> list[pa.RecordBatch]:
        """Return what an attempt puts out; one with faults is killed somewhere, perhaps after its put."""
        output = self.task(self.batch)(iter(rows.to_batches(max_chunksize=400)))
        if faults is None:
            return list(output)
        for _ in range(faults.randrange(4)):
            next(output, None)
        if faults.random() < 0.5:
            for batch in output:
                if batch["statistics"].null_count < batch.num_rows:
                    break  # the file has been put, and then the worker is lost
        output.close()  # type: ignore[attr-defined]
        raise KilledError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let the tasks of a query see its time, and run in a worker of their own."""
    worker = Worker()
    monkeypatch.setattr(tasks, "WORKER", worker)
    monkeypatch.setattr(runs, "WORKER", worker)
    monkeypatch.setattr(runs, "_claimed", set())

    def follow(query: Query) -> Query:
        monkeypatch.setattr(runs.time, "time", lambda: query.now)  # the module that all of them share
        return query

    return follow  # type: ignore[return-value]


def sales(first: int, count: int, keys: int, seed: int) -> pa.Table:
    drawn = np.random.default_rng(seed).integers(0, keys, count)
    return pa.table([np.arange(first, first + count), drawn], schema=STREAM)


def master_rows(keys: np.ndarray, version: int) -> pa.Table:
    return pa.table({"key": keys, "changed": np.full(len(keys), version), "pad": ["x" * 50] * len(keys)})
