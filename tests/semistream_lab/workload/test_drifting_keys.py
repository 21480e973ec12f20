"""The hot set moves when it should, and the frequencies stay what they were."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from goodness import rank_deviation
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.generator import ZipfKeys
from semistream_lab.workload import DriftingKeys


class EveryRank:
    """Draws the ranks 1, 2, …, key_count again and again."""

    stride = 1

    def __init__(self, key_count: int) -> None:
        self.key_count = key_count
        self._next = 0

    def draw_ranks(self, count: int) -> Int64Array:
        ranks = np.arange(self._next, self._next + count, dtype=np.int64) % self.key_count + 1
        self._next += count
        return ranks

    def keys_of(self, ranks: Int64Array) -> Int64Array:
        return ranks

    def draw(self, count: int) -> Int64Array:
        return self.draw_ranks(count)


@pytest.mark.parametrize("key_count", [1, 2, 3, 10, 997, 1000])
def test_a_jump_gives_every_key_one_rank(key_count: int) -> None:
    keys = DriftingKeys(EveryRank(key_count), key_count)
    for _ in range(7):
        np.testing.assert_array_equal(np.sort(keys.draw(key_count)), np.arange(1, key_count + 1))


@pytest.mark.parametrize("ranks", ["sorted", "shuffled"])
def test_the_hot_set_jumps_completely_every_period(ranks: Literal["sorted", "shuffled"]) -> None:
    keys = DriftingKeys(ZipfKeys(100_000, 1.0, seed=1, ranks=ranks), 20_000)
    seen: set[int] = set()
    for _ in range(8):
        drawn = keys.draw(20_000)
        hot = set(np.argsort(np.bincount(drawn))[-30:].tolist())
        assert np.isin(drawn, list(hot)).mean() > 0.3
        assert not hot & seen
        seen |= hot


def test_the_first_period_has_the_keys_without_a_drift() -> None:
    keys = DriftingKeys(ZipfKeys(1_000, 1.0, seed=1), 5_000)
    np.testing.assert_array_equal(keys.draw(5_000), ZipfKeys(1_000, 1.0, seed=1).draw(5_000))


def test_the_hottest_fiftieth_of_the_keys_is_new_in_each_of_eight_periods() -> None:
    keys = DriftingKeys(EveryRank(100_000), 100_000)
    hot = np.concatenate([keys.draw(100_000)[:2_000] for _ in range(8)])
    assert len(np.unique(hot)) == 16_000


def test_sorted_hot_keys_are_neighbours_after_a_jump() -> None:
    keys = DriftingKeys(EveryRank(10_000), 10_000)
    keys.draw(10_000)
    assert (np.abs(np.diff(keys.draw(10_000)[:100])) == 1).all()


def test_a_drift_moves_the_given_share_of_the_keys_in_a_period() -> None:
    key_count, hot_count, period = 100_000, 1_000, 1_000_000
    keys = DriftingKeys(EveryRank(key_count), period, drift_share=0.2)
    before = keys.draw(hot_count)
    for tenths in range(1, 10):
        keys.draw(period // 2 - hot_count)
        moved = (keys.draw(hot_count) != before).mean()
        assert moved == pytest.approx(tenths / 10, abs=0.02)


def test_at_each_moment_of_a_drift_every_key_has_one_rank() -> None:
    key_count = 1_001
    keys = DriftingKeys(EveryRank(key_count), 10**12, drift_share=1.0)
    for moment in (0.0, 0.3, 0.9, 1.5, 2.7, 9.2):
        keys._drawn = int(moment * 10**12)
        np.testing.assert_array_equal(np.sort(keys.draw(key_count)), np.arange(1, key_count + 1))


def test_a_drift_keeps_the_frequencies() -> None:
    source = ZipfKeys(2_000, 1.0, seed=5)
    keys = DriftingKeys(source, 10**12, drift_share=1.0)
    keys._drawn = 10**12 // 3
    standing = DriftingKeys(EveryRank(2_000), 10**12, drift_share=1.0)
    standing._drawn = keys._drawn
    rank_of_key = np.empty(2_001, dtype=np.int64)
    rank_of_key[standing.draw(2_000)] = np.arange(1, 2_001)
    assert abs(rank_deviation(rank_of_key[keys.draw(300_000)], source.probabilities())) < 4.5


@given(cuts=st.lists(st.integers(0, 5_000), max_size=5), drift_share=st.sampled_from([None, 0.3]))
@settings(max_examples=20, deadline=None)
def test_drifting_keys_do_not_depend_on_how_the_draws_are_cut(cuts: list[int], drift_share: float | None) -> None:
    whole, parts = (DriftingKeys(ZipfKeys(500, 1.0, seed=3), 700, drift_share=drift_share) for _ in range(2))
    drawn = np.concatenate([parts.draw(cut) for cut in [*cuts, 1]])
    np.testing.assert_array_equal(drawn, whole.draw(sum(cuts) + 1))


def test_senseless_drifts_are_refused() -> None:
    keys = ZipfKeys(10, 1.0, seed=1)
    with pytest.raises(InvalidSettingError, match="period_tuples must be a whole number of at least 1"):
        DriftingKeys(keys, 0)
    with pytest.raises(InvalidSettingError, match="drift_share must be a share from 0 to 1"):
        DriftingKeys(keys, 10, drift_share=1.5)
