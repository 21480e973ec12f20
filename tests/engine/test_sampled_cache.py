"""A cache that answers next to nothing is asked less often, and learns from fewer reads."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.stats import JoinStats
from semistream.engine.cache.balance import MemoryBalance
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.waiting.waiting_tuples import Drained, WaitingTuples
from semistream.policies.caching import FrequentLately, LessUsedOverwrite
from semistream.policies.contract import Queue
from semistream.store.memory import MemoryStore

ENTRIES, WINDOW, READS = 4, 4000, 400
UNTIL_SETTLED = 8


class Noting(FrequentLately):
    """Notes what it is told of reads."""

    def __init__(self) -> None:
        super().__init__(ENTRIES, max_windows=8)
        self.matches: list[int] = []

    def worth(self, codes: Int64Array, matches: Int32Array, page_groups: Int64Array, queue: Queue) -> Int32Array:
        self.matches.extend(matches.tolist())
        return super().worth(codes, matches, page_groups, queue)


class Cache:
    """A cache of a few entries that is told what it has answered."""

    def __init__(self, *, one_in: int, entries: int = ENTRIES) -> None:
        self.admission = Noting()
        self.tuples = TupleCache(ENTRIES, LessUsedOverwrite(), None)
        self.tuples.admit(np.arange(100, 100 + entries), np.full(entries, 9, dtype=np.int32), None, absent=False)
        self.stage = CachedTuples(self.tuples, self.admission, (), unique=True, one_in=one_in, stats=JoinStats())

    def pass_window(self, answered: int) -> None:
        slots = np.zeros(answered, dtype=np.int64)
        self.stage.answer(slots, None, slots, slots, slots, None)  # type: ignore[arg-type]
        self.stage.arrived(WINDOW)

    def pass_windows(self, count: int, answered: int) -> None:
        for _ in range(count):
            self.pass_window(answered)

    def learn(self) -> list[int]:
        """Return the matches that it learns from, of reads with three tuples each."""
        pages = MemoryStore.of_codes(4, row_bytes=100, page_bytes=400).read(np.array([0]), np.array([0]))
        drained = Drained(np.array([2, 2, 2]), np.arange(3), np.array([0, 3]))
        for _ in range(READS):
            self.stage.after_read(np.array([0]), pages, drained, np.array([1, 1, 1]), WaitingTuples(1, 10))
        return self.admission.matches


@pytest.mark.parametrize("one_in", [2, 4, 9])
def test_a_full_cache_that_answers_nothing_is_asked_seldom_and_learns_from_few_reads(one_in: int) -> None:
    cache = Cache(one_in=one_in)
    cache.pass_windows(UNTIL_SETTLED, WINDOW // 100)
    assert len(cache.learn()) == pytest.approx(READS / one_in, rel=0.25)
    looks = [cache.stage.decide_to_look() for _ in range(1000)]
    assert sum(looks) == pytest.approx(1000 / one_in, rel=0.25)
    distances = np.diff(np.flatnonzero(looks))
    assert len(set(distances.tolist())) > 1, "pages that come in their order would always be the same ones"


@pytest.mark.parametrize(
    ("one_in", "entries", "windows", "answered"),
    [
        (1, ENTRIES, UNTIL_SETTLED, 0),
        (4, ENTRIES - 1, UNTIL_SETTLED, 0),
        (4, ENTRIES, UNTIL_SETTLED, WINDOW // 10),
        (4, ENTRIES, 2, 0),
    ],
    ids=["that may not", "with room", "that answers", "that is not settled"],
)
def test_any_other_cache_is_always_asked_and_learns_from_each_read(
    one_in: int, entries: int, windows: int, answered: int
) -> None:
    cache = Cache(one_in=one_in, entries=entries)
    cache.pass_windows(windows, answered)
    assert all(cache.stage.decide_to_look() for _ in range(100))
    matches = cache.learn()
    assert matches[:1] == [3]
    if entries == ENTRIES:
        assert matches == [3] * READS


def test_it_wakes_up_as_soon_as_it_answers_more() -> None:
    cache = Cache(one_in=8)
    cache.pass_windows(UNTIL_SETTLED, WINDOW // 100)
    assert cache.stage.is_sampled
    cache.pass_window(WINDOW // 10)
    assert not cache.stage.is_sampled
    assert all(cache.stage.decide_to_look() for _ in range(100))


def test_it_is_still_sampled_when_it_answers_even_less() -> None:
    cache = Cache(one_in=8)
    cache.pass_windows(UNTIL_SETTLED, WINDOW // 25)
    assert cache.stage.is_sampled
    for answered in (0, WINDOW // 30, 1):
        cache.pass_window(answered)
        assert cache.stage.is_sampled


def test_its_memory_goes_to_waiting_tuples_until_it_wakes_up() -> None:
    stage = CachedTuples(
        TupleCache(10_000, LessUsedOverwrite(), None),
        FrequentLately(10_000, max_windows=8),
        (),
        unique=True,
        one_in=8,
        stats=JoinStats(),
    )
    waiting = WaitingTuples(10, 1_000)
    balance = MemoryBalance(stage, waiting, entry_bytes=100.0, waiting_bytes=100.0)
    balance.after_round()
    first = stage.cache.capacity
    keys = np.arange(stage.cache.capacity, dtype=np.int64)
    stage.cache.admit(keys, np.ones(len(keys), dtype=np.int32), None, absent=False)
    for _ in range(UNTIL_SETTLED):
        stage.arrived(20_000)
    balance.after_round()
    assert stage.is_sampled
    assert stage.cache.capacity == 64  # the least that is left to learn from
    assert waiting.capacity == 11_000 - 64
    slots = np.zeros(5_000, dtype=np.int64)
    stage.answer(slots, None, slots, slots, slots, None)  # type: ignore[arg-type]
    stage.arrived(20_000)
    balance.after_round()
    assert not stage.is_sampled
    assert stage.cache.capacity == first
