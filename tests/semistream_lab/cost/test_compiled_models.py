"""The compiled parts of the models, against the same formulas on whole arrays."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.core.arrays import Float64Array
from semistream.policies.page_choice import AtPosition, DueFrequent, OldestAndYoungest, OldestWaiting
from semistream_lab.cost import cache_turnover
from semistream_lab.cost.read_cycles import oldest_and_youngest, oldest_first
from semistream_lab.cost.read_frequencies import PageReads, reads_by

SLOTS = 5_000.0
seeds = pytest.mark.parametrize("seed", range(4))


def drawn_shares(seed: int) -> Float64Array:
    """Return shares of page groups that lie so far apart that no two are taken together."""
    random = np.random.default_rng(seed)
    shares = 1.08 ** -np.arange(80) * random.uniform(0.99, 1.01, 80)
    return np.asarray(shares / shares.sum())


@seeds
def test_oldest_first_fills_the_queue_with_what_waits_and_the_gap_of_a_read(seed: int) -> None:
    share, ramp = drawn_shares(seed), np.random.default_rng(seed).uniform(0, 0.9, 80)
    cycle = 1 / oldest_first(share, np.ones(80), ramp, SLOTS)
    lag = cycle - 1 / (share * (1 - ramp) + np.sqrt(share * ramp / cycle) / 0.8862)
    assert lag == pytest.approx(np.full(80, lag.mean()), rel=2e-2)  # three rounds of a cycle are near its fixed point
    lag = float(lag.mean())
    load, served = share * lag, share * cycle
    steady = load * (1 + load / 2) / (1 + load)
    assert (steady * (1 - ramp) + ramp * served / 3 + 0.5 * share * served).sum() == pytest.approx(SLOTS, rel=2e-2)


@seeds
def test_oldest_first_without_ramps_is_exact(seed: int) -> None:
    share = drawn_shares(seed)
    reads = reads_by(OldestWaiting(), share, SLOTS)
    lags = 1 / reads.rates - 1 / share
    assert lags == pytest.approx(np.full(80, lags[0]), rel=1e-9)
    load = share * lags
    assert (load * (1 + load / 2) / (1 + load) + 0.5 * share * (1 + load)).sum() == pytest.approx(SLOTS, rel=1e-7)


@seeds
def test_at_a_position_both_equations_hold(seed: int) -> None:
    share, choice = drawn_shares(seed), AtPosition(0.7)
    reads = reads_by(choice, share, SLOTS)
    chance = float((1 / (reads.free * share)).mean())
    longest = reads.max_times / (chance * share)
    mean = reads.free
    beyond = np.exp(-longest / mean)
    age = float((1 / reads.rates - mean * (1 - beyond)).mean())
    assert longest == pytest.approx(np.maximum(choice.patience * SLOTS + 1 / share - age, 0.0), rel=1e-6, abs=1e-3)
    first, second = mean * (1 - beyond), 2 * mean * (mean * (1 - beyond) - longest * beyond)
    length, square = age + first, age * age + 2 * age * first + second
    assert (share * (age - age * age / (2 * length))).sum() == pytest.approx(0.7 * SLOTS, rel=1e-5)
    assert (share * (1 + share) * square / (2 * length)).sum() == pytest.approx(SLOTS, rel=1e-4)


@seeds
def test_of_oldest_and_youngest_what_waits_fills_the_queue(seed: int) -> None:
    share = drawn_shares(seed)
    reads = reads_by(OldestAndYoungest(), share, SLOTS)
    hazard, lag = 1 / reads.free, reads.max_times * reads.free
    assert hazard == pytest.approx(share / (2 * reads.tuples_per_read), rel=1e-4)
    beyond = np.exp(-hazard * lag)
    first = (1 - beyond) / hazard
    second = 2 * (first - lag * beyond) / hazard
    taken_squared = 1 + 2 * share * first + share * share * second
    waiting = (first + share * second / 2 + 0.5 * taken_squared) / (1 / share + first)
    assert waiting.sum() == pytest.approx(SLOTS, rel=1e-6)


@seeds
def test_beside_a_schedule_what_waits_fills_the_queue(seed: int) -> None:
    share, choice = drawn_shares(seed), DueFrequent()
    rates = reads_by(choice, share, SLOTS).rates
    lags = 1 / rates - 1 / share
    lag = float(np.median(lags[-20:]))
    frequent = np.abs(lags - lag) > 1e-6 * lag
    assert frequent.any()
    load = share * lag
    idle = load * (1 + load / 2) / (1 + load) + 0.5 * share * (1 + load)
    scheduled = 0.5 * share / rates * (1 + share)
    assert np.where(frequent, scheduled, idle).sum() == pytest.approx(SLOTS, rel=1e-3)


@seeds
def test_page_groups_of_like_share_get_the_reads_of_their_mean(seed: int) -> None:
    random = np.random.default_rng(seed)
    shares = random.pareto(1.2, 3_000) * random.integers(0, 2, 3_000)
    shares /= shares.sum()
    used = shares > 0
    steps = np.round(-np.log(shares[used]) / np.log(1.03))
    _, group_of = np.unique(steps, return_inverse=True)
    count = np.bincount(group_of).astype(np.float64)
    means = np.bincount(group_of, weights=shares[used]) / count
    rates = reads_by(OldestAndYoungest(), shares, SLOTS).rates
    expected = oldest_and_youngest(means, count, SLOTS)[0]
    assert rates[used] == pytest.approx(expected[group_of], rel=1e-9)
    assert not rates[~used].any()


@seeds
def test_how_reads_vary_is_the_formula_on_whole_arrays(seed: int) -> None:
    random = np.random.default_rng(seed)
    rates, free = random.uniform(0, 1, 200), random.uniform(0, 1, 200) * random.integers(0, 2, 200)
    max_times = random.exponential(3, 200)
    free_part, memoryless = PageReads(rates, free, max_times).variation()
    beyond = np.exp(-max_times)
    first = 1 - beyond
    assert free_part == pytest.approx(rates * free * first)
    assert memoryless == pytest.approx((rates * free) ** 2 * (2 * (first - max_times * beyond) - first * first))


@seeds
def test_a_full_cache_that_overwrites_at_random_stays_full(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = np.round(1.2 ** np.arange(60)) + 1
    key_shares = 1 / np.cumsum(sizes)
    key_shares /= (key_shares * sizes).sum()
    cached = random.uniform(0, 0.01, 60)
    constant = [np.full(60, value) for value in (3.0, 40_000.0, 5_000.0, 2.0, 0.1, 0.02)]
    for handover_slots in (0.0, 900.0):
        chances, ramp = cache_turnover.cached_after(
            sizes, key_shares, cached, *constant, 0.8, 400_000.0, handover_slots, 1_000.0, True
        )
        assert (sizes * chances).sum() == pytest.approx(1_000.0, rel=1e-5)
        assert (np.diff(chances) <= 0.01).all()
        assert ((ramp >= 0) & (ramp <= 1)).all()
