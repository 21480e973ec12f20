"""Runs HYBRIDJOIN, MESHJOIN and INLJ with equal sizes on one input, and holds them against what was proved."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace

import numpy as np

from semistream.algorithms.meshjoin import PARTS
from semistream.algorithms.registry import algorithm_named
from semistream.core.arrays import Int64Array
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.costs import Operations
from semistream.core.errors import InvalidSettingError
from semistream.core.stats import JoinStats
from semistream.engine.assembly import Assembly
from semistream.engine.phases.stream_input import KeyInput
from semistream.generator import ConstantArrivals, KeySource, Workload, ZipfKeys
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.measuring.read_log import ReadLog, logged
from semistream_lab.experiments.point import PARTITIONS, Point, Row, Scalar

ALGORITHMS = ("hybridjoin", "meshjoin", "inlj")
_LOOKED_UP_TUPLES = 2_000
_TRICKLE_PER_SECOND = 1.0
_TRICKLE_TUPLES = 2_000


@dataclass(frozen=True)
class Layout:
    """How the master table and the waiting tuples are cut, the same for HYBRIDJOIN and MESHJOIN.

    Where HYBRIDJOIN reads from a key on, these are the page groups that would be aligned.
    """

    rows: int
    page_group_rows: int
    page_groups: int
    waiting_slots: int


class Positions:
    """Gives the key at each position of a stream by a rule."""

    def __init__(self, name: str, layout: Layout) -> None:
        self._name = name
        self._layout = layout
        self._next = 0

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""
        position = np.arange(self._next, self._next + count, dtype=np.int64)
        self._next += count
        layout = self._layout
        if self._name == "one key":
            return np.full(count, layout.rows // 2, dtype=np.int64)
        # A round of blocks is just longer than the queue: a read meets one block, which is as long as MESHJOIN's part.
        block = -(-layout.waiting_slots // layout.page_groups) if self._name == "blocks" else 1
        page_group = position // block % layout.page_groups
        keys: Int64Array = np.minimum(page_group * layout.page_group_rows + 1 + position % block, layout.rows)
        return keys


def run(point: Point) -> Row:
    """Run the three on the input that the option `input` names, for as many queues as the point says."""
    name = str(dict(point.options).get("input", "zipf"))
    row: dict[str, Scalar] = {}
    layout = _layout(point.without_options(PARTITIONS))
    for algorithm in ALGORITHMS:
        if name == "trickle" and algorithm == "meshjoin":
            continue  # it would wait for the stream
        stats, operations, log = _run_one(point, algorithm, name, layout)
        row.update({f"{algorithm}_{key}": value for key, value in asdict(operations).items()})
        row[f"{algorithm}_tuples"] = stats.tuples_out
        row[f"{algorithm}_reads"] = stats.read_requests
        if algorithm == "hybridjoin":
            row.update(_properties(log, layout, stats))
        if algorithm != "inlj":
            alone = replace(point, algorithm=algorithm)
            each_rows = rates.page_rows_of(alone) if rates.reads_from_key(alone) else layout.page_group_rows
            row[f"{algorithm}_unreferenced_reads"] = _beyond_half(log, layout, each_rows)
    return row


def _properties(log: ReadLog, layout: Layout, stats: JoinStats) -> Mapping[str, Scalar]:
    gap = log.min_gap()
    return {
        "reads_in_vain": sum(answered < 1 for answered in log.answered),
        "fewest_answered": min(log.answered),
        "min_gap_queues": None if gap is None else gap / layout.waiting_slots,
        "reads_per_tuple": stats.read_requests / stats.tuples_out,
        "waiting_slots": layout.waiting_slots,
        "page_groups": layout.page_groups,
    }


def _beyond_half(log: ReadLog, layout: Layout, each_rows: int) -> int:
    """Return the reads of page groups that lie wholly in the second half of the table.

    One begins every `each_rows`: a page group of the layout, or a page where reads begin at keys.
    """
    first = -(-layout.rows // 2 // layout.page_group_rows) + 1
    return sum(page_group * each_rows >= first * layout.page_group_rows for page_group in log.page_groups)


def _assembly(point: Point, algorithm: str, clock: ModelClock) -> tuple[Assembly, ReadLog]:
    recipe, log = logged(algorithm_named(algorithm))
    store = rates.table_of(replace(point, algorithm=algorithm))
    parameters = {}
    if algorithm == "meshjoin":
        reference = Assembly(
            algorithm_named("hybridjoin"), store, MemoryBudget(point.memory_bytes), clock, accounting="papers"
        )
        parameters = {PARTS.name: max(1, round(store.page_count / reference.sizes.pages_per_read))}
    assembly = Assembly(
        recipe,
        store,
        MemoryBudget(point.memory_bytes),
        clock,
        accounting="papers",
        parameters=parameters,
        partitions=point.partitions,
    )
    return assembly, log


def _layout(point: Point) -> Layout:
    assembly, _ = _assembly(point, "hybridjoin", ModelClock(rates.costs_of(point)))
    pages = assembly.sizes.pages_per_read
    rows = pages * (rates.PAGE_BYTES // rates.ROW_BYTES)
    return Layout(point.master_rows, rows, assembly.reader.page_group_count, assembly.sizes.waiting_slots)


def _workload(point: Point, name: str, layout: Layout) -> Workload:
    keys: KeySource
    if name == "zipf":
        keys = rates.keys_of(point)
    elif name in ("half", "trickle"):
        keys = ZipfKeys(point.master_rows // (2 if name == "half" else 1), 0.0, seed=point.seed)
    elif name in ("blocks", "one by one", "one key"):
        keys = Positions(name, layout)
    else:
        raise InvalidSettingError(f"There is no hard input {name!r}.")
    return Workload(keys, ConstantArrivals(_TRICKLE_PER_SECOND) if name == "trickle" else None)


def _run_one(point: Point, algorithm: str, name: str, layout: Layout) -> tuple[JoinStats, Operations, ReadLog]:
    """Run until the queue has been filled and emptied as often as the point says; what fills it is not counted."""
    clock = ModelClock(rates.costs_of(point))
    assembly, log = _assembly(point, algorithm, clock)
    chunks = _workload(point, name, layout).chunks(assembly.sizes.chunk_rows)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    rounds = loop.rounds()
    slots = layout.waiting_slots
    warm, wanted = 2 * slots, round(point.queues * slots)
    if algorithm == "inlj":
        warm, wanted = 0, _LOOKED_UP_TUPLES
    if name == "trickle":
        warm, wanted = 0, _TRICKLE_TUPLES
    try:
        for _ in rounds:
            if assembly.stats.tuples_out >= warm:
                break
        before, work = copy(assembly.stats), copy(clock.operations)
        log.clear()
        for _ in rounds:
            if assembly.stats.tuples_out - before.tuples_out >= wanted:
                break
    finally:
        loop.close()
        rounds.close()
    return assembly.stats.since(before), clock.operations.since(work), log
