"""Which parts of the table to keep as whole pages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from semistream.policies.caching import Kept, PageMemory, PageUse, best_kept

PARTS, PAGES = 40, 25
TABLE_BYTES = PARTS * PAGES * 8_000.0


def memory_of(share: float) -> PageMemory:
    """A memory that is so large beside the table."""
    total = share * TABLE_BYTES
    return PageMemory(
        total_bytes=total,
        page_group_bytes=8_000.0,
        entry_bytes=136.0,
        min_waiting_bytes=total / 64,
        min_entries=64,
        max_entry_share=0.6,
    )


def use_of(demand: np.ndarray, *, entries: int = 64, answered: float = 0.0) -> PageUse:
    """Parts with this demand, and cached tuples all over the table that answer a share of the stream together."""
    ranks = np.arange(1, entries + 1, dtype=np.float64)
    return PageUse(
        demand=demand / demand.sum() * (1 - answered),
        page_groups=np.full(PARTS, PAGES, dtype=np.int64),
        kept=np.zeros(PARTS, dtype=np.bool_),
        entry_parts=np.arange(entries, dtype=np.int64) % PARTS,
        entry_uses=answered * (1 / ranks) / (1 / ranks).sum(),
    )


def chosen(use: PageUse, memory: PageMemory) -> Kept:
    best = best_kept(use, memory)
    assert best is not None
    return best


@pytest.mark.parametrize("share", [0.7, 0.8, 0.9])
def test_of_a_table_asked_for_evenly_that_part_is_kept_which_the_memory_has_beyond_its_half(share: float) -> None:
    best = chosen(use_of(np.ones(PARTS)), memory_of(share))
    assert best.parts.mean() == pytest.approx(2 * share - 1, abs=0.06)
    assert np.abs(np.diff(best.parts.astype(int))).sum() == 1, "what is left to read is one run"
    assert best.entries < 200


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_of_a_table_twice_as_large_as_the_memory_that_is_asked_for_evenly_nothing_is_kept(share: float) -> None:
    assert best_kept(use_of(np.ones(PARTS)), memory_of(share)) is None


def test_parts_that_are_asked_for_most_are_kept_wherever_they_are() -> None:
    demand = np.ones(PARTS)
    demand[[7, 8, 30]] = 60
    best = chosen(use_of(demand), memory_of(0.3))
    assert best.parts[[7, 8, 30]].all()
    assert best.parts.sum() < 10


def test_a_few_frequent_tuples_on_every_page_are_cached_one_by_one() -> None:
    assert best_kept(use_of(np.ones(PARTS), entries=4_000, answered=0.9), memory_of(0.4)) is None


def test_single_tuples_of_parts_that_are_kept_are_not_cached_besides() -> None:
    use = use_of(np.ones(PARTS), entries=2_000, answered=2_000 / (PARTS * PAGES * 66))
    best = chosen(replace(use, entry_parts=np.zeros(2_000, dtype=np.int64)), memory_of(0.9))
    assert best.parts[0]
    assert best.entries < 1_000


def test_parts_that_nobody_asks_for_any_more_give_way() -> None:
    demand = np.ones(PARTS)
    demand[20:24] = 60
    before = np.zeros(PARTS, dtype=np.bool_)
    before[:10] = True
    best = chosen(replace(use_of(demand), kept=before), memory_of(0.4))
    assert best.parts[20:24].all()
    assert not best.parts[:10].all()


def test_noise_moves_nothing() -> None:
    best = chosen(use_of(np.ones(PARTS)), memory_of(0.8))
    random = np.random.default_rng(1)
    for _ in range(20):
        noisy = random.poisson(400, PARTS).astype(np.float64)
        assert best_kept(replace(use_of(noisy), kept=best.parts), memory_of(0.8)) is None


def test_some_memory_is_always_left_for_waiting_tuples() -> None:
    memory = memory_of(0.99)
    best = chosen(use_of(np.ones(PARTS)), memory)
    left = memory.total_bytes - best.parts.sum() * PAGES * memory.page_group_bytes - best.entries * memory.entry_bytes
    assert left >= memory.min_waiting_bytes
