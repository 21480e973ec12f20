"""Caches on recorded streams: MIN against all there is to try, and every other against its steps in lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_caches import PlainCache, PlainLru, PlainS3Fifo, PlainSieve, PlainWTinyLfu, most_hits

from semistream.generator import ZipfKeys
from semistream_lab.caching.belady_min import min_hits
from semistream_lab.caching.ours import frequent_lately_hits
from semistream_lab.caching.simulated import SIMULATED
from semistream_lab.workload import DriftingKeys
from semistream_lab.workload.newest_keys import NewestKeys

PLAIN: dict[str, Callable[[int], PlainCache]] = {
    "lru": PlainLru,
    "sieve": PlainSieve,
    "s3_fifo": PlainS3Fifo,
    "w_tinylfu": PlainWTinyLfu,
}
small_streams = st.lists(st.integers(0, 5), max_size=14)
streams = st.lists(st.integers(0, 30), max_size=400)


@given(small_streams, st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_min_answers_as_many_as_the_best_of_all_caches(keys: list[int], capacity: int) -> None:
    assert min_hits(np.array(keys, dtype=np.int64), 6, capacity) == most_hits(keys, capacity)


@pytest.mark.parametrize("name", PLAIN)
@given(keys=streams, capacity=st.integers(1, 25), delay=st.integers(0, 9), first=st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_a_simulated_cache_does_what_its_steps_in_lists_do(
    name: str, keys: list[int], capacity: int, delay: int, first: int
) -> None:
    simulated = SIMULATED[name](np.array(keys, dtype=np.int64), 31, capacity, delay=delay, first=first)
    assert simulated == PLAIN[name](capacity).hits(keys, delay, first)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("capacity", [110, 300])
def test_a_simulated_cache_of_many_rows_does_the_same(name: str, capacity: int) -> None:
    keys = ZipfKeys(1_000, 0.8, seed=1, ranks="shuffled").draw(6_000) - 1
    simulated = SIMULATED[name](keys, 1_000, capacity, delay=40, first=1_000)
    assert simulated == PLAIN[name](capacity).hits(keys.tolist(), 40, 1_000)


@pytest.mark.parametrize("name", SIMULATED)
def test_no_cache_answers_more_than_min(name: str) -> None:
    keys = ZipfKeys(2_000, 0.9, seed=2, ranks="shuffled").draw(40_000) - 1
    best = min_hits(keys[20_000:], 2_000, 200)
    for delay in (0, 500):
        assert 0 < SIMULATED[name](keys, 2_000, 200, delay=delay, first=20_000) <= best


def test_the_engines_cache_comes_near_the_most_frequent_keys() -> None:
    law = ZipfKeys(20_000, 0.75, seed=3, ranks="shuffled")
    keys = law.draw(1_600_000) - 1
    answered = frequent_lately_hits(keys, 20_000, 1_000, delay=5_000, first=1_200_000) / 400_000
    assert answered > 0.93 * law.probabilities()[:1_000].sum()


def test_the_engines_cache_follows_a_stream_that_drifts_slowly() -> None:
    drifting = DriftingKeys(ZipfKeys(20_000, 0.75, seed=3, ranks="shuffled"), 80_000, drift_share=1.0)
    keys = drifting.draw(1_600_000) - 1
    ours = frequent_lately_hits(keys, 20_000, 700, delay=3_500, first=800_000)
    assert ours > 1.1 * SIMULATED["lru"](keys, 20_000, 700, delay=3_500, first=800_000)


def test_the_engines_cache_follows_keys_that_cool_from_the_moment_they_are_new() -> None:
    newest = NewestKeys(ZipfKeys(20_000, 0.5, seed=3, ranks="shuffled"), 400_000)
    keys = newest.draw(1_600_000) - 1
    ours = frequent_lately_hits(keys, 20_000, 500, delay=2_500, first=800_000)
    assert ours > 1.1 * SIMULATED["lru"](keys, 20_000, 500, delay=2_500, first=800_000)
