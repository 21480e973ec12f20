"""Waiting tuples of which a read answers a range of lists."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.engine.waiting.waiting_for_ranges import WaitingForRanges


def waiting_for(reach: int, places: list[int], page_groups: int = 10, **made_with: bool) -> WaitingForRanges:
    """Return tuples that wait for these page groups, each of which reaches over so many lists."""
    last = np.minimum(np.arange(page_groups) + reach, page_groups) - 1
    waiting = WaitingForRanges(last, 40, **made_with)
    add(waiting, places)
    return waiting


def add(waiting: WaitingForRanges, places: list[int]) -> None:
    references = np.arange(waiting.entered, waiting.entered + len(places))
    assert waiting.add(references * 7, np.array(places, dtype=np.int32), references) == len(places)


def test_a_read_of_a_range_answers_all_of_its_lists_together() -> None:
    waiting = waiting_for(3, [4, 6, 3, 5, 9, 4])
    drained = waiting.drain(np.array([4, 9]))
    answered = np.split(drained.references, drained.bounds[1:-1])
    assert [sorted(part.tolist()) for part in answered] == [[0, 1, 3, 5], [4]]
    assert waiting.in_order_of_age().tolist() == [3]


def test_where_ranges_overlap_the_first_takes_what_is_in_both() -> None:
    waiting = waiting_for(3, [5, 6, 7])
    assert waiting.drain(np.array([4, 5, 0])).bounds.tolist() == [0, 2, 3, 3]
    assert waiting.count == 0
    assert waiting.drain(np.array([], dtype=np.int64)).bounds.tolist() == [0]


@pytest.mark.parametrize("places", [[6, 4, 5, 4], [4, 6, 5], [5, 6, 4, 5]])
def test_the_oldest_tuple_of_a_range_comes_first(places: list[int]) -> None:
    assert waiting_for(3, places).drain(np.array([4])).references[0] == 0


def test_a_range_is_waited_for_if_one_of_its_lists_is() -> None:
    waiting = waiting_for(3, [6])
    assert [place for place in range(10) if waiting.waits_for(place)] == [4, 5, 6]


@pytest.mark.parametrize("reach", [1, 2, 5, 20])
def test_random_operations_agree_with_a_list(reach: int) -> None:
    random = np.random.default_rng(reach)
    waiting, model = waiting_for(reach, [], 20, positions=True, youngest=True), list[tuple[int, int]]()
    for _ in range(300):
        room = waiting.capacity - waiting.count
        places = random.integers(0, 20, random.integers(0, room + 1)).tolist()
        model += zip(range(waiting.entered, waiting.entered + len(places)), places, strict=True)
        add(waiting, places)
        chosen = max(0, waiting.oldest()) if random.random() < 0.5 else int(random.integers(0, 20))
        answered = [reference for reference, place in model if chosen <= place < chosen + reach]
        assert waiting.waits_for(chosen) == bool(answered)
        drained = waiting.drain(np.array([chosen]))
        assert sorted(drained.references.tolist()) == answered
        assert drained.references.tolist()[:1] == answered[:1]
        assert (drained.codes == drained.references * 7).all()
        model = [one for one in model if one[0] not in answered]
        waiting._check()
        assert waiting.in_order_of_age().tolist() == list(dict.fromkeys(place for _, place in model))
        if model:
            assert waiting.oldest_reference() == model[0][0]
            assert waiting.at(0.0) == waiting.youngest() == model[-1][1]
