"""What all cache stages offer to those who hand their rows on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.hot_rows import HotRows
from semistream.engine.cache.page_stages import PinnedPages, UsefulBlocks
from semistream.engine.cache.resident_pages import ResidentPages
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.rows.slot_rows import SlotRows
from semistream.policies.caching import BlockUtility

COLUMNS = pa.schema([("v", pa.int64())])


def hot(count: int) -> HotRows:
    codes = np.arange(count, dtype=np.int64)
    rows = pa.record_batch([pa.array(codes * 10)], schema=COLUMNS)
    uses = np.arange(count, 0, -1).astype(np.int32)
    return HotRows(codes, uses, rows, np.array([1000], dtype=np.int64))


def test_cached_tuples_take_rows_over_and_hand_the_hottest_on() -> None:
    rows = SlotRows(COLUMNS, 64, 0)
    stage: CacheStage = CachedTuples(TupleCache(64, None, rows), None, ("v",), unique=True, stats=JoinStats())
    assert (stage.count, stage.capacity, stage.schema) == (0, 64, COLUMNS)
    assert stage.warm(hot(20)) == 21
    assert stage.count == 21
    handed = list(stage.hottest(5))
    assert np.concatenate([part.codes for part in handed]).tolist() == [0, 1, 2, 3, 4]
    assert [part.rows.column(0).to_pylist() for part in handed if part.rows is not None] == [[0, 10, 20, 30, 40]]


@pytest.mark.parametrize(
    "stage", [PinnedPages(ResidentPages(8, 2, 1000)), UsefulBlocks(ResidentPages(8, 2, 1000), BlockUtility(8))]
)
def test_stages_that_hold_pages_have_no_rows_to_hand_on(stage: CacheStage) -> None:
    assert (stage.count, stage.capacity, stage.schema.names) == (0, 0, [])
    assert stage.warm(hot(20)) == 0
    assert list(stage.hottest(5)) == []
