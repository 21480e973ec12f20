"""Waiting tuples behave as a plain list of tuples in order of arrival does."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.contract import Moment
from semistream.policies.page_choice import AtPosition


class ListModel:
    """The papers' queue: one entry a tuple, oldest first."""

    def __init__(self) -> None:
        self.tuples: list[tuple[int, int, int]] = []

    def add(self, codes: list[int], page_groups: list[int], references: list[int]) -> None:
        self.tuples += zip(codes, page_groups, references, strict=True)

    def drain(self, page_group: int) -> list[tuple[int, int]]:
        drained = [(code, reference) for code, home, reference in self.tuples if home == page_group]
        self.tuples = [entry for entry in self.tuples if entry[1] != page_group]
        return drained

    def by_age(self) -> list[int]:
        return list(dict.fromkeys(home for _, home, _ in self.tuples))

    def by_youth(self) -> list[int]:
        return list(dict.fromkeys(home for _, home, _ in reversed(self.tuples)))


def assert_same(waiting: WaitingTuples, model: ListModel) -> None:
    waiting._check()
    assert waiting.count == len(model.tuples)
    assert waiting.in_order_of_age().tolist() == model.by_age()
    for rank in range(3):
        assert waiting.oldest(rank) == (model.by_age()[rank : rank + 1] or [-1])[0]
        assert waiting.youngest(rank) == (model.by_youth()[rank : rank + 1] or [-1])[0]
    if not model.tuples:
        assert waiting.fullest() == -1
        return
    homes = [home for _, home, _ in model.tuples]
    assert homes.count(waiting.fullest()) == max(map(homes.count, homes))
    assert waiting.oldest_reference() == model.tuples[0][2]
    for share in (0.0, 0.3, 0.99, 1.0):
        rank = min(len(homes) - 1, int(share * len(homes)))
        assert waiting.at(share) == homes[len(homes) - 1 - rank]


@pytest.mark.parametrize("seed", range(12))
def test_random_operations_agree_with_a_list(seed: int) -> None:
    random = np.random.default_rng(seed)
    page_groups, capacity = int(random.integers(1, 40)), int(random.integers(1, 300))
    waiting = WaitingTuples(page_groups, capacity, positions=True, youngest=True)
    model = ListModel()
    reference = 2**32 - 500  # so that references wrap around in the middle of the test
    for step in range(150):
        # The ring of positions asks who reads out of turn to look after the oldest within four capacities.
        overdue = waiting.oldest_lag() >= 4 * waiting.capacity
        if not overdue and random.random() < 0.6:
            count = int(random.integers(0, capacity + 20))
            codes = random.integers(-(2**63), 2**63 - 1, count)
            homes = np.minimum(random.zipf(1.5, count) - 1, page_groups - 1).astype(np.int32)
            references = (reference + np.arange(count)) % 2**32
            room = waiting.capacity - waiting.count
            assert waiting.add(codes, homes, references) == min(room, count)
            added = slice(0, min(room, count))
            model.add(codes[added].tolist(), homes[added].tolist(), references[added].tolist())
            reference += min(room, count)
        else:
            oldest = [max(waiting.oldest(), 0)] if overdue else []
            chosen = oldest + random.integers(0, page_groups, int(random.integers(1, 4))).tolist()
            drained = waiting.drain(np.array(chosen, dtype=np.int64))
            for index, page_group in enumerate(chosen):  # a repeated page group has nothing left
                low, high = drained.bounds[index], drained.bounds[index + 1]
                found = zip(drained.codes[low:high].tolist(), drained.references[low:high].tolist(), strict=True)
                assert list(found) == model.drain(page_group)
        assert_same(waiting, model)
        if step % 40 == 39:
            waiting.drain(np.arange(page_groups, dtype=np.int64))
            model.tuples.clear()
            capacity = int(random.integers(1, 300))
            waiting.resize(capacity)
            assert waiting.capacity == capacity
            assert_same(waiting, model)


def test_a_full_queue_takes_no_more_whatever_the_page_groups() -> None:
    for page_groups in (1, 3, 100):
        waiting = WaitingTuples(page_groups, 50)
        for _ in range(5):
            codes = np.arange(60)
            assert waiting.add(codes, (codes % page_groups).astype(np.int32), codes) == 50
            assert waiting.add(codes[:1], np.zeros(1, dtype=np.int32), codes[:1]) == 0
            waiting._check()
            assert len(waiting.drain(np.arange(page_groups)).codes) == 50
            waiting._check()


def test_with_positions_it_cannot_be_resized_while_tuples_wait() -> None:
    waiting = WaitingTuples(2, 4, positions=True)
    waiting.add(np.array([1]), np.zeros(1, dtype=np.int32), np.array([0]))
    with pytest.raises(AssertionError):
        waiting.resize(8)


@pytest.mark.parametrize("seed", range(20))
def test_tuples_that_wait_survive_any_resizing_in_their_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    page_groups = int(random.integers(1, 60))
    waiting = WaitingTuples(page_groups, 400, since=True)
    model = WaitingTuples(page_groups, 4_000, since=True)
    for number in range(40):
        count = int(random.integers(0, 200))
        codes = random.integers(0, 1000, count)
        places = (codes % page_groups).astype(np.int32)
        added = waiting.add(codes, places, np.arange(count) + 200 * number)
        model.add(codes[:added], places[:added], np.arange(added) + 200 * number)
        for queue in (waiting, model):
            drained = queue.drain(np.array([queue.oldest()] if queue.count else [], dtype=np.int64))
        waiting.resize(waiting.count + int(random.integers(0, 500)))
        waiting._check()
        assert np.array_equal(waiting.in_order_of_age(), model.in_order_of_age())
        assert np.array_equal(waiting.counts, model.counts)
    ours, theirs = (queue.drain(np.arange(page_groups)) for queue in (waiting, model))
    assert np.array_equal(ours.codes, theirs.codes)
    assert np.array_equal(ours.references, theirs.references)
    assert drained is not None


@pytest.mark.parametrize("seed", range(5))
def test_the_position_is_right_even_when_a_stream_lets_old_tuples_wait_as_long_as_it_can(seed: int) -> None:
    """One old tuple each for many pages; then most new tuples go to the page that is read next, being the oldest.

    So more than five times the capacity enters while the last old one waits. The choice must still name the page of the
    tuple at the position.
    """
    capacity, pages = 64, 40
    random = np.random.default_rng(seed)
    waiting = WaitingTuples(pages, capacity, positions=True)
    choice = AtPosition(0.3, 4.0)
    model = ListModel()
    entered = 0

    def enter(home: int) -> None:
        nonlocal entered
        waiting.add(np.array([home]), np.array([home], dtype=np.int32), np.array([entered]))
        model.add([home], [home], [entered])
        entered += 1

    for home in range(pages - 1):
        enter(home)
    for _ in range(400):
        while waiting.count < capacity:
            late = random.random() < 0.3 or waiting.oldest_lag() < 4 * capacity
            enter(int(pages - 1 - random.integers(0, 2)) if late else waiting.oldest())
        page = int(choice.choose(waiting, Moment(input_pending=True))[0])
        if waiting.oldest_lag() >= 4 * capacity:
            assert page == model.by_age()[0]
        else:
            rank = int(0.3 * len(model.tuples))
            assert page == model.tuples[len(model.tuples) - 1 - rank][1]
        waiting.drain(np.array([page]))
        model.drain(page)
        waiting._check()
