"""Memory that moves between cached and waiting tuples, and caches of another size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.costs import PAPERS
from semistream.engine.assembly import Assembly
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.phases.stream_input import KeyInput
from semistream.generator import Workload, ZipfKeys
from semistream.policies.caching import LessUsedOverwrite
from semistream.policies.caching.frequency_sketch import FrequencySketch
from semistream.store.memory import MemoryStore
from semistream_lab.workload import DriftingKeys

ROWS = 60_000


def run(exponent: float, tuples: int, *, drift: int = 0, **parameters: float) -> tuple[Assembly, list[tuple[int, int]]]:
    """Join generated keys with DEMANDJOIN; return the parts, and after each round (cache, queue) capacities."""
    store = MemoryStore.of_codes(ROWS, row_bytes=120, page_bytes=4_000)
    clock = ModelClock(PAPERS)
    assembly = Assembly(
        algorithm_named("demandjoin"),
        store,
        MemoryBudget("1500kB"),
        clock,
        accounting="papers",
        parameters=parameters,
    )
    keys = ZipfKeys(ROWS, exponent, seed=1, ranks="shuffled")
    workload = Workload(DriftingKeys(keys, drift) if drift else keys)
    chunks = workload.chunks(4096, tuples)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    sizes = []
    for _ in loop.rounds():
        assert isinstance(assembly.cache, CachedTuples)
        sizes.append((assembly.cache.cache.capacity, loop.waiting.capacity))
    return assembly, sizes


def held_bytes(assembly: Assembly, sizes: tuple[int, int]) -> float:
    return sizes[0] * assembly.sizes.cached_bytes + sizes[1] * assembly.sizes.waiting_bytes


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_no_tuple_is_lost_and_the_memory_stays_the_same_while_it_moves(exponent: float) -> None:
    assembly, sizes = run(exponent, 400_000)
    assert assembly.stats.tuples_out == assembly.stats.tuples_in == 400_000
    assert len(set(sizes)) > 3
    before = held_bytes(assembly, sizes[0])
    assert all(held_bytes(assembly, now) <= before + assembly.sizes.cached_bytes for now in sizes)


def test_without_skew_the_cache_gives_its_memory_to_waiting_tuples_and_with_skew_it_does_not() -> None:
    share = {}
    for exponent in (0.0, 1.0):
        assembly, sizes = run(exponent, 600_000)
        share[exponent] = sizes[-1][0] * assembly.sizes.cached_bytes / held_bytes(assembly, sizes[-1])
    assert share[0.0] < 0.05 < 0.1 < share[1.0]


def test_a_balance_that_is_switched_off_moves_nothing() -> None:
    _, sizes = run(1.0, 200_000, balance=0)
    assert len(set(sizes)) == 1


def test_the_cache_follows_a_hot_set_that_jumps() -> None:
    assembly, _ = run(1.2, 800_000, drift=400_000)
    assert isinstance(assembly.cache, CachedTuples)
    hits = assembly.stats.cache_hits / assembly.stats.tuples_in
    steady, _ = run(1.2, 800_000)
    assert hits > 0.85 * steady.stats.cache_hits / steady.stats.tuples_in


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_a_resized_cache_keeps_its_most_used_entries(sizes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    cache = TupleCache(30, LessUsedOverwrite(), None)
    for size in sizes:
        codes = np.unique(random.integers(0, 1_000, 20))
        cache.admit(codes, random.integers(1, 50, len(codes)).astype(np.int32), None, absent=False)
        cache._check()
        held = cache._codes[: cache.count].copy()
        frequencies = dict(zip(held.tolist(), cache._frequencies[: cache.count].tolist(), strict=True))
        cache.resize(size)
        cache._check()
        kept = cache._codes[: cache.count].tolist()
        assert cache.capacity == size
        assert len(kept) == min(size, len(held))
        dropped = set(held.tolist()) - set(kept)
        assert not kept or not dropped or min(map(frequencies.get, kept)) >= max(map(frequencies.get, dropped))
        assert bool(cache.is_absent(np.array([cache.absent_slot]))[0])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_a_resized_sketch_never_forgets_a_count(sizes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    sketch = FrequencySketch(500)
    codes = random.integers(0, 2**60, 100)
    counts = random.integers(1, 20, 100).astype(np.int32)
    sketch.add(codes, counts)
    for size in sizes:
        sketch.resize(size)
        assert (sketch.estimate(codes) >= counts).all()


def test_uses_by_rank_are_in_an_order_that_was_known_before_them() -> None:
    cache = TupleCache(3, LessUsedOverwrite(), None)
    cache.admit(np.array([10, 20, 30]), np.array([5, 9, 1], dtype=np.int32), None, absent=False)
    cache.begin_window()
    cache.use(np.array([2, 2, 2, 0], dtype=np.int64))
    assert cache.uses_by_rank().tolist() == [1, 0, 3]  # slot 0 has the one that was worth most
    cache.age(1)
    cache.begin_window()
    assert cache.uses_by_rank().tolist() == [0, 0, 0]
