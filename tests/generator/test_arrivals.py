"""Arrival times never fall, keep their mean rate, and are bursty where they should be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from goodness import hurst_exponent
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream.generator import ArrivalSource, BurstyArrivals, ConstantArrivals, IntermittentArrivals, PoissonArrivals

SOURCES: dict[str, Callable[[], ArrivalSource]] = {
    "constant": lambda: ConstantArrivals(300.0),
    "poisson": lambda: PoissonArrivals(300.0, seed=1),
    "intermittent": lambda: IntermittentArrivals(300.0, 0.7, 2.3),
    "bursty": lambda: BurstyArrivals(0.01, seed=1),
    "bursty with few sources": lambda: BurstyArrivals(0.01, seed=1, sources=2),
    "bursty at a mean rate": lambda: BurstyArrivals(0.01, seed=1, mean_rate=777.7),
}
sources = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())


@sources
def test_arrivals_start_at_zero_or_later_and_never_fall(source: Callable[[], ArrivalSource]) -> None:
    moments = source().take(100_000)
    assert moments.dtype == np.float64
    assert moments[0] >= 0
    assert (np.diff(moments) >= 0).all()


@sources
@given(cuts=st.lists(st.integers(0, 3_000), max_size=6))
@settings(max_examples=15, deadline=None)
def test_arrivals_do_not_depend_on_how_the_takes_are_cut(source: Callable[[], ArrivalSource], cuts: list[int]) -> None:
    parts = source()
    taken = np.concatenate([parts.take(cut) for cut in [*cuts, 1]])
    np.testing.assert_array_equal(taken, source().take(sum(cuts) + 1))


@pytest.mark.parametrize("source", [lambda seed: PoissonArrivals(10, seed), lambda seed: BurstyArrivals(1, seed)])
def test_equal_seeds_give_equal_arrivals_and_others_do_not(source: Callable[[int], ArrivalSource]) -> None:
    first, again, other = (source(seed).take(100_000) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_constant_arrivals_have_equal_distances() -> None:
    np.testing.assert_allclose(ConstantArrivals(4.0).take(4), [0.0, 0.25, 0.5, 0.75])


def test_poisson_arrivals_keep_their_rate_and_have_exponential_gaps() -> None:
    gaps = np.diff(PoissonArrivals(250.0, seed=3).take(400_000))
    assert gaps.mean() == pytest.approx(1 / 250, rel=0.01)
    assert gaps.std() == pytest.approx(1 / 250, rel=0.01)


def test_intermittent_arrivals_come_only_while_the_stream_is_on() -> None:
    moments = IntermittentArrivals(1000.0, on_seconds=2.0, off_seconds=3.0).take(20_000)
    assert (moments % 5.0 < 2.0).all()
    assert np.bincount((moments / 5.0).astype(np.int64)).tolist() == [2000] * 10


def test_intermittent_arrivals_keep_their_rate_when_a_window_holds_no_whole_number_of_tuples() -> None:
    moments = IntermittentArrivals(3.0, on_seconds=0.7, off_seconds=0.3).take(21_000)
    assert moments[-1] == pytest.approx(10_000, rel=0.001)


def test_bursty_bandwidth_is_an_even_number_of_tuples_up_to_2046_a_step() -> None:
    counts = np.bincount(BurstyArrivals(1.0, seed=2).take(2_000_000).astype(np.int64))[:-1]
    assert counts.max() <= 2046
    assert not (counts % 2).any()
    assert counts.max() > 1500
    assert counts.min() < 500


@pytest.mark.parametrize("bandwidth", [16, 64, 256])
def test_a_source_is_switched_after_at_most_its_bandwidth_in_steps_and_half_of_it_on_average(bandwidth: int) -> None:
    counts = np.bincount(BurstyArrivals(1.0, seed=2, sources=8).take(10_000_000).astype(np.int64))[:-1]
    steps_between = np.diff(np.flatnonzero(np.diff(counts & bandwidth)))
    unseen_double_switches = 2 / bandwidth
    assert (steps_between > bandwidth + 1).mean() < unseen_double_switches
    assert steps_between.mean() == pytest.approx(bandwidth / 2, rel=0.1 + unseen_double_switches)


def test_bursty_arrivals_have_half_of_the_bandwidth_on_average() -> None:
    source = BurstyArrivals(1.0, seed=4)
    moments = source.take(20_000_000)
    assert source.mean_rate == 1023
    assert len(moments) / moments[-1] == pytest.approx(1023, rel=0.06)


@pytest.mark.parametrize("mean_rate", [50.0, 5_000.0, 50_000.0])
def test_bursty_arrivals_can_be_scaled_to_a_mean_rate(mean_rate: float) -> None:
    moments = BurstyArrivals(0.01, seed=4, sources=6, mean_rate=mean_rate).take(int(mean_rate * 0.01 * 20_000))
    assert len(moments) / moments[-1] == pytest.approx(mean_rate, rel=0.06)


@pytest.mark.parametrize("seed", range(3))
def test_bursty_arrivals_are_self_similar_and_poisson_arrivals_are_not(seed: int) -> None:
    assert hurst_exponent(BurstyArrivals(1.0, seed=seed).take(5_000_000), 1.0) > 0.85
    assert hurst_exponent(PoissonArrivals(500.0, seed=seed).take(5_000_000), 1.0) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantArrivals(0), "rate must be a number above 0, but 0 was given."),
        (lambda: PoissonArrivals(float("inf"), 1), "rate must be a number above 0, but inf was given."),
        (lambda: PoissonArrivals(1.0, -1), "seed must be a whole number of at least 0, but -1 was given."),
        (lambda: IntermittentArrivals(1, 0, 1), "on_seconds must be a number above 0, but 0 was given."),
        (lambda: IntermittentArrivals(1, 1, -1), "off_seconds must be a number of at least 0, but -1 was given."),
        (lambda: BurstyArrivals(-1, 1), "step_seconds must be a number above 0, but -1 was given."),
        (lambda: BurstyArrivals(1, 1, sources=0), "sources must be a whole number of at least 1, but 0 was given."),
        (lambda: BurstyArrivals(1, 1, mean_rate=0), "mean_rate must be a number above 0, but 0 was given."),
        (lambda: ConstantArrivals(1).take(-1), "count must be a whole number of at least 0, but -1 was given."),
    ],
)
def test_senseless_arrivals_are_refused_in_one_sentence(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidSettingError) as error:
        make()
    assert str(error.value) == message
