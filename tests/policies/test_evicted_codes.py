"""What a cache of twice the size would bring is told from a sample of what was overwritten."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.engine.cache.tuple_cache import TupleCache
from semistream.generator import ZipfKeys
from semistream.policies.caching import EvictedCodes, LeastFrequentOverwrite


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=60), max_size=20))
def test_the_ring_and_its_table_agree(added: list[list[int]]) -> None:
    evicted = EvictedCodes(200)
    for codes in added:
        evicted.add(np.array(codes, dtype=np.int64))
        evicted._check()


def test_only_what_was_overwritten_lately_counts() -> None:
    evicted = EvictedCodes(1600)
    evicted.add(np.arange(100_000, dtype=np.int64))
    ones = np.ones(1600, dtype=np.int32)
    lately = evicted.asked_for(np.arange(98_400, 100_000, dtype=np.int64), ones)
    assert 0.6 * 1600 < lately < 1.4 * 1600
    assert evicted.asked_for(np.arange(1600, dtype=np.int64), ones) == 0


def test_the_estimate_is_near_what_a_cache_of_twice_the_size_answers() -> None:
    """Random overwriting would do as well; frequencies make both caches settle on the same keys."""
    keys = ZipfKeys(20_000, 1.0, seed=3).draw(300_000)
    small, large = (TupleCache(size, LeastFrequentOverwrite(), None) for size in (1000, 2000))
    shadow = 0
    hits = {small: 0, large: 0}
    for start in range(0, len(keys), 1000):
        for cache in (small, large):
            arriving = keys[start : start + 1000]
            slots = cache.find(arriving)
            cache.use(slots[slots >= 0].astype(np.int64))
            hits[cache] += int((slots >= 0).sum())
            missed, counts = np.unique(arriving[slots < 0], return_counts=True)
            if cache is small:
                shadow += cache.evicted.asked_for(missed, counts.astype(np.int32))
            cache.admit(missed, counts.astype(np.int32), None, absent=False)
    gained = hits[large] - hits[small]
    assert 0.5 * gained < shadow < 2 * gained
