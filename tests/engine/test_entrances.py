"""Tuples enter the queue, or the buffer before it, and none is lost or counted twice."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.core.clock import ModelClock
from semistream.core.costs import PAPERS
from semistream.core.stats import JoinStats
from semistream.engine.phases.entrance import QueueEntrance
from semistream.engine.phases.handover import Handover
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.engine.waiting.waits import Waits
from semistream.policies.phasing import Refill


def enter(entrance: QueueEntrance | Handover, codes: list[int], page_group: int = 0) -> None:
    entrance.enter(np.array(codes), np.full(len(codes), page_group, dtype=np.int32), np.array(codes))


def test_what_enters_counts_from_the_last_read_on_and_what_the_cache_answers_does_not() -> None:
    waiting = WaitingTuples(4, 20)
    entrance = QueueEntrance(waiting, Refill(step=5))
    enter(entrance, [1, 2])
    entrance.count(4, 2)  # two of the four have been answered by the cache
    assert entrance.room() == 3
    entrance.end_read()
    assert entrance.room() == 5


def test_what_has_entered_does_not_count_if_all_of_it_has_left() -> None:
    waiting = WaitingTuples(4, 20)
    entrance = QueueEntrance(waiting, Refill(step=5))
    enter(entrance, [1, 2])
    entrance.count(2, 2)
    waiting.drain(np.array([0]))
    assert entrance.room() == 5
    enter(entrance, [3])
    entrance.count(3, 1)
    assert entrance.room() == 4


def handover_of(slots: int, waiting: WaitingTuples) -> Handover:
    clock = ModelClock(PAPERS)
    return Handover(slots, waiting, clock, Waits(clock, JoinStats()))


def test_a_handover_buffer_keeps_what_the_queue_has_no_room_for() -> None:
    waiting = WaitingTuples(2, 3)
    handover = handover_of(8, waiting)
    enter(handover, [1, 2])
    enter(handover, [3, 4, 5])
    assert (handover.room(), handover.held_count, waiting.count) == (3, 5, 0)
    handover.fetch()
    assert (handover.held_count, waiting.count) == (2, 3)
    assert waiting.drain(np.array([0])).codes.tolist() == [1, 2, 3]
    handover.fetch()
    assert (handover.held_count, waiting.drain(np.array([0])).codes.tolist()) == (0, [4, 5])


@pytest.mark.parametrize("count", [0, 3, 8])
def test_without_a_cache_nothing_is_handed_over_that_nobody_has_looked_for(count: int) -> None:
    handover = handover_of(8, WaitingTuples(2, 64))
    enter(handover, list(range(count)))
    assert handover.spare_room() == 0
