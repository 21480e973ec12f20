"""The look-up written by hand: its cache keeps to its memory, and its databases give the right rows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from fake_peers import small_bench
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream_lab.peers.contract import Bench
from semistream_lab.peers.data import PAYLOAD, master_rows, stream_rows, with_payload
from semistream_lab.peers.lookups.lmdb_rows import LmdbLookup
from semistream_lab.peers.lookups.lookup import LookupPeer, RowSource, _looked_up, packed, rows_of, unpacked
from semistream_lab.peers.lookups.lru_rows import LruRows, Row, row_bytes
from semistream_lab.peers.lookups.sqlite_rows import SqliteLookup

SAMPLE: Row = (2**40, 0.5, 2**40, "x" * 72)


def cache_of(rows: int) -> LruRows:
    """Return a cache for so many rows."""
    return LruRows(rows * row_bytes(2**62, SAMPLE), SAMPLE)


@given(
    most=st.integers(1, 6),
    steps=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 9), max_size=8, unique=True)), max_size=30),
)
def test_the_cache_holds_what_was_used_last_and_never_more_than_fits(
    most: int, steps: list[tuple[bool, list[int]]]
) -> None:
    cache, used = cache_of(most), []
    assert cache.max_rows == most
    for adds, keys in steps:
        if adds:
            cache.add({key: (key, 0.0, 0, "") for key in keys})
            touched = keys
        else:
            rows = cache.rows_of(keys)
            touched = [key for key in keys if key in used]
            assert rows == {key: (key, 0.0, 0, "") for key in touched}
        used = ([key for key in used if key not in touched] + touched)[-most:]
        assert set(cache.rows_of(used)) == set(used)
        assert len(cache) == len(used)
        cache._check()


def test_a_full_cache_takes_no_more_than_its_memory() -> None:
    memory = 8_000_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        cache = LruRows(memory, SAMPLE)
        for start in range(0, 4 * cache.max_rows, 1000):
            cache.add(
                {
                    2**40 + key: (key + 2**40, key / 7, key * 3 + 2**40, f"{key:072}")
                    for key in range(start, start + 1000)
                }
            )
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(cache) == cache.max_rows
    assert 0.5 * memory < held <= memory


def test_a_memory_below_one_row_is_an_error() -> None:
    with pytest.raises(InvalidSettingError):
        LruRows(100, SAMPLE)


@given(st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.integers(0, 9), st.text()))
def test_a_packed_row_comes_back(row: Row) -> None:
    try:
        value = packed(row)
    except UnicodeEncodeError:  # lone surrogates are no text
        return
    assert unpacked(value) == row


@pytest.mark.parametrize("kind", [SqliteLookup, LmdbLookup])
def test_a_database_gives_the_rows_of_exactly_the_keys_that_there_are(tmp_path: Path, kind: type[LookupPeer]) -> None:
    peer = kind()
    if (missing := peer.why_unavailable()) is not None:
        pytest.skip(missing)
    bench = small_bench(tmp_path, master_rows=3000)
    peer.prepare(bench)
    wanted = [2999, 0, *range(5, 2500), 3000, 10**12]
    there = [key for key in wanted if key < 3000]
    assert peer.source().rows(wanted) == dict(rows_of(master_rows(np.array(there))))
    assert peer.source().rows([]) == {}


@pytest.mark.parametrize("memory", [1000, 10**7])
def test_frames_get_the_columns_of_their_master_rows_however_small_the_cache_is(tmp_path: Path, memory: int) -> None:
    bench = small_bench(tmp_path, master_rows=400)
    stream = stream_rows(bench.data.situation, 0, 900)
    frames = [stream.slice(start, 100).to_pandas() for start in range(0, 900, 100)]
    got = [pa.Table.from_pandas(frame, preserve_index=False) for frame in _looked_up(_counting(bench), memory, frames)]
    assert pa.concat_tables(got).select(["value", "key", *PAYLOAD]).equals(with_payload(stream))


def test_a_large_cache_asks_for_each_key_once(tmp_path: Path) -> None:
    bench = small_bench(tmp_path, master_rows=300)
    source = _counting(bench)
    frames = [stream_rows(bench.data.situation, start, 100).to_pandas() for start in range(0, 1000, 100)]
    list(_looked_up(source, 10**7, frames))
    assert len(source.asked) == len(set(source.asked))


def _counting(bench: Bench) -> _Counting:
    peer = SqliteLookup()
    peer.prepare(bench)
    return _Counting(peer.source())


class _Counting(RowSource):
    """Notes which keys were asked for."""

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self.asked: list[int] = []

    def rows(self, keys: Sequence[int]) -> dict[int, Row]:
        self.asked += keys
        return self.source.rows(keys)
