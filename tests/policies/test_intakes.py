"""When tuples enter, and when a read may start."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.contract import Intake
from semistream.policies.phasing import Batchwise, EqualParts, FewAtATime, Refill


def queue_with(count: int, *, capacity: int = 20, page_groups: int = 5) -> WaitingTuples:
    queue = WaitingTuples(page_groups, capacity)
    queue.add(np.arange(count), np.zeros(count, dtype=np.int32), np.arange(count))
    return queue


@pytest.mark.parametrize("intake", [Refill(), Refill(step=3), Batchwise(), FewAtATime(4), EqualParts()])
@pytest.mark.parametrize("count", [0, 1, 19, 20])
def test_no_intake_gives_more_room_than_there_is(intake: object, count: int) -> None:
    queue = queue_with(count)
    for taken in (0, 1, 3, 30):
        assert intake.room(queue, taken) <= queue.capacity - queue.count


@pytest.mark.parametrize("intake", [Refill(), Refill(step=3), Batchwise(), FewAtATime(4)])
def test_what_waits_is_read_when_no_input_is_there(intake: object) -> None:
    assert intake.ready(queue_with(2), 2, available=False, ended=False)
    assert not intake.ready(queue_with(0), 0, available=False, ended=False)


def test_refill_waits_for_nothing_but_full_slots() -> None:
    assert Refill().room(queue_with(15), 99) == 5
    assert not Refill().ready(queue_with(15), 0, available=True, ended=False)
    assert Refill().ready(queue_with(20), 0, available=True, ended=False)
    assert Refill(step=3).room(queue_with(5), 2) == 1


def test_equal_parts_wait_until_a_part_is_complete_or_the_stream_has_ended() -> None:
    parts = EqualParts()  # 20 slots, 5 page groups: parts of 4
    assert parts.room(queue_with(3), 3) == 1
    assert not parts.ready(queue_with(3), 3, available=False, ended=False)
    assert parts.ready(queue_with(4), 4, available=True, ended=False)
    assert parts.ready(queue_with(3), 3, available=False, ended=True)


def test_a_batch_takes_nothing_in_until_all_of_it_has_left() -> None:
    intake, queue = Batchwise(0.5), queue_with(10)
    assert intake.room(queue_with(4), 0) == 6
    assert intake.ready(queue, 10, available=True, ended=False)
    intake.begin(queue)
    queue.drain(np.array([1]))
    assert intake.room(queue, 0) == 0
    assert intake.ready(queue, 0, available=True, ended=False)
    queue.drain(np.array([0]))
    assert intake.room(queue, 0) == 10
    queue.add(np.arange(3), np.zeros(3, dtype=np.int32), np.arange(3))
    assert intake.room(queue, 3) == 7


@pytest.mark.parametrize("intake", [Refill(), Refill(step=3), Batchwise(), FewAtATime(4), EqualParts()])
def test_to_ask_an_intake_changes_nothing(intake: Intake) -> None:
    queue = queue_with(2)
    room = intake.room(queue, 2)
    assert intake.ready(queue, 2, available=False, ended=True)
    assert intake.room(queue, 2) == room


def test_few_tuples_leave_before_the_next_enter() -> None:
    assert FewAtATime(4).room(queue_with(1), 0) == 3
    assert FewAtATime(4).ready(queue_with(4), 4, available=True, ended=False)
    assert not FewAtATime(4).ready(queue_with(3), 3, available=True, ended=False)
