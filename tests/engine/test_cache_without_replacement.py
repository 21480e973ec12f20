"""A cache that never replaces: it takes the best newcomers that still have room, and after that none."""

from __future__ import annotations

import numpy as np

from semistream.engine.cache.tuple_cache import TupleCache


def admit(cache: TupleCache, codes: list[int], worth: list[int]) -> int:
    return cache.admit(np.array(codes, dtype=np.int64), np.array(worth, dtype=np.int32), None, absent=False)


def is_cached(cache: TupleCache, codes: list[int]) -> list[bool]:
    return (cache.find(np.array(codes, dtype=np.int64)) >= 0).tolist()


def test_newcomers_beyond_the_room_stay_outside_and_the_best_enter() -> None:
    cache = TupleCache(4, None, None)
    assert admit(cache, [1, 2], [1, 1]) == 2
    assert admit(cache, [3, 4, 5], [7, 1, 9]) == 2
    assert is_cached(cache, [1, 2, 3, 4, 5]) == [True, True, True, False, True]
    assert admit(cache, [6], [99]) == 0
    assert is_cached(cache, [6]) == [False]
