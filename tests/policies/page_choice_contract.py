"""What every page choice must do; a new one adopts it by a subclass of two lines."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pytest

from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.contract import Moment, PageChoice


def needs(choice: PageChoice) -> dict[str, bool]:
    """Return what the queue of a choice must keep."""
    return {"positions": choice.needs_positions, "youngest": choice.needs_youngest, "since": choice.needs_since}


class PageChoiceContract(ABC):
    """Drives a choice with random tuples, as the loop does."""

    reads_for_nobody = False
    """May choose a page group that no tuple waits for."""
    may_wait = False
    """May choose nothing while input is pending."""

    @abstractmethod
    def make(self) -> PageChoice:
        """Return a fresh choice."""

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("page_groups", [1, 2, 17])
    def test_it_chooses_page_groups_that_tuples_wait_for_until_none_waits(self, seed: int, page_groups: int) -> None:
        random = np.random.default_rng(seed)
        choice = self.make()
        queue = WaitingTuples(page_groups, 40, **needs(choice))
        for step in range(300):
            pending = step < 200
            if pending:
                room = min(queue.capacity - queue.count, int(random.integers(1, 40)))
                homes = np.minimum(random.zipf(1.4, room) - 1, page_groups - 1).astype(np.int32)
                queue.add(random.integers(0, 100, room), homes, np.arange(room))
            elif not queue.count:
                return
            before = queue.counts.copy()
            chosen = choice.choose(queue, Moment(input_pending=pending))
            assert chosen.dtype == np.int64
            assert np.array_equal(queue.counts, before), "a choice must not change the queue"
            assert ((chosen >= 0) & (chosen < page_groups)).all()
            if not len(chosen):
                assert self.may_wait
                assert pending, "at the end of the input a choice must go on"
                assert queue.count < queue.capacity, "a full queue cannot wait"
            if not self.reads_for_nobody:
                assert (queue.counts[chosen] > 0).all()
            drained = queue.drain(chosen)
            for index, page_group in enumerate(chosen.tolist()):
                choice.after_read(page_group, int(drained.bounds[index + 1] - drained.bounds[index]), queue)
            queue._check()
        assert not queue.count, "tuples wait for ever"

    def test_buffers_never_hold_the_same_page_group(self) -> None:
        choice = self.make()
        if choice.buffers == 1:
            return
        queue = WaitingTuples(9, 40, **needs(choice))
        homes = np.array([3, 5, 5, 1, 3], dtype=np.int32)
        queue.add(np.arange(5), homes, np.arange(5))
        for buffer in range(choice.buffers):
            for loading in ((), (3,), (5,), (1,), (3, 5)):
                chosen = choice.choose(queue, Moment(input_pending=True, buffer=buffer, loading=loading))
                assert set(chosen.tolist()) <= {3, 5, 1} - set(loading)
                assert len(chosen) == 1
        queue.drain(np.array([3, 1]))
        assert not len(choice.choose(queue, Moment(input_pending=True, loading=(5,))))
