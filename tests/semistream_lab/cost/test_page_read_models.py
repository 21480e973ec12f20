"""How often page groups are read: the models of page choices, against small exact runs and each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.arrays import Float64Array
from semistream.core.errors import InvalidSettingError
from semistream.policies.contract import PageChoice
from semistream.policies.page_choice import AtPosition, DueFrequent, EveryTuple, OldestAndYoungest, OldestWaiting
from semistream_lab.cost.read_frequencies import reads_by

CHOICES: list[PageChoice] = [OldestWaiting(), AtPosition(0.3), DueFrequent(), OldestAndYoungest()]


def played(shares: Float64Array, slots: int, reads: int, seed: int) -> float:
    """Play oldest first on single tuples and return the tuples per read, the first third left out."""
    random = np.random.default_rng(seed)
    waiting = np.zeros(len(shares), dtype=np.int64)
    order: dict[int, None] = {}
    free, served, counted = slots, 0, 0
    for turn in range(reads):
        for page_group in random.choice(len(shares), size=free, p=shares).tolist():
            waiting[page_group] += 1
            order.setdefault(page_group)
        oldest = next(iter(order))
        del order[oldest]
        free = int(waiting[oldest])
        waiting[oldest] = 0
        if turn >= reads // 3:
            served += free
            counted += 1
    return served / counted


@pytest.mark.parametrize("giant", [0.02, 0.1, 0.3, 0.5, 0.7])
def test_oldest_first_holds_whatever_the_share_of_the_largest_page_group(giant: float) -> None:
    rest = np.arange(1, 120, dtype=np.float64) ** -0.7
    shares = np.concatenate([[giant], (1 - giant) * rest / rest.sum()])
    model = reads_by(OldestWaiting(), shares, 4_000).tuples_per_read
    assert model == pytest.approx(played(shares, 4_000, 9_000, 5), rel=0.03)


@pytest.mark.parametrize("choice", [OldestWaiting(), DueFrequent()])
def test_with_equal_shares_a_read_serves_twice_what_the_queue_has_for_a_page_group(choice: PageChoice) -> None:
    reads = reads_by(choice, np.full(200, 1 / 200), 20_000).tuples_per_read
    assert reads == pytest.approx(2 * 20_000 / 200, rel=0.02)


@pytest.mark.parametrize("choice", [AtPosition(0.3), OldestAndYoungest()])
def test_with_equal_shares_to_leave_the_old_waiting_serves_fewer(choice: PageChoice) -> None:
    assert reads_by(choice, np.full(200, 1 / 200), 20_000).tuples_per_read < 2 * 20_000 / 200


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.floats(0.001, 100.0), min_size=3, max_size=60),
    slots=st.integers(500, 50_000),
    place=st.integers(0, len(CHOICES) - 1),
)
def test_no_choice_beats_the_bound_and_every_wanted_page_group_is_read(
    weights: list[float], slots: int, place: int
) -> None:
    shares = np.array(weights) / sum(weights)
    reads = reads_by(CHOICES[place], shares, slots)
    assert np.isfinite(reads.rates).all()
    assert (reads.rates > 0).all()
    assert reads.tuples_per_read >= 0.9
    assert reads.tuples_per_read <= 1.05 * (2 * slots / float(np.sqrt(shares).sum()) ** 2 + 1)


def test_a_page_group_that_nothing_asks_for_is_not_read() -> None:
    reads = reads_by(OldestWaiting(), np.array([0.5, 0.0, 0.5]), 100)
    assert reads.rates[1] == 0


def test_a_page_choice_without_a_model_is_refused_and_not_taken_for_another() -> None:
    with pytest.raises(InvalidSettingError, match="No cost model knows the page choice EveryTuple"):
        reads_by(EveryTuple(), np.full(4, 0.25), 100.0)
