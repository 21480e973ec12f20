"""The costs of single operations, timed in the sizes of a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.arrays import Int64Array
from semistream.core.costs import NO_COSTS, PAPERS
from semistream.generator import ZipfKeys
from semistream.store.contract import PageSet
from semistream.store.memory import MemoryStore
from semistream.store.wrapping import WrappingStore
from semistream_lab.cost import Situation, bare_rounds, engine_times, predict
from semistream_lab.cost.bare_rounds import BareRounds, measure_round
from semistream_lab.cost.engine_times import EngineTimes, can_be_timed

ROWS, MEMORY_BYTES = 20_000, 1_000_000
IN_TURN = [name for name, recipe in ALGORITHMS.items() if can_be_timed(recipe)]


class FakeTime:
    """A clock that only reads move."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class SlowStore(WrappingStore):
    """Lets a fake clock pass with each request."""

    def __init__(self, inside: MemoryStore, clock: FakeTime, seconds: float) -> None:
        super().__init__(inside)
        self._clock, self._seconds = clock, seconds

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        self._clock.now += self._seconds * len(first_pages)
        return self.inside.read(first_pages, last_pages)


def store() -> MemoryStore:
    return MemoryStore.of_codes(ROWS, row_bytes=120)


@pytest.mark.parametrize("name", IN_TURN)
def test_a_read_costs_what_the_store_takes_and_nothing_else_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeTime()
    monkeypatch.setattr(engine_times, "time", clock)
    monkeypatch.setattr(bare_rounds, "time", clock)
    times = EngineTimes(
        ALGORITHMS[name],
        SlowStore(store(), clock, 0.002),
        ZipfKeys(ROWS, 0.8, seed=1, ranks="sorted"),
        memory=MEMORY_BYTES,
        accounting="papers",
    )
    times.measure(0.05)
    costs = times.profile()
    assert costs.seek_seconds == pytest.approx(0.002)
    assert replace(costs, name="none", seek_seconds=0, request_seconds=0, row_seconds=None) == NO_COSTS


@pytest.mark.parametrize("name", ["hybridjoin", "x-hybridjoin", "optimised-x-hybridjoin", "meshjoin", "cachejoin"])
def test_timed_costs_are_costs_and_give_a_prediction(name: str) -> None:
    keys = ZipfKeys(ROWS, 1.0, seed=1, ranks="sorted")
    times = EngineTimes(ALGORITHMS[name], store(), keys, memory=MEMORY_BYTES, accounting="papers")
    times.measure(0.01)
    costs = times.profile()
    assert costs.seek_seconds > 0
    assert costs.round_seconds >= 0
    assert np.isfinite(predict(name, Situation(ROWS, MEMORY_BYTES, 1.0), costs).service_rate)


def test_algorithms_whose_phases_overlap_cannot_be_timed_one_operation_after_the_other() -> None:
    assert {"hybridjoin", "inlj", "meshjoin", "x-hybridjoin", "optimised-x-hybridjoin"} <= set(IN_TURN)
    assert not {"p-cachejoin", "op-cachejoin", "demandjoin"} & set(IN_TURN)


def test_a_bare_round_serves_few_tuples() -> None:
    rounds = BareRounds(ALGORITHMS["hybridjoin"])
    for _ in range(200):
        rounds.make_one()
    assert 1 <= rounds.tuples_per_round <= 10
    assert measure_round(rounds=20, repeats=1) > 0


@pytest.mark.parametrize("name", ["inlj", "meshjoin", "hybridjoin", "x-hybridjoin", "optimised-x-hybridjoin", "ssij"])
def test_a_prediction_charges_a_round_once_for_each_read(name: str) -> None:
    situation = Situation(ROWS, MEMORY_BYTES, 0.8)
    plain, with_rounds = (
        predict(name, situation, replace(PAPERS, round_seconds=seconds)).seconds_per_iteration
        for seconds in (0.0, 0.01)
    )
    per_read = 1 / 32 if name == "inlj" else 1.0
    assert with_rounds - plain == pytest.approx(0.01 * per_read)


def test_pinned_page_groups_that_answer_cost_their_calls() -> None:
    situation = Situation(ROWS, MEMORY_BYTES, 1.0)
    plain, with_answers = (
        predict("x-hybridjoin", situation, replace(PAPERS, answer_seconds=seconds)).seconds_per_iteration
        for seconds in (0.0, 0.01)
    )
    assert with_answers - plain == pytest.approx(0.01, rel=0.01)


def test_rows_of_pages_can_cost_less_than_look_ups() -> None:
    situation = Situation(200_000, 5_000_000, 0.8)
    papers, ours = (
        predict("hybridjoin", situation, replace(PAPERS, row_seconds=seconds)).seconds_per_iteration
        for seconds in (None, 0.0)
    )
    assert papers - ours == pytest.approx(PAPERS.probe_seconds * 884, rel=0.01)
