"""Bounds of reads, against queues that are simulated and cuts that are all tried."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from semistream_lab.cost.read_bounds import (
    disk_seconds_on_schedule,
    tuples_per_read_at_best,
    tuples_per_read_on_schedule,
)

PAGES, SLOTS = 40, 200


def shares(exponent: float) -> np.ndarray:
    weights = np.arange(1, PAGES + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def by_thresholds(exponent: float, thresholds: np.ndarray) -> tuple[float, float]:
    """Read each page as soon as so many tuples wait for it; return tuples a read, and how many wait on average."""
    random = np.random.default_rng(0)
    counts = np.zeros(PAGES)
    reads = waiting = 0
    pages = random.choice(PAGES, 200_000, p=shares(exponent))
    for page in pages:
        counts[page] += 1
        if counts[page] >= thresholds[page]:
            counts[page] = 0
            reads += 1
        waiting += counts.sum()
    return len(pages) / reads, waiting / len(pages)


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_pages_that_are_read_as_enough_wait_reach_the_bound(exponent: float) -> None:
    roots = np.sqrt(shares(exponent))
    thresholds = np.maximum(1, np.round((2 * SLOTS + PAGES) / roots.sum() * roots))
    served, slots = by_thresholds(exponent, thresholds)
    assert served == pytest.approx(tuples_per_read_at_best(shares(exponent), slots), rel=0.02)


def test_other_thresholds_serve_less_for_the_tuples_that_wait() -> None:
    served, slots = by_thresholds(1.0, np.full(PAGES, 11))
    assert served < 0.9 * tuples_per_read_at_best(shares(1.0), slots)


def test_a_schedule_serves_what_the_formula_says_and_less_than_the_best() -> None:
    assert tuples_per_read_on_schedule(shares(0.0), SLOTS) == pytest.approx(2 * SLOTS / PAGES)
    assert tuples_per_read_at_best(shares(0.0), SLOTS) == pytest.approx(2 * SLOTS / PAGES + 1)
    for exponent in (0.5, 1.0, 1.5):
        assert tuples_per_read_on_schedule(shares(exponent), SLOTS) < tuples_per_read_at_best(shares(exponent), SLOTS)


@pytest.mark.parametrize("request_seconds", [0.0, 0.5, 20.0])
def test_the_cut_into_runs_is_the_best_of_all_cuts(request_seconds: float) -> None:
    some = np.array([0.3, 0.02, 0.08, 0.25, 0.05, 0.01, 0.27, 0.02])
    found = disk_seconds_on_schedule(
        some, 10.0, request_seconds=request_seconds, page_group_seconds=1.0, max_page_groups=8
    )
    costs = []
    for count in range(len(some)):
        for cuts in combinations(range(1, len(some)), count):
            runs = np.split(some, cuts)
            costs.append(sum(np.sqrt((request_seconds + len(run)) * run.sum()) for run in runs))
    assert found == pytest.approx(min(costs) ** 2 / 20)
