"""What the loop remembers stays bounded, and what two threads share is changed under its lock."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.clock import ModelClock
from semistream.core.costs import PAPERS
from semistream.core.stats import JoinStats
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.phases.stream_input import Chunk
from semistream.engine.rows.segmented_columns import SegmentedColumns
from semistream.engine.rows.stream_rows import StreamRows
from semistream.engine.waiting.waiting_tuples import Drained, WaitingTuples
from semistream.engine.waiting.waits import Waits
from semistream.policies.caching import AboveThreshold, RandomOverwrite
from semistream.policies.contract import Queue
from semistream.store.memory import MemoryStore


def chunk_at(position: int, tuples: int = 1) -> Chunk:
    rows = np.arange(tuples)
    return Chunk(position, rows, rows, np.zeros(tuples, dtype=np.int32))


def test_waits_are_measured_in_seconds_and_in_tuples() -> None:
    clock, stats = ModelClock(PAPERS), JoinStats()
    waits = Waits(clock, stats)
    waits.arrive(chunk_at(0, 3), 0, 3)
    clock.advance(2.0)
    waits.arrive(chunk_at(3, 4), 0, 4)
    clock.advance(1.0)
    waits.oldest_left(1)
    waits.leave(7)
    assert stats.max_wait_tuples == 5
    assert stats.max_wait_seconds == 3.0
    assert stats.wait_seconds_total == 3 * 3.0 + 4 * 1.0


def test_the_wait_before_the_join_counts_and_the_sum_never_falls() -> None:
    """Whoever looks at any two moments must see a difference that makes sense."""
    clock, stats = ModelClock(PAPERS), JoinStats()
    waits = Waits(clock, stats)
    clock.advance(10.0)
    timed = chunk_at(0, 2)
    timed.arrival_seconds = np.array([4.0, 7.0])
    waits.arrive(timed, 0, 2)
    assert stats.wait_seconds_total == 6.0 + 3.0
    clock.advance(5.0)
    waits.leave(1)
    assert stats.wait_seconds_total == 9.0 + 2 * 5.0
    clock.advance(1.0)
    waits.leave(1)
    assert stats.wait_seconds_total == 19.0 + 1.0


def test_arrivals_are_forgotten_when_all_tuples_have_left() -> None:
    waits = Waits(ModelClock(PAPERS), JoinStats())
    for position in range(50_000):
        waits.arrive(chunk_at(position), 0, 1)
        waits.oldest_left(position)
        waits.leave(1)
    assert len(waits._positions) < 10_000


def test_nested_columns_are_cleaned_under_the_lock_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = StreamRows(pa.schema([("tags", pa.list_(pa.int64()))]), 100, variable_bytes=10_000)
    locked: list[bool] = []
    clean = SegmentedColumns._clean

    def watched(columns: SegmentedColumns) -> None:
        locked.append(rows._lock.locked())
        clean(columns)

    monkeypatch.setattr(SegmentedColumns, "_clean", watched)
    rows.put(pa.RecordBatch.from_pydict({"tags": [[1] * 20] * 50}), np.arange(50), 0)
    assert rows.free_bytes(5000) < 5000
    assert locked
    assert all(locked)


def test_rows_and_absent_keys_of_a_read_are_judged_together() -> None:
    """A policy that measures the time since the last read must be asked once for each read."""
    asked: list[list[int]] = []

    class Noting(AboveThreshold):
        def worth(self, codes: Int64Array, matches: Int32Array, page_groups: Int64Array, queue: Queue) -> Int32Array:
            asked.append(matches.tolist())
            return super().worth(codes, matches, page_groups, queue)

    store = MemoryStore.of_codes(4, row_bytes=100, page_bytes=400)
    pages = store.read(np.array([0]), np.array([0]))
    cache = TupleCache(8, RandomOverwrite(0), None)
    stage = CachedTuples(cache, Noting(2), (), unique=True, stats=JoinStats())
    drained = Drained(np.array([2, 2, 2, 9, 9, 9, 8]), np.arange(7), np.array([0, 7]))
    stage.after_read(np.array([0]), pages, drained, np.array([1, 1, 1, -1, -1, -1, -1]), WaitingTuples(1, 10))
    assert asked == [[3, 1, 3]]
    assert (cache.find(np.array([2, 9, 8])) >= 0).tolist() == [True, True, False]
    assert cache.is_absent(cache.find(np.array([2, 9])).astype(np.int64)).tolist() == [False, True]
