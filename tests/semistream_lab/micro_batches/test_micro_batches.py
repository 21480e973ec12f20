"""Tasks that join micro-batches: every row leaves once, none waits too long, and triggers tick as Spark's do."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.costs import FAR_REMOTE, PAPERS, SSD, CostProfile
from semistream.generator import ZipfKeys
from semistream_lab.experiments.measuring import rates
from semistream_lab.micro_batches.due_rows import DueRows, Overdue, Sweep
from semistream_lab.micro_batches.stream import MicroBatch, TriggeredStream
from semistream_lab.micro_batches.task import FellBehindError, MicroBatchTask, TaskAssembly
from semistream_lab.micro_batches.waiting_rows import WaitingRows

ROWS, MEMORY = 40_000, 1_000_000
ALGORITHMS = ("hybridjoin", "cachejoin-pq", "op-cachejoin", "demandjoin")
PAGES = rates.table(ROWS).page_count


def new_task(
    algorithm: str, costs: CostProfile, due: DueRows | None = None, chunk_rows: int | None = None
) -> tuple[MicroBatchTask, ModelClock]:
    clock = ModelClock(costs)
    parameters = {"threads": 1, "balance": 0} if algorithm == "demandjoin" else {}
    assembly = TaskAssembly(
        algorithm_named(algorithm),
        rates.table(ROWS),
        MemoryBudget(MEMORY),
        clock,
        accounting="papers",
        parameters=parameters,
    )
    return MicroBatchTask(assembly, clock, due=due, chunk_rows=chunk_rows), clock


def joined(task: MicroBatchTask, clock: ModelClock, *, rate: float, count: int) -> list[MicroBatch]:
    """Return micro-batches of a second each."""
    stream = TriggeredStream(ZipfKeys(ROWS, 0.8, seed=3, ranks="shuffled"), rate, 1.0, clock)
    return list(islice(stream.batches(task), count))


def rule(name: str) -> DueRows:
    return Sweep(5.0, PAGES) if name == "sweep" else Overdue(5.0, 1.0, unit_pages=4)


# Rows


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ["sweep", "overdue"])
@pytest.mark.parametrize("rate", [300.0, 9_000.0])
def test_every_row_leaves_once_also_when_the_queue_is_full(algorithm: str, name: str, rate: float) -> None:
    task, clock = new_task(algorithm, SSD, rule(name))
    batches = joined(task, clock, rate=rate, count=12)
    if rate == 300.0:  # all that wait fit into the queue
        assert max(batch.waiting for batch in batches) > 200
    task.due = None
    last = task.join(np.empty(0, dtype=np.int64), np.empty(0))
    events = np.concatenate([*(batch.left.events for batch in batches), last.events])
    given_rows = sum(batch.rows for batch in batches)
    assert len(task.waiting) == 0
    np.testing.assert_allclose(np.sort(events), np.arange(given_rows) / rate)
    assert task.stats.tuples_out == given_rows == task.stats.cache_hits + task.stats.read_hits


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ["sweep", "overdue"])
def test_no_row_waits_longer_than_it_may_and_one_micro_batch(algorithm: str, name: str) -> None:
    task, clock = new_task(algorithm, SSD, rule(name))
    for batch in joined(task, clock, rate=500.0, count=20):
        left = batch.left
        assert (left.ended - left.arrivals).max(initial=0.0) <= 5.0 + batch.seconds + 1e-6
    assert len(task.waiting) > 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_without_a_room_all_rows_leave_with_their_micro_batch(algorithm: str) -> None:
    task, clock = new_task(algorithm, SSD)
    for batch in joined(task, clock, rate=2_000.0, count=4):
        assert batch.waiting == 0
        assert len(batch.left.events) == batch.rows == 2_000


def test_chunks_that_are_answered_one_by_one_read_more_than_one_large_one() -> None:
    requests = []
    for chunk_rows in (500, None):
        task, clock = new_task("demandjoin", FAR_REMOTE, chunk_rows=chunk_rows)
        joined(task, clock, rate=4_000.0, count=2)
        requests.append(task.stats.read_requests)
    assert requests[0] > 1.5 * requests[1]


def test_a_room_reads_what_a_long_trigger_reads_while_hits_leave_at_once() -> None:
    short, short_clock = new_task("demandjoin", FAR_REMOTE)
    room, room_clock = new_task("demandjoin", FAR_REMOTE, Sweep(10.0, PAGES))
    without, with_room = (
        joined(task, clock, rate=200.0, count=40)[20:] for task, clock in ((short, short_clock), (room, room_clock))
    )
    assert room.stats.read_requests < 0.7 * short.stats.read_requests
    assert np.mean([batch.seconds for batch in with_room]) < np.mean([batch.seconds for batch in without])


def test_a_micro_batch_that_takes_too_long_is_given_up_and_the_task_goes_on() -> None:
    task, clock = new_task("hybridjoin", PAPERS)
    task.max_seconds = 0.5
    with pytest.raises(FellBehindError):
        joined(task, clock, rate=20_000.0, count=1)
    task.forget()
    task.max_seconds = float("inf")
    (batch,) = joined(task, clock, rate=10.0, count=1)
    assert len(batch.left.events) == batch.rows


# Rules


def waiting(pages: list[int], arrivals: list[float]) -> WaitingRows:
    whole = np.array(pages, dtype=np.int64)
    return WaitingRows(whole, whole.astype(np.int32), np.array(arrivals), np.array(arrivals))


@given(
    st.integers(1, 500),
    st.floats(1.0, 20.0),
    st.lists(st.floats(0.05, 3.0), min_size=1, max_size=60),
)
@settings(deadline=None, derandomize=True)
def test_a_sweep_comes_to_every_page_once_in_max_wait(pages: int, max_wait: float, steps: list[float]) -> None:
    sweep = Sweep(max_wait, pages)
    rows = waiting(list(range(pages)), [0.0] * pages)
    assert not sweep.choose(rows, 0.0).any()
    visits, moment = np.zeros(pages), 0.0
    for step in steps:
        moment += step
        visits += sweep.choose(rows, moment)
    rounds = sum(min(1.0, step / max_wait) for step in steps)
    assert visits.min() >= int(rounds - 1e-6)
    assert visits.max() <= int(rounds + 1e-6) + 1


def test_a_sweep_makes_up_for_a_micro_batch_that_comes_late() -> None:
    sweep = Sweep(10.0, 100)
    rows = waiting(list(range(100)), [0.0] * 100)
    sweep.choose(rows, 0.0)
    assert np.flatnonzero(sweep.choose(rows, 1.0)).tolist() == list(range(10))
    assert np.flatnonzero(sweep.choose(rows, 4.0)).tolist() == list(range(10, 40))
    assert sweep.choose(rows, 60.0).all()


def test_rows_that_would_be_late_take_those_along_that_wait_for_the_same_pages() -> None:
    rule = Overdue(10.0, 1.0, unit_pages=4)
    rows = waiting([0, 3, 4, 9, 11], [0.0, 8.0, 5.0, 2.0, 0.5])
    assert rule.choose(rows, 9.0).tolist() == [False] * 5
    assert rule.choose(rows, 10.0).tolist() == [True, True, False, True, True]


# Triggers


def test_a_micro_batch_begins_at_the_next_tick_or_at_once_and_takes_all_that_has_come() -> None:
    task, clock = new_task("demandjoin", FAR_REMOTE)
    batches = joined(task, clock, rate=20_000.0, count=6)
    for one, following in pairwise(batches):
        assert following.left.began == pytest.approx(max(one.left.began + 1.0, one.left.ended))
        elapsed = following.left.began - one.left.began
        assert following.rows == pytest.approx(20_000 * elapsed, abs=2)
    quick, clock = new_task("demandjoin", SSD)
    assert [batch.left.began for batch in joined(quick, clock, rate=10.0, count=3)] == pytest.approx([1.0, 2.0, 3.0])
