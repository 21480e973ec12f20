"""Every page choice keeps the contract and does what its name says."""

from __future__ import annotations

import numpy as np
import pytest
from page_choice_contract import PageChoiceContract

from semistream.core.arrays import Int64Array
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.contract import Moment, PageChoice
from semistream.policies.page_choice import (
    AtPosition,
    DueFrequent,
    EveryTuple,
    FullSlot,
    OldestAndYoungest,
    OldestWaiting,
    PlannedRuns,
    Ring,
)


class TestOldestWaiting(PageChoiceContract):
    def make(self) -> PageChoice:
        return OldestWaiting()


class TestAtTheYoungEnd(PageChoiceContract):
    def make(self) -> PageChoice:
        return AtPosition(0.3)


class TestAtTheOldEnd(PageChoiceContract):
    def make(self) -> PageChoice:
        return AtPosition(1.0, 1.0)


class TestDueFrequent(PageChoiceContract):
    def make(self) -> PageChoice:
        return DueFrequent(entry=1.0)


class TestDueFrequentWithoutDecay(PageChoiceContract):
    def make(self) -> PageChoice:
        return DueFrequent(decay=None, entry=1.0)


class TestEveryTuple(PageChoiceContract):
    def make(self) -> PageChoice:
        return EveryTuple()


class TestFullSlot(PageChoiceContract):
    may_wait = True

    def make(self) -> PageChoice:
        return FullSlot(threshold=6)


class TestFullSlotWithATrickle(PageChoiceContract):
    may_wait = True

    def make(self) -> PageChoice:
        return FullSlot(threshold=6, trickle=2)


class TestOldestAndYoungest(PageChoiceContract):
    def make(self) -> PageChoice:
        return OldestAndYoungest()


class TestPlannedRuns(PageChoiceContract):
    reads_for_nobody = True

    def make(self) -> PageChoice:
        return PlannedRuns(request_seconds=2.0, page_group_seconds=1.0, run_page_groups=3)


class TestPlannedRunsByCountAlone(PageChoiceContract):
    def make(self) -> PageChoice:
        return PlannedRuns(request_seconds=0.0, page_group_seconds=1.0, run_page_groups=1, by_age=False)


class TestRing(PageChoiceContract):
    reads_for_nobody = True

    def make(self) -> PageChoice:
        return Ring()


def queue_of(*homes: int, page_groups: int = 10, capacity: int = 20) -> WaitingTuples:
    queue = WaitingTuples(page_groups, capacity, positions=True, youngest=True, since=True)
    queue.add(np.arange(len(homes)), np.array(homes, dtype=np.int32), np.arange(len(homes)))
    return queue


def chosen(choice: PageChoice, queue: WaitingTuples, *, pending: bool = True) -> list[int]:
    return choice.choose(queue, Moment(input_pending=pending)).tolist()


def test_the_ring_visits_every_page_group_once_per_round() -> None:
    queue, ring = queue_of(4), Ring()
    assert [chosen(ring, queue)[0] for _ in range(25)] == [number % 10 for number in range(25)]


def test_every_tuple_is_looked_up_on_its_own() -> None:
    assert chosen(EveryTuple(), queue_of(4, 2, 4, 9)) == [4, 4, 2, 9]


def test_a_full_slot_is_read_and_a_half_full_one_waits() -> None:
    choice = FullSlot(threshold=3)
    assert chosen(choice, queue_of(4, 2, 4, 9)) == []
    assert chosen(FullSlot(threshold=2), queue_of(4, 2, 4, 9)) == [4]
    assert chosen(FullSlot(threshold=9), queue_of(4, 2, 4, 9), pending=False) == [4]
    assert chosen(FullSlot(threshold=9), queue_of(4, 2, 4, 9, capacity=4)) == [4]


def test_a_trickle_is_looked_up_at_once_and_a_full_input_waits() -> None:
    choice = FullSlot(threshold=9, trickle=2)
    queue = queue_of(4)
    assert choice.choose(queue, Moment(input_pending=True, input_fill=3)).tolist() == []
    queue.add(np.array([7, 8]), np.array([2, 6], dtype=np.int32), np.array([7, 8]))
    look_ups = []
    for fill in (2, 0, 0):  # the second call is for the second page group, and the first tuple goes on waiting
        page_groups = choice.choose(queue, Moment(input_pending=True, input_fill=fill))
        look_ups += page_groups.tolist()
        queue.drain(page_groups)
    assert look_ups == [2, 6]


def test_positions_are_counted_from_the_young_end() -> None:
    queue = queue_of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    assert [chosen(AtPosition(share), queue)[0] for share in (0.0, 0.3, 0.5, 1.0)] == [9, 6, 4, 0]


def test_the_oldest_goes_first_once_patience_ends() -> None:
    queue = queue_of(7, 1, 1, 1, capacity=4)
    choice = AtPosition(0.0, patience=2.0)
    seen = []
    while queue.counts[7]:
        seen.append(chosen(choice, queue)[0])
        queue.drain(np.array(seen[-1:]))
        room = queue.capacity - queue.count
        queue.add(np.zeros(room, dtype=np.int64), np.ones(room, dtype=np.int32), np.zeros(room, dtype=np.int64))
    assert seen == [1, 1, 7]


@pytest.mark.parametrize(("share", "patience"), [(-0.1, 1.0), (1.1, 1.0), (0.3, 5.0)])
def test_a_position_that_makes_no_sense_is_refused(share: float, patience: float) -> None:
    with pytest.raises(ValueError, match=r"share|patience"):
        AtPosition(share, patience)


@pytest.mark.parametrize(
    ("buffer", "loading", "expected"), [(0, (), 3), (1, (), 1), (0, (3,), 5), (1, (1,), 5), (0, (3, 5), 1)]
)
def test_each_of_two_buffers_has_its_end_of_the_queue(buffer: int, loading: tuple[int, ...], expected: int) -> None:
    moment = Moment(input_pending=True, buffer=buffer, loading=loading)
    assert OldestAndYoungest().choose(queue_of(3, 5, 1), moment).tolist() == [expected]


def test_a_frequent_page_that_nobody_waits_for_is_dropped_from_the_schedule() -> None:
    choice = DueFrequent(entry=1.0, eagerness=0.1)
    queue = queue_of(2, 3)
    choice.after_read(3, 2, queue)
    choice.after_read(5, 9, queue)  # frequent, due after one more tuple
    queue.add(np.array([0]), np.array([2], dtype=np.int32), np.array([0]))
    assert chosen(choice, queue) == [2]
    queue.add(np.array([0]), np.array([5], dtype=np.int32), np.array([0]))
    assert chosen(choice, queue) == [2]


def test_a_frequent_page_that_finds_the_priority_queue_full_stays_outside() -> None:
    choice = DueFrequent(entry=1.0, max_pages=1)
    queue = queue_of(2, 3)
    choice.after_read(3, 2, queue)
    choice.after_read(5, 9, queue)
    choice.after_read(6, 9, queue)
    assert (choice.is_frequent(5), choice.is_frequent(6), choice.frequent_count) == (True, False, 1)


def planned(queue: WaitingTuples, *, request: float, share: float = 0.5, by_age: bool = False) -> list[int]:
    choice = PlannedRuns(
        request_seconds=request, page_group_seconds=1.0, run_page_groups=100, share=share, by_age=by_age
    )
    return chosen(choice, queue)


def test_a_plan_serves_the_page_groups_that_most_wait_for() -> None:
    queue = queue_of(1, 5, 5, 5, 5, 8, page_groups=10)
    assert planned(queue, request=0.0) == [5]


def test_a_gap_is_read_where_that_is_cheaper_than_another_request() -> None:
    homes = [2] * 8 + [4] * 8
    assert planned(queue_of(*homes), request=0.5, share=0.9) == [2, 4]
    assert planned(queue_of(*homes), request=3.0, share=0.9) == [2, 3, 4]


def test_a_plan_is_the_best_set_of_runs() -> None:
    """Against all subsets of page groups: no other has a better sum of scores less cost for the plan's theta."""
    random = np.random.default_rng(4)
    for _ in range(40):
        counts = random.integers(0, 6, 9)
        queue = queue_of(*np.repeat(np.arange(9), counts).tolist(), page_groups=9, capacity=60)
        if not queue.count:
            continue
        choice = PlannedRuns(request_seconds=1.5, page_group_seconds=1.0, run_page_groups=100, share=0.4, by_age=False)
        found = set(chosen(choice, queue))

        def value(subset: set[int], counts: Int64Array = counts, theta: float = choice.theta) -> float:
            starts = sum(page_group - 1 not in subset for page_group in subset)
            return float(sum(counts[list(subset)])) - theta * (len(subset) + 1.5 * starts)

        assert sum(counts[list(found)]) >= 0.4 * queue.count - 1
        best = max(value({place for place in range(9) if bits >> place & 1}) for bits in range(1, 512))
        assert value(found) >= best - 1e-9


def test_age_brings_forward_what_few_wait_for() -> None:
    queue = WaitingTuples(4, 1000, since=True)
    queue.add(np.zeros(2, dtype=np.int64), np.array([3, 3], dtype=np.int32), np.arange(2))
    homes = np.repeat(np.array([0, 1], dtype=np.int32), [310, 290])
    queue.add(np.zeros(600, dtype=np.int64), homes, np.arange(600))
    assert planned(queue, request=0.0, share=0.3, by_age=False) == [0]
    first = WaitingTuples(4, 100, since=True)  # the limit of patience: three times what can wait
    first.add(np.zeros(1, dtype=np.int64), np.array([3], dtype=np.int32), np.arange(1))
    for _ in range(10):
        first.add(np.zeros(50, dtype=np.int64), np.zeros(50, dtype=np.int32), np.arange(50))
        first.drain(np.array([0]))
    first.add(np.zeros(90, dtype=np.int64), np.zeros(90, dtype=np.int32), np.arange(90))
    assert 3 in planned(first, request=0.0, share=0.01)


def test_a_plan_follows_the_costs_that_were_measured() -> None:
    homes = (2, 2, 2, 4, 4, 4)
    choice = PlannedRuns(request_seconds=10.0, page_group_seconds=1.0, run_page_groups=100, share=0.9, by_age=False)
    assert chosen(choice, queue_of(*homes)) == [2, 3, 4]
    choice.learn_costs(0.1, 1.0)
    assert chosen(choice, queue_of(*homes)) == [2, 4]
