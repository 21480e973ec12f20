"""Parts of the table that are kept as whole pages, and DEMANDJOIN with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.clock import Clock, ModelClock, WallClock
from semistream.core.costs import PAPERS, SSD
from semistream.engine.assembly import Assembly
from semistream.engine.cache import balance
from semistream.engine.cache.kept_pages import KeptPages, part_page_groups
from semistream.engine.cache.tuples_and_pages import TuplesAndPages
from semistream.engine.phases.stream_input import KeyInput
from semistream.generator import AbsentKeys, Workload, ZipfKeys
from semistream.policies.caching import Kept, PageMemory, PageUse, best_kept
from semistream.store.memory import MemoryStore
from semistream_lab.workload import DriftingKeys

ROWS, STRIDE = 40_000, 2
TABLE_BYTES = ROWS * 120


def run(
    exponent: float,
    tuples: int,
    *,
    memory: int = TABLE_BYTES * 4 // 5,
    ranks: str = "shuffled",
    absent: float = 0.0,
    drift: int = 0,
    accounting: str = "papers",
    clock: Clock | None = None,
    **parameters: float,
) -> tuple[Assembly, list[tuple[int, int, int]]]:
    """Join generated keys; return the parts, and after each round what is cached, waits at most, and is kept."""
    codes = np.arange(1, ROWS + 1, dtype=np.int64) * STRIDE
    store = MemoryStore(pa.table({"key": codes}), "key", rows_per_page=33, row_bytes=120)
    clock = clock or ModelClock(PAPERS)
    assembly = Assembly(
        algorithm_named("demandjoin"),
        store,
        MemoryBudget(memory),
        clock,
        accounting=accounting,
        parameters=parameters,
    )
    keys = ZipfKeys(ROWS, exponent, seed=1, ranks=ranks, stride=STRIDE)
    source = DriftingKeys(keys, drift) if drift else keys
    chunks = Workload(AbsentKeys(source, absent, 0) if absent else source).chunks(4096, tuples)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    sizes = []
    for _ in loop.rounds():
        stage = assembly.cache
        kept = stage.kept if isinstance(stage, TuplesAndPages) else None
        if stage is not None and kept is not None:
            with stage.guard:
                kept._check()
        allocated = len(loop.waiting._next_chunk) * loop.waiting._chunk_tuples
        assert loop.waiting.count <= allocated
        sizes.append((stage.capacity if stage else 0, loop.waiting.capacity, kept.limit if kept else 0))
    return assembly, sizes


def kept_share(assembly: Assembly) -> float:
    assert isinstance(assembly.cache, TuplesAndPages)
    return assembly.cache.kept.row_count / ROWS


@pytest.mark.parametrize(("exponent", "ranks"), [(0.0, "shuffled"), (0.6, "sorted"), (1.0, "sorted")])
def test_every_tuple_is_answered_as_it_should_be_while_pages_come_and_stay(exponent: float, ranks: str) -> None:
    assembly, _ = run(exponent, 600_000, ranks=ranks, absent=0.25)
    keys = ZipfKeys(ROWS, exponent, seed=1, ranks=ranks, stride=STRIDE)
    absent = int((AbsentKeys(keys, 0.25, 0).draw(600_000) % STRIDE != 0).sum())
    stats = assembly.stats
    assert kept_share(assembly) > 0.2
    assert stats.tuples_out == stats.tuples_in == 600_000
    assert stats.absent == absent
    assert stats.cache_hits + stats.read_hits == 600_000 - absent


@pytest.mark.parametrize("exponent", [0.0, 0.8])
def test_what_is_cached_kept_and_waits_stays_within_its_memory(exponent: float) -> None:
    assembly, sizes = run(exponent, 600_000, ranks="sorted")
    per = assembly.sizes
    before = sizes[0][0] * per.cached_bytes + sizes[0][1] * per.waiting_bytes
    assert max(kept for _, _, kept in sizes) > 100
    for cached, waiting, kept in sizes:
        assert cached * per.cached_bytes + waiting * per.waiting_bytes + kept * per.kept_page_group_bytes <= (
            before + per.cached_bytes + per.waiting_bytes
        )


def test_a_small_table_that_is_asked_for_evenly_is_kept_in_part_and_read_less() -> None:
    kept, _ = run(0.0, 1_200_000, memory=TABLE_BYTES * 9 // 10)
    alone, _ = run(0.0, 1_200_000, memory=TABLE_BYTES * 9 // 10, pages=0)
    assert 0.5 < kept_share(kept) < 0.9
    assert kept.stats.bytes_read < 0.75 * alone.stats.bytes_read
    assert kept.clock.now() < 0.8 * alone.clock.now()


def test_a_table_much_larger_than_the_memory_is_read_as_ever() -> None:
    with_pages, _ = run(0.5, 300_000, memory=TABLE_BYTES // 4)
    without, _ = run(0.5, 300_000, memory=TABLE_BYTES // 4, pages=0)
    assert kept_share(with_pages) == 0.0
    assert with_pages.stats == without.stats
    assert with_pages.clock.now() == without.clock.now()


@pytest.mark.parametrize("parameters", [{"pages": 0.0}, {"balance": 0.0}])
def test_pages_that_are_switched_off_are_not_kept(parameters: dict[str, float]) -> None:
    assembly, _ = run(0.0, 50_000, **parameters)
    assert not isinstance(assembly.cache, TuplesAndPages)


def test_kept_pages_follow_a_hot_part_that_jumps() -> None:
    moved, _ = run(1.0, 1_600_000, ranks="sorted", drift=800_000)
    steady, _ = run(1.0, 1_600_000, ranks="sorted")
    assert moved.stats.cache_hits > 0.8 * steady.stats.cache_hits


@pytest.mark.parametrize("threads", [1, 2])
def test_pages_are_kept_in_real_time_within_the_bytes_that_are_allocated(threads: int) -> None:
    memory = 2_000_000
    assembly, _ = run(0.0, 1_500_000, memory=memory, accounting="real", clock=WallClock(), threads=threads)
    assert assembly.stats.tuples_out == 1_500_000
    assert assembly.stats.cache_hits + assembly.stats.read_hits == 1_500_000
    assert assembly.budget.used_bytes <= memory
    assert kept_share(assembly) > 0.2


def test_pages_cannot_come_between_the_question_for_page_groups_and_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def needs_page_groups(stage: TuplesAndPages) -> bool:
        guarded.append(stage.cache.lock.locked())
        return needs.__get__(stage)

    guarded: list[bool] = []
    needs = TuplesAndPages.needs_page_groups
    monkeypatch.setattr(TuplesAndPages, "needs_page_groups", property(needs_page_groups))
    run(0.0, 20_000, clock=WallClock(), threads=1)
    assert guarded
    assert all(guarded)


def test_parts_are_long_enough_that_reading_beside_them_costs_little() -> None:
    latency_bytes = SSD.seek_seconds * SSD.bytes_per_second
    assert part_page_groups(10_000, 8_192, latency_bytes) == int(2 * latency_bytes / 8_192)
    assert part_page_groups(1_000_000, 8_192, latency_bytes) == 3_907, "256 parts are enough"
    assert part_page_groups(160, 8_192, latency_bytes) == 10, "and 16 the fewest"
    assert part_page_groups(1, 8_192, latency_bytes) == 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_kept_pages_know_just_the_codes_of_the_pages_they_have(data: st.DataObject) -> None:
    page_groups, rows = 24, 5
    kept = KeptPages(page_groups, 4, rows)
    kept.locate = lambda codes: (codes // 10 // rows).astype(np.int32)
    there: set[int] = set()
    for _ in range(data.draw(st.integers(1, 8))):
        wanted = np.array(data.draw(st.lists(st.booleans(), min_size=6, max_size=6)))
        kept.want(wanted)
        there = {page_group for page_group in there if wanted[page_group // 4]}
        kept.allow(data.draw(st.integers(len(there), page_groups)))
        read = np.array(sorted(data.draw(st.sets(st.integers(0, page_groups - 1), min_size=1))), dtype=np.int64)
        kept.take((read[:, None] * rows + np.arange(rows)).ravel() * 10)
        new = [int(one) for one in read if wanted[one // 4] and one not in there]
        there |= set(new[: max(0, int(1.02 * rows * kept.limit) - rows * len(there)) // rows])
        kept._check()
        codes = np.arange(page_groups * rows * 10, dtype=np.int64)
        located = kept.locate(codes)
        slots = np.full(len(codes), -1, dtype=np.int32)
        kept.find(codes, located, slots, 7, 6)
        expected = np.where(np.isin(located, list(there)), np.where(codes % 10 == 0, 7, 6), -1)
        assert np.array_equal(slots, expected)


def comparisons(monkeypatch: pytest.MonkeyPatch, tuples: int) -> int:
    """Return how often parts are compared in a join of a table of which none is worth keeping."""
    times = 0

    def compared(use: PageUse, memory: PageMemory) -> Kept | None:
        nonlocal times
        times += 1
        return best_kept(use, memory)

    monkeypatch.setattr(balance, "best_kept", compared)
    assembly, _ = run(1.0, tuples, memory=TABLE_BYTES // 4)
    assert kept_share(assembly) == 0.0
    return times


def test_parts_are_compared_ever_more_rarely_while_nothing_is_to_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = comparisons(monkeypatch, 300_000), comparisons(monkeypatch, 1_200_000)
    assert 0 < short < long <= short + 4
    monkeypatch.setattr(balance, "_MAX_PATIENCE", 1)
    assert comparisons(monkeypatch, 1_200_000) > 3 * long
