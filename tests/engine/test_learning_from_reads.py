"""From how many reads a cache learns."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.stats import JoinStats
from semistream.engine.cached_tuples import CachedTuples
from semistream.engine.tuple_cache import TupleCache
from semistream.engine.waiting import Drained, WaitingTuples
from semistream.policies.caching import FrequentLately, LessUsedOverwrite
from semistream.policies.contract import Queue
from semistream.store.memory import MemoryStore

ENTRIES, WINDOW, READS = 4, 4000, 400


class Noting(FrequentLately):
    """Notes what it is told of reads."""

    def __init__(self) -> None:
        super().__init__(ENTRIES, most_windows=8)
        self.matches: list[int] = []

    def worth(self, codes: Int64Array, matches: Int32Array, partitions: Int64Array, queue: Queue) -> Int32Array:
        self.matches.extend(matches.tolist())
        return super().worth(codes, matches, partitions, queue)


def learned(*, one_read_in: int, entries: int, answered: int) -> list[int]:
    """Return the matches that a cache learns from, of reads with three tuples each, after a window so well answered."""
    admission = Noting()
    cache = TupleCache(ENTRIES, LessUsedOverwrite(), None)
    cache.admit(np.arange(100, 100 + entries), np.full(entries, 9, dtype=np.int32), None, absent=False)
    stage = CachedTuples(cache, admission, (), unique=True, one_read_in=one_read_in, stats=JoinStats())
    chunk_slots = np.zeros(answered, dtype=np.int64)
    stage.answer(chunk_slots, None, chunk_slots, chunk_slots, None)  # type: ignore[arg-type]
    stage.arrived(WINDOW)
    pages = MemoryStore.of_codes(4, row_bytes=100, page_bytes=400).read(np.array([0]), np.array([0]))
    drained = Drained(np.array([2, 2, 2]), np.arange(3), np.array([0, 3]))
    for _ in range(READS):
        stage.after_read(np.array([0]), pages, drained, np.array([1, 1, 1]), WaitingTuples(1, 10))
    return admission.matches


@pytest.mark.parametrize("one_read_in", [2, 4, 9])
def test_a_full_cache_that_answers_nothing_learns_from_one_read_for_several(one_read_in: int) -> None:
    matches = learned(one_read_in=one_read_in, entries=ENTRIES, answered=WINDOW // 100)
    assert set(matches) == {3 * one_read_in}
    assert len(matches) == pytest.approx(READS / one_read_in, rel=0.25)
    assert sum(matches) == pytest.approx(3 * READS, rel=0.25)


@pytest.mark.parametrize(
    ("one_read_in", "entries", "answered"),
    [(1, ENTRIES, 0), (4, ENTRIES - 1, 0), (4, ENTRIES, WINDOW // 10)],
    ids=["from each", "with room", "that answers"],
)
def test_any_other_cache_learns_from_each_read(one_read_in: int, entries: int, answered: int) -> None:
    matches = learned(one_read_in=one_read_in, entries=entries, answered=answered)
    assert matches[:1] == [3]
    if entries == ENTRIES:
        assert matches == [3] * READS
