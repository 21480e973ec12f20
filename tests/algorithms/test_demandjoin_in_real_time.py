"""How DEMANDJOIN works in real time, where each step of the interpreter takes its time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.budget import MemoryBudget
from semistream.core.clock import Clock, ModelClock, WallClock
from semistream.core.costs import SSD
from semistream.core.stats import JoinStats
from semistream.engine.assembly import Assembly
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.phases.stream_input import KeyInput
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.reading.page_groups import PageGroups
from semistream.engine.reading.read_ahead import ReadAhead
from semistream.engine.sizing.buffer_shares import RunBuffers, run_buffers_for
from semistream.engine.sizing.sizes import Sizes
from semistream.generator import ZipfKeys
from semistream.master_table import MasterTable
from semistream.store.memory import MemoryStore
from semistream.testing import FaultyStore


def sizes_of(rows: int, clock: Clock, accounting: str) -> Sizes:
    store = MemoryStore.of_codes(rows, row_bytes=120)
    return Assembly(ALGORITHMS["demandjoin"], store, MemoryBudget("50MB"), clock, accounting=accounting).sizes


@pytest.mark.parametrize("accounting", ["papers", "real"])
def test_page_groups_of_large_tables_are_larger_in_real_time_alone(accounting: str) -> None:
    real_time, modelled = (sizes_of(1_500_000, clock, accounting) for clock in (WallClock(), ModelClock(SSD)))
    assert real_time.pages_per_read > modelled.pages_per_read == 1


def test_small_tables_have_small_page_groups_in_real_time_too() -> None:
    assert sizes_of(100_000, WallClock(), "real").pages_per_read == 1


def test_slices_are_longer_in_real_time_where_few_tuples_wait_for_them() -> None:
    as_papers = run_buffers_for(SSD, 50_000_000, on_model_clock=False, accounting="papers")
    latency_and_round = 2 * (100e-6 + 75e-6) * SSD.bytes_per_second
    assert as_papers == RunBuffers(pytest.approx(latency_and_round / 50e6), 2)


@pytest.mark.parametrize("memory", [8_000_000, 16_000_000, 30_000_000])
def test_three_buffers_take_nine_hundredths_of_a_small_memory(memory: int) -> None:
    assert run_buffers_for(SSD, memory, on_model_clock=False, accounting="papers") == RunBuffers(0.03, 2)


def test_much_memory_has_no_longer_slices() -> None:
    share = run_buffers_for(SSD, 200_000_000, on_model_clock=False, accounting="papers").share
    assert share == pytest.approx(2 * (100e-6 + 75e-6) * SSD.bytes_per_second / 200e6)


def hits_of_the_last(count: int, keys: np.ndarray) -> float:
    """Return which share of the last tuples of a stream the cache has answered, in real time."""
    store = MemoryStore.of_codes(KEYS, row_bytes=120)
    clock = WallClock()
    assembly = Assembly(ALGORITHMS["demandjoin"], store, MemoryBudget("2MB"), clock, accounting="papers")
    chunks = ((keys[start : start + 2000], None) for start in range(0, len(keys), 2000))
    loop, _ = assembly.start(KeyInput(chunks, clock))
    cache = assembly.cache
    assert isinstance(cache, CachedTuples)
    was_sampled = False
    before = JoinStats()
    for _ in loop.rounds():
        was_sampled |= cache.is_sampled
        if assembly.stats.tuples_in <= len(keys) - count:
            before = copy(assembly.stats)
    loop.close()
    assert was_sampled == (keys is not SKEWED)
    last = assembly.stats.since(before)
    return last.cache_hits / last.tuples_out


KEYS = 100_000
SKEWED = ZipfKeys(KEYS, 1.0, seed=1, ranks="shuffled").draw(400_000)


def test_a_cache_that_is_sampled_finds_out_that_the_stream_has_become_skewed() -> None:
    even = ZipfKeys(KEYS, 0.0, seed=1).draw(400_000)
    from_the_start = hits_of_the_last(100_000, SKEWED)
    assert from_the_start > 0.3
    assert hits_of_the_last(100_000, np.concatenate([even, SKEWED])) > 0.9 * from_the_start


@pytest.mark.parametrize(("accounting", "spare"), [("papers", 0), ("real", 1)])
def test_the_memory_of_all_reads_that_are_under_way_is_counted(accounting: str, spare: int) -> None:
    for clock, reads in ((WallClock(), 3), (ModelClock(SSD), 2)):
        budget = MemoryBudget("50MB")
        store = MemoryStore.of_codes(1_500_000, row_bytes=120)
        sizes = Assembly(ALGORITHMS["demandjoin"], store, budget, clock, accounting=accounting).sizes
        read_bytes = store.range_bytes(0, sizes.pages_per_read - 1) * sizes.run_page_groups
        assert budget.by_component()["disk buffer"] >= (reads + spare) * read_bytes


@pytest.mark.parametrize(("row_bytes", "reads"), [(300_000, 1), (8, 2)])
def test_only_short_runs_are_parted_among_threads(row_bytes: int, reads: int) -> None:
    rows = pa.table({"key": np.arange(200, dtype=np.int64)})
    store = FaultyStore(MemoryStore(rows, "key", rows_per_page=5, row_bytes=row_bytes))
    stats = JoinStats()
    ahead = ReadAhead(PageGroupReader(store, PageGroups(store, 1), WallClock(), stats), WallClock(), in_flight=4)
    pages, _ = ahead.read(np.array([1, 5]), [])
    ahead.close()
    assert pages.codes.tolist() == [*range(5, 10), *range(25, 30)]
    assert (store.reads, stats.read_requests) == (reads, 2)


def test_a_prepared_read_brings_what_a_read_does_in_another_thread(tmp_path: Path) -> None:
    rows = pa.table({"key": np.arange(3000, dtype=np.int64), "name": [f"row {key}" for key in range(3000)]})
    with MasterTable.build(rows, tmp_path / "master", "key", page_bytes=1024).open() as store:
        first, last = np.array([0, 4, store.page_count - 1]), np.array([1, 9, store.page_count - 1])
        prepared = store.prepared_read(first, last)
        with ThreadPoolExecutor(1) as threads:
            pages = threads.submit(prepared.read).result()
        expected = store.read(first, last)
        assert pages.codes.tolist() == expected.codes.tolist()
        assert prepared.size_bytes == store.ranges_bytes(first, last)
        assert pages.bounds.tolist() == expected.bounds.tolist()
        picked = np.array([len(pages.codes) - 1, 0, 7])
        assert pages.take(picked, ["name"]).equals(expected.take(picked, ["name"]))
        with pytest.raises(IndexError):
            store.prepared_read(np.array([0]), np.array([store.page_count]))
