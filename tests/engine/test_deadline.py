"""A bound on the wait of every tuple, in seconds."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.costs import PAPERS, SSD, CostProfile
from semistream.core.stats import JoinStats
from semistream.engine.assembly import Assembly
from semistream.engine.phases.stream_input import KeyInput
from semistream.engine.waiting.deadline import Deadline
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.generator import ArrivalSource, IntermittentArrivals, Workload, ZipfKeys
from semistream.policies.phasing import WithinDeadline
from semistream.store.memory import MemoryStore

ROWS = 100_000
SCAN_SECONDS = ROWS * 120 / PAPERS.bytes_per_second


def joined(
    deadline: float, tuples: int, arrivals: ArrivalSource | None = None, costs: CostProfile = PAPERS
) -> JoinStats:
    store = MemoryStore.of_codes(ROWS, row_bytes=120, page_bytes=4_000)
    clock = ModelClock(costs)
    parameters = {"deadline": deadline}
    recipe = algorithm_named("demandjoin")
    assembly = Assembly(recipe, store, MemoryBudget("4MB"), clock, accounting="papers", parameters=parameters)
    chunks = Workload(ZipfKeys(ROWS, 1.0, seed=3, ranks="shuffled"), arrivals).chunks(4096, tuples)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    for _ in loop.rounds():
        pass
    assert assembly.stats.tuples_out == tuples
    return assembly.stats


@pytest.mark.parametrize("deadline", [0.5, 3.0, 3 * SCAN_SECONDS])
def test_no_tuple_of_an_endless_stream_waits_longer_inside_the_join(deadline: float) -> None:
    assert joined(deadline, 20_000).max_wait_seconds < deadline


def test_without_a_deadline_tuples_wait_longer() -> None:
    assert joined(0, 100_000).max_wait_seconds > 0.5


@pytest.mark.parametrize(("costs", "scans"), [(PAPERS, 3.0), (SSD, 20.0)])
def test_no_tuple_of_an_intermittent_stream_waits_longer_from_its_arrival(costs: CostProfile, scans: float) -> None:
    deadline = scans * ROWS * 120 / costs.bytes_per_second
    arrivals = IntermittentArrivals(20_000 / deadline, on_seconds=deadline, off_seconds=4 * deadline)
    stats = joined(deadline, 100_000, arrivals, costs)
    assert 0 < stats.max_wait_seconds < deadline


def test_fewer_may_wait_when_the_longest_wait_comes_near_the_deadline_and_more_when_it_is_far() -> None:
    queue = WaitingTuples(4, 1_000)
    intake = WithinDeadline(10.0, first=100)
    assert intake.room(queue, 0) == 100
    intake.answered(100, 1.0, queue)
    assert intake.max_waiting > 100
    grown = intake.max_waiting
    intake.answered(1, 9.0, queue)
    assert intake.max_waiting < grown
    for _ in range(100):
        intake.answered(2_000, 0.1, queue)
    assert intake.max_waiting == queue.capacity
    for _ in range(100):
        intake.answered(1, 9.9, queue)
    assert intake.max_waiting == 1


def test_overdue_are_those_that_entered_half_a_deadline_ago() -> None:
    clock = ModelClock(PAPERS)
    queue = WaitingTuples(2, 100, since=True)
    deadline = Deadline(10.0, queue, clock)
    for moment in range(8):
        queue.add(np.array([moment]), np.array([moment % 2], dtype=np.int32), np.array([moment]))
        clock.sleep_until(float(moment))
        deadline.note()
        assert deadline.overdue_before() == max(0, moment - 5 + 1)
    assert deadline.waits_of(np.array([0])) == (4, 7.0)
    queue.drain(np.array([0]))
    assert deadline.waits_of(np.array([0])) == (0, 0.0)
