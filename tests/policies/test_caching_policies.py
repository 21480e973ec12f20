"""What enters a cache, and what makes room."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.caching import (
    AboveRate,
    AboveThreshold,
    BlockUtility,
    FrequentLately,
    LeastFrequentOverwrite,
    LessUsedOverwrite,
    RandomOverwrite,
)
from semistream.policies.caching.frequency_sketch import FrequencySketch
from semistream.policies.contract import Replacement

every_replacement = pytest.mark.parametrize(
    "make", [lambda: RandomOverwrite(1), LeastFrequentOverwrite, LessUsedOverwrite]
)


@every_replacement
def test_victims_are_different_slots_and_as_many_as_asked_for(make: Callable[[], Replacement]) -> None:
    random = np.random.default_rng(2)
    replacement = make()
    slots = 200
    frequencies = random.integers(0, 50, slots).astype(np.int32)
    for step in range(300):
        if step == 150:  # the cache has given up some of its slots
            slots = 120
            frequencies = frequencies[:slots].copy()
        count = int(random.integers(1, slots + 1 if step % 20 == 0 else 12))
        victims = replacement.victims(count, frequencies)
        assert victims.dtype == np.int64
        assert len(np.unique(victims)) == len(victims) == count
        assert ((victims >= 0) & (victims < slots)).all()
        frequencies[victims] = random.integers(1, 9, count)
        frequencies[random.integers(0, slots, 20)] += 1


def test_random_victims_follow_from_the_seed() -> None:
    frequencies = np.zeros(100, dtype=np.int32)
    one, two, other = (RandomOverwrite(seed).victims(9, frequencies).tolist() for seed in (5, 5, 6))
    assert one == two != other


def test_the_least_used_are_overwritten_first() -> None:
    replacement = LeastFrequentOverwrite()
    frequencies = np.arange(64, dtype=np.int32)[::-1].copy()
    assert sorted(replacement.victims(3, frequencies)) == [61, 62, 63]
    frequencies[[61, 62, 63]] = 99
    frequencies[60] = 99  # used since the scan, so passed over
    assert sorted(replacement.victims(2, frequencies)) == [58, 59]


def test_a_tuple_enters_strictly_above_the_threshold() -> None:
    queue = WaitingTuples(3, 10)
    matches = np.array([0, 1, 2, 3, 9], dtype=np.int32)
    worth = AboveThreshold(2).worth(np.arange(5), matches, np.zeros(5, dtype=np.int64), queue)
    assert worth.tolist() == [0, 0, 0, 3, 9]


def test_a_page_that_is_read_early_is_held_to_the_same_rate() -> None:
    queue = WaitingTuples(3, 10)
    admission = AboveRate(8, 3)
    matches = np.array([3, 5, 9], dtype=np.int32)

    def enter(count: int) -> None:
        queue.drain(np.arange(3))
        queue.add(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.int64))

    enter(10)  # half of twice the capacity has entered since the start: half of the threshold
    assert admission.worth(np.arange(3), matches, np.zeros(3, dtype=np.int64), queue).tolist() == [0, 5, 9]
    for _ in range(4):  # page 1 has been left alone for longer than twice the capacity
        enter(10)
    assert admission.worth(np.arange(3), matches, np.ones(3, dtype=np.int64), queue).tolist() == [0, 0, 9]


def test_useful_blocks_are_known_by_what_they_served_of_late() -> None:
    utility = BlockUtility(5, ageing=0.5)
    utility.served(1, 10)
    utility.age()
    utility.served(2, 6)
    assert (utility.of(1), utility.of(2), utility.of(3)) == (5.0, 6.0, 0.0)
    assert utility.least_useful(np.array([1, 2])) == 1


def test_a_sketch_never_tells_less_than_the_count() -> None:
    random = np.random.default_rng(5)
    sketch = FrequencySketch(256)
    codes = random.integers(-(2**62), 2**62, 1000)
    counts = random.integers(1, 400, 1000).astype(np.int32)
    estimates = sketch.add(codes, counts)
    assert (estimates >= np.minimum(counts, 255)).all()
    assert (sketch.estimate(codes) >= np.minimum(counts, 255)).all()
    before = sketch.estimate(codes)
    sketch.age(1)
    assert (sketch.estimate(codes) <= before // 2 + 1).all()
    sketch.age(8)
    assert (sketch.estimate(codes) == 0).all()


def test_a_sketch_of_enough_size_is_nearly_exact() -> None:
    sketch = FrequencySketch(8 * 4000)
    codes = np.arange(4000) * 7919
    counts = (np.arange(4000) % 50).astype(np.int32)
    assert (sketch.add(codes, counts) == counts).mean() > 0.99


def test_a_newcomer_is_worth_all_its_matches_of_late() -> None:
    queue = WaitingTuples(3, 10)
    admission = FrequentLately(100, max_windows=1)
    codes, matches, homes = np.array([5, 6]), np.array([1, 3], dtype=np.int32), np.zeros(2, dtype=np.int64)
    assert admission.worth(codes, matches, homes, queue).tolist() == [1, 3]
    assert admission.worth(codes, matches, homes, queue).tolist() == [2, 6]
    assert admission.age(answered=0, tuples=200, outdated=0.0) == 1
    assert admission.worth(codes[:1], matches[:1], homes[:1], queue).tolist() == [2]


def test_a_code_is_not_worth_what_others_left_in_its_counters() -> None:
    queue = WaitingTuples(3, 10)
    admission = FrequentLately(500, max_windows=64)
    homes = np.zeros(20_000, dtype=np.int64)
    for start in range(0, 200_000, 20_000):
        codes = np.arange(start, start + 20_000)
        admission.worth(codes, np.ones(len(codes), dtype=np.int32), homes, queue)
        assert not admission.age(answered=0, tuples=20_000, outdated=0.0) or start
    newcomers = np.arange(10**6, 10**6 + 500)
    worth = admission.worth(newcomers, np.ones(500, dtype=np.int32), homes[:500], queue)
    assert worth.min() >= 1
    assert np.median(worth) <= 2
    hot = admission.worth(newcomers[:1], np.array([40], dtype=np.int32), homes[:1], queue)
    assert hot[0] >= 40


def test_what_was_not_worth_more_does_not_raise_the_floor() -> None:
    cache = TupleCache(100, LessUsedOverwrite(), None)
    cache.admit(np.arange(100), np.arange(1, 101, dtype=np.int32), None, absent=False)
    assert cache.floor() == 1
    assert not cache.admit(np.arange(200, 280), np.ones(80, dtype=np.int32), None, absent=False)
    assert cache.floor() == 1
    assert cache.admit(np.arange(300, 380), np.full(80, 4, dtype=np.int32), None, absent=False) == 3
    assert cache.floor() == 4
    cache.age(1)
    assert cache.floor() == 2


def test_a_cache_tells_which_part_of_what_was_hot_is_hot_no_more() -> None:
    cache = TupleCache(100, LessUsedOverwrite(), None)
    cache.admit(np.arange(100), np.full(100, 40, dtype=np.int32), None, absent=False)
    cache.begin_window()
    cache.use(np.arange(75))
    assert cache.outdated(0.2) == 0.25
    assert cache.outdated(0.01) == 0.0, "a fortieth of a use is no promise"


def test_one_scan_does_not_flush_a_cache_that_keeps_the_better() -> None:
    cache = TupleCache(100, LessUsedOverwrite(), None)
    hot = np.arange(100)
    cache.admit(hot, np.full(100, 5, dtype=np.int32), None, absent=False)
    for start in range(1000, 3000, 100):
        assert cache.floor() == 5
        cache.admit(np.arange(start, start + 100), np.ones(100, dtype=np.int32), None, absent=False)
    assert (cache.find(hot) >= 0).all()
    newcomers = np.array([5000, 5001, 5002])
    assert cache.admit(newcomers, np.array([9, 5, 6], dtype=np.int32), None, absent=False) == 2
    assert (cache.find(newcomers) >= 0).tolist() == [True, False, True]
    cache._check()
