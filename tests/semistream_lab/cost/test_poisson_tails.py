"""The tails of Poisson's law, against sums and against drawn numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.compile import kernel
from semistream_lab.cost.poisson import mixed_poisson_at_least, poisson_at_least, poisson_at_least_by_part
from semistream_lab.cost.root import rising_root


@kernel
def _power(base: float, exponent: float) -> float:
    return base**exponent


_base_of_power = rising_root(_power)


@settings(max_examples=200, deadline=None)
@given(count=st.integers(0, 60), mean=st.floats(0.0, 120.0))
def test_the_tail_is_what_the_terms_below_leave(count: int, mean: float) -> None:
    below = math.fsum(
        math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) if mean else float(k == 0) for k in range(count)
    )
    tail = poisson_at_least(float(count), mean)
    assert tail == pytest.approx(1 - below, abs=1e-9)


@pytest.mark.parametrize(("count", "mean"), [(1, 0.3), (4, 3.0), (7, 20.0)])
def test_by_part_is_the_mean_over_all_parts_of_the_time(count: int, mean: float) -> None:
    parts = (np.arange(4_000) + 0.5) / 4_000
    expected = np.mean([poisson_at_least(float(count), part) for part in (mean * parts).tolist()])
    tail = poisson_at_least_by_part(float(count), mean)
    assert tail == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("spread", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("most", [0.0, 0.7, 3.0, float("inf")])
@pytest.mark.parametrize(("count", "mean"), [(1, 0.3), (4, 3.0), (9, 6.0)])
def test_mixed_tails_are_those_of_drawn_times(count: int, mean: float, spread: float, most: float) -> None:
    random = np.random.default_rng(3)
    fixed, free = mean * (1 - spread), mean * spread
    times = fixed + free * np.minimum(random.exponential(size=400_000), most)
    drawn = float((random.poisson(times) >= count).mean())
    tail = mixed_poisson_at_least(float(count), fixed, free, most)
    assert tail == pytest.approx(drawn, abs=0.004)


@settings(max_examples=100, deadline=None)
@given(target=st.floats(0.01, 5e5), power=st.sampled_from([0.3, 1.0, 2.5]))
def test_a_rising_function_is_met(target: float, power: float) -> None:
    base = _base_of_power(power, target, 0.0, 1_000 * target ** (1 / power))
    assert base**power == pytest.approx(target, rel=1e-6)


def test_beyond_the_bounds_the_nearest_end_is_returned() -> None:
    assert _base_of_power(1.0, 7.0, 0.0, 5.0) == 5.0
    assert _base_of_power(1.0, -7.0, 0.0, 5.0) == 0.0
