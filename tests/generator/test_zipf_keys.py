"""Keys follow the law they claim, from any seed and however the draws are cut."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from goodness import rank_deviation
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream.generator import ZipfKeys
from semistream.generator.zipf import HEAD_RANKS, DiscreteZipf

EXPONENTS = [0.0, 0.5, 0.999999, 1.0, 1.000001, 1.5, 3.0]
LAWS: list[Literal["discrete", "integral"]] = ["discrete", "integral"]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("key_count", [2, 37, 5_000, 1_000_000])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5])
def test_ranks_are_as_frequent_as_the_law_says(
    key_count: int, exponent: float, law: Literal["discrete", "integral"]
) -> None:
    keys = ZipfKeys(key_count, exponent, seed=11, law=law)
    assert abs(rank_deviation(keys.draw(500_000), keys.probabilities())) < 4.5


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_the_discrete_law_is_one_over_rank_to_the_exponent(exponent: float) -> None:
    key_count = 300_000
    weights = np.arange(1, key_count + 1, dtype=np.float64) ** -exponent
    exact = weights / math.fsum(weights)
    keys = ZipfKeys(key_count, exponent, seed=1)
    np.testing.assert_allclose(keys.probabilities(), exact, rtol=1e-12)
    assert keys.probability(1) == pytest.approx(exact[0], rel=1e-12)
    assert keys.probability(key_count) == pytest.approx(exact[-1], rel=1e-12)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 0.999999, 1.0, 1.5])
def test_a_rank_begins_where_the_sum_of_the_ranks_before_it_ends(exponent: float) -> None:
    key_count = 2_000_000
    weights = np.arange(1, key_count + 1, dtype=np.longdouble) ** np.longdouble(-exponent)
    sums = np.cumsum(weights)
    total = sums[-1]
    near_the_border = [2, 3, 1000, HEAD_RANKS - 1, HEAD_RANKS, HEAD_RANKS + 1, HEAD_RANKS + 2, 500_000, key_count]
    spread = np.random.default_rng(5).integers(2, key_count, 10_000)
    ranks = np.concatenate([near_the_border, spread]).astype(np.int64)
    drawn = np.empty_like(ranks)
    law = DiscreteZipf(key_count, exponent)
    begin, width = sums[ranks - 2], weights[ranks - 1]
    law.ranks_into(((begin + width * 1e-4) / total).astype(np.float64), drawn)
    np.testing.assert_array_equal(drawn, ranks)
    law.ranks_into(((begin - width * 1e-4) / total).astype(np.float64), drawn)
    np.testing.assert_array_equal(drawn, ranks - 1)


def test_the_papers_generator_draws_the_hottest_key_less_often_than_zipf() -> None:
    assert ZipfKeys(2_000_000, 1.0, seed=1, law="integral").probability(1) == pytest.approx(0.0478, abs=1e-4)
    assert ZipfKeys(2_000_000, 1.0, seed=1, law="discrete").probability(1) == pytest.approx(0.0662, abs=1e-4)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_probabilities_sum_to_one(exponent: float, law: Literal["discrete", "integral"]) -> None:
    keys = ZipfKeys(100_000, exponent, seed=1, law=law)
    assert math.fsum(keys.probabilities()) == pytest.approx(1, rel=1e-11)
    assert keys.probability(77_777) == pytest.approx(keys.probabilities()[77_776], rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0, 2.0, 20.0, 1000.0])
@pytest.mark.parametrize("key_count", [1, 2, HEAD_RANKS, HEAD_RANKS + 1, 400_000_000])
def test_any_key_count_and_exponent_gives_keys_in_range(
    key_count: int, exponent: float, law: Literal["discrete", "integral"]
) -> None:
    drawn = ZipfKeys(key_count, exponent, seed=2, law=law, ranks="shuffled", stride=3).draw(20_000)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 3
    assert drawn.max() <= key_count * 3
    assert not (drawn % 3).any()


def test_the_tables_stay_small_for_a_hundred_million_keys() -> None:
    assert ZipfKeys(100_000_000, 1.0, seed=1).law.table_bytes <= 256 * 1024


def test_half_of_a_hundred_million_keys_get_their_share() -> None:
    keys = ZipfKeys(100_000_000, 1.0, seed=9)
    drawn = keys.draw(1_000_000)
    half = (math.log(50_000_000) + np.euler_gamma) / (math.log(100_000_000) + np.euler_gamma)
    assert (drawn <= 50_000_000).mean() == pytest.approx(half, abs=0.001)


@given(cuts=st.lists(st.integers(0, 90_000), max_size=4), ranks=st.sampled_from(["sorted", "shuffled"]))
@settings(max_examples=20, deadline=None)
def test_keys_do_not_depend_on_how_the_draws_are_cut(cuts: list[int], ranks: Literal["sorted", "shuffled"]) -> None:
    whole = ZipfKeys(70_000, 0.8, seed=3, ranks=ranks)
    parts = ZipfKeys(70_000, 0.8, seed=3, ranks=ranks)
    drawn = np.concatenate([parts.draw(cut) for cut in [*cuts, 1]])
    np.testing.assert_array_equal(drawn, whole.draw(sum(cuts) + 1))


def test_equal_seeds_give_equal_keys_and_others_do_not() -> None:
    first, again, other = (ZipfKeys(1000, 0.5, seed=seed).draw(100) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("key_count", [1, 2, 3, 100, 4096, 4097, 1_000_000])
def test_shuffled_ranks_are_a_permutation_of_the_keys(key_count: int) -> None:
    keys = ZipfKeys(key_count, 1.0, seed=4, ranks="shuffled")
    shuffled = keys.keys_of(np.arange(1, key_count + 1, dtype=np.int64))
    np.testing.assert_array_equal(np.sort(shuffled), np.arange(1, key_count + 1))


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_hot_keys_are_spread_evenly_and_are_not_neighbours(seed: int) -> None:
    key_count, hot_count, ranges = 2_000_000, 10_000, 100
    keys = ZipfKeys(key_count, 1.0, seed=seed, ranks="shuffled")
    hot = keys.keys_of(np.arange(1, hot_count + 1, dtype=np.int64))
    per_range = np.bincount((hot - 1) * ranges // key_count, minlength=ranges)
    chi_square = ((per_range - hot_count / ranges) ** 2 / (hot_count / ranges)).sum()
    assert 50 < chi_square < 170
    neighbours = (np.diff(np.sort(hot)) == 1).sum()
    assert neighbours == pytest.approx(hot_count**2 / key_count, abs=40)
    assert abs(np.corrcoef(np.arange(hot_count), hot)[0, 1]) < 0.05


def test_the_seed_decides_the_permutation() -> None:
    orders = {
        tuple(ZipfKeys(50, 1.0, seed=seed, ranks="shuffled").keys_of(np.arange(1, 51, dtype=np.int64)))
        for seed in range(20)
    }
    assert len(orders) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key_count": 0}, "key_count must be a whole number of at least 1, but 0 was given."),
        ({"key_count": 2.5}, "key_count must be a whole number of at least 1, but 2.5 was given."),
        ({"exponent": -0.1}, "exponent must be a number of at least 0, but -0.1 was given."),
        ({"exponent": math.nan}, "exponent must be a number of at least 0, but nan was given."),
        ({"seed": -1}, "seed must be a whole number of at least 0, but -1 was given."),
        ({"stride": 0}, "stride must be a whole number of at least 1, but 0 was given."),
        ({"stride": 2**62}, "key_count times stride must fit in 64 bits: lower one of them."),
        ({"ranks": "random"}, "ranks must be 'sorted' or 'shuffled', but 'random' was given."),
        ({"law": "power"}, "law must be 'discrete' or 'integral', but 'power' was given."),
    ],
)
def test_senseless_settings_are_refused_in_one_sentence(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettingError) as error:
        ZipfKeys(**{"key_count": 10, "exponent": 1.0, "seed": 1, **arguments})  # type: ignore[arg-type]
    assert str(error.value) == message


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rank", [0, 11])
def test_a_rank_that_does_not_exist_has_no_probability(rank: int, law: Literal["discrete", "integral"]) -> None:
    with pytest.raises(InvalidSettingError, match="ranks go from 1 to 10"):
        ZipfKeys(10, 1.0, seed=1, law=law).probability(rank)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="count must be"):
        ZipfKeys(10, 1.0, seed=1).draw(-1)
