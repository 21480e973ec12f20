"""The cache of the engine itself, asked for recorded keys: its admission, its replacement, its ageing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import NO_PAGE_GROUPS
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.policies.caching import FrequentLately, LessUsedOverwrite
from semistream.policies.contract import Admission, Replacement

_MAX_CHUNK = 8192
_CHUNKS_PER_DELAY = 8
_MAX_WINDOWS = 128


def frequent_lately_hits(keys: Int64Array, key_count: int, capacity: int, *, delay: int = 0, first: int = 0) -> int:
    """Return how many of the requests from `first` on DEMANDJOIN's cache answers; rows enter `delay` requests late."""
    admission = FrequentLately(capacity, max_windows=_MAX_WINDOWS)
    return engine_cache_hits(keys, key_count, capacity, admission, LessUsedOverwrite(), delay=delay, first=first)


def engine_cache_hits(
    keys: Int64Array,
    key_count: int,
    capacity: int,
    admission: Admission,
    replacement: Replacement,
    *,
    delay: int = 0,
    first: int = 0,
) -> int:
    """Return how many of the requests from `first` on a cache of the engine answers.

    Requests come in chunks, of an eighth of the delay if it has one: rows enter at the end of the first chunk by which
    the delay is over. For admissions that look neither at page groups nor at what waits.
    """
    stage = CachedTuples(TupleCache(capacity, replacement, None), admission, (), unique=True, stats=JoinStats())
    chunk = max(1, min(_MAX_CHUNK, delay // _CHUNKS_PER_DELAY))
    asks = np.zeros(key_count, dtype=np.int32)
    read: deque[tuple[int, Int64Array]] = deque()
    """What is being read, and when it was asked for first."""
    hits = 0
    for start in range(0, len(keys), chunk):
        codes = keys[start : start + chunk]
        slots = stage.probe(codes, NO_PAGE_GROUPS)
        found = slots >= 0
        stage.count_use(slots[found].astype(np.int64))
        hits += int(found[max(0, first - start) :].sum())
        read.append((start, _note_misses(codes[~found], asks)))
        stage.arrived(len(codes))
        while read and read[0][0] + delay <= start:
            _, due = read.popleft()
            if len(due):
                asked = asks[due]
                asks[due] = 0
                stage.learn(due, asked, np.ones(len(due), dtype=np.int64), _bare)
    return hits


def _bare(places: Int64Array) -> Iterator[tuple[Int64Array, pa.RecordBatch | None]]:
    """Yield the rows at some places, which have no columns."""
    yield places, None


@kernel
def _note_misses(codes: Int64Array, asks: Int32Array) -> Int64Array:
    """Count what is asked for, and return what is not being read yet."""
    new = np.empty(codes.shape[0], dtype=np.int64)
    count = 0
    for index in range(codes.shape[0]):
        if asks[codes[index]] == 0:
            new[count] = codes[index]
            count += 1
        asks[codes[index]] += 1
    return new[:count]
