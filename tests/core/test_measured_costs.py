"""Costs that are fitted to what work has taken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.measured_costs import MeasuredCosts

ASSUMED = (100e-6, 1 / 3e9)
fixed = settings(max_examples=60, deadline=None, derandomize=True, print_blob=True)


def fitted(request: float, byte: float, *, noise: float = 0.0, outliers: float = 0.0, seed: int = 7) -> MeasuredCosts:
    random = np.random.default_rng(seed)
    costs = MeasuredCosts(ASSUMED)
    for _ in range(300):
        requests, size = int(random.integers(1, 40)), int(random.integers(8_000, 4_000_000))
        seconds = (requests * request + size * byte) * (1 + noise * random.standard_normal())
        costs.observe(requests, size, seconds * (50 if random.random() < outliers else 1))
    return costs


def test_before_anything_is_seen_the_assumed_costs_hold() -> None:
    assert MeasuredCosts(ASSUMED).costs == ASSUMED


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("request_seconds", "bandwidth"), [(100e-6, 3e9), (60e-6, 2e9), (5e-3, 2e8), (20e-6, 5e9)])
def test_true_costs_are_found(request_seconds: float, bandwidth: float, seed: int) -> None:
    request, byte = fitted(request_seconds, 1 / bandwidth, noise=0.1, seed=seed).costs
    assert request_seconds / 1.5 < request < 1.5 * request_seconds
    assert 1 / 1.5 < byte * bandwidth < 1.5


def test_rare_pauses_of_the_machine_hardly_count() -> None:
    request, byte = fitted(50e-6, 1 / 2e9, noise=0.05, outliers=0.03).costs
    assert request == pytest.approx(50e-6, rel=0.6)
    assert byte == pytest.approx(1 / 2e9, rel=0.6)


def test_a_disk_that_gets_slower_is_followed() -> None:
    costs = fitted(50e-6, 1 / 2e9)
    for requests in range(2_000):
        costs.observe(requests % 20 + 1, 1_000_000, (requests % 20 + 1) * 500e-6 + 1_000_000 / 1e9)
    request, byte = costs.costs
    assert request == pytest.approx(500e-6, rel=0.1)
    assert byte == pytest.approx(1 / 1e9, rel=0.5)


def test_what_cannot_be_told_apart_is_shared_as_was_assumed() -> None:
    costs = MeasuredCosts((1.0, 1.0))
    for _ in range(200):
        costs.observe(1, 1, 6.0)
    assert costs.costs == pytest.approx((3.0, 3.0), rel=0.05)


@fixed
@given(
    st.lists(
        st.tuples(st.floats(0, 1e4), st.floats(0, 1e8), st.one_of(st.just(0.0), st.floats(1e-7, 1e4))),
        min_size=1,
        max_size=80,
    )
)
def test_costs_stay_positive_and_their_ratio_near_the_assumed_one(
    observations: list[tuple[float, float, float]],
) -> None:
    costs = MeasuredCosts(ASSUMED)
    for requests, size, seconds in observations:
        costs.observe(requests, size, seconds)
        request, byte = costs.costs
        assert 0 < request < np.inf
        assert 1 / 8.01 < request / byte / (ASSUMED[0] / ASSUMED[1]) < 8.01


def test_what_took_no_time_or_was_nothing_is_passed_over() -> None:
    costs = MeasuredCosts(ASSUMED)
    for observation in ((0, 0, 1.0), (1, 1, 0.0), (0.0, 5e-324, 1.0), (1, 1, -1.0)):
        costs.observe(*observation)
    assert costs.costs == ASSUMED
