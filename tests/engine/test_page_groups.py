"""Page groups: neighbouring pages that one read brings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from semistream.engine.reading.overlapping_page_groups import OverlappingPageGroups
from semistream.engine.reading.page_groups import PageGroups
from semistream.store.contract import MasterStore
from semistream.store.memory import MemoryStore
from semistream.store.wrapping import WrappingStore


class UnevenStore(WrappingStore):
    """Shows a store whose pages have the sizes that a test wants."""

    def __init__(self, inside: MasterStore, page_bytes: list[int]) -> None:
        super().__init__(inside)
        assert len(page_bytes) == inside.page_count
        self._page_bytes = page_bytes

    @property
    def largest_page_bytes(self) -> int:
        return max(self._page_bytes)

    def range_bytes(self, first_page: int, last_page: int) -> int:
        return sum(self._page_bytes[first_page : last_page + 1])


def table(pages: int) -> MemoryStore:
    return MemoryStore(pa.table({"id": np.arange(pages * 4)}), "id", rows_per_page=4)


def assert_is_a_map(page_groups: PageGroups, store: MasterStore) -> None:
    first, last = page_groups.pages_of(np.arange(page_groups.count))
    covered = [page for a, b in zip(first.tolist(), last.tolist(), strict=True) for page in range(a, b + 1)]
    assert covered == list(range(store.page_count))
    codes = np.arange(store.row_count)
    home = page_groups.locate(codes)
    pages = store.locate(codes)
    assert ((first[home] <= pages) & (pages <= last[home])).all()
    far = page_groups.locate(np.array([-(2**63), 2**63 - 1]))
    assert far.tolist() == [0, page_groups.count - 1]


@pytest.mark.parametrize("pages", [1, 2, 7, 12])
@pytest.mark.parametrize("together", [1, 2, 5, 12])
def test_even_pages_are_grouped_by_number(pages: int, together: int) -> None:
    store = table(pages)
    page_groups = PageGroups(store, together, largest_bytes=10**6)
    assert page_groups.count == -(-pages // together)
    assert page_groups.unreadable(np.arange(page_groups.count, dtype=np.int32)) is None
    assert_is_a_map(page_groups, store)


@pytest.mark.parametrize("seed", range(6))
def test_uneven_pages_are_grouped_by_bytes(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = np.where(random.random(40) < 0.1, random.integers(5000, 9000, 40), random.integers(80, 120, 40))
    sizes[0 if seed % 2 else -1] = 20_000
    store = UnevenStore(table(40), sizes.tolist())
    page_groups = PageGroups(store, 3, largest_bytes=7000)
    assert_is_a_map(page_groups, store)
    wanted = int(sizes.mean() * 3)
    unreadable = page_groups.unreadable(np.arange(page_groups.count, dtype=np.int32))
    assert unreadable is not None
    for number in range(page_groups.count):
        first, last = (int(pages[0]) for pages in page_groups.pages_of(np.array([number])))
        size = store.range_bytes(first, last)
        assert first == last or size <= wanted
        assert bool(unreadable[number]) == (first == last and size > 7000)


def test_a_table_of_pages_that_are_all_too_large_has_nothing_to_read() -> None:
    store = UnevenStore(table(3), [900, 900, 900])
    page_groups = PageGroups(store, 1, largest_bytes=500)
    assert_is_a_map(page_groups, store)
    assert page_groups.unreadable(np.arange(3, dtype=np.int32)).tolist() == [True] * 3


@pytest.mark.parametrize("pages", [1, 2, 7, 12])
@pytest.mark.parametrize("together", [1, 2, 5, 12])
def test_a_page_group_that_overlaps_others_begins_at_every_page(pages: int, together: int) -> None:
    page_groups = OverlappingPageGroups(table(pages), together, largest_bytes=10**6)
    first, last = page_groups.pages_of(np.arange(page_groups.count))
    assert first.tolist() == list(range(pages))
    assert last.tolist() == [min(page + together, pages) - 1 for page in range(pages)]
    assert page_groups.locate(np.arange(4 * pages)).tolist() == [code // 4 for code in range(4 * pages)]
    assert list(page_groups.disjoint()) == list(range(0, pages, together))
    assert_knows_what_overlaps(page_groups)


@pytest.mark.parametrize("seed", range(6))
def test_uneven_pages_overlap_by_bytes_and_never_reach_what_is_too_large(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = np.where(random.random(40) < 0.1, random.integers(5000, 9000, 40), random.integers(80, 120, 40))
    sizes[0 if seed % 2 else -1] = 20_000
    store = UnevenStore(table(40), sizes.tolist())
    page_groups = OverlappingPageGroups(store, 3, largest_bytes=7000)
    everyone = np.arange(page_groups.count)
    unreadable = page_groups.unreadable(everyone)
    assert unreadable is not None
    for number, (first, last) in enumerate(
        zip(*(pages.tolist() for pages in page_groups.pages_of(everyone)), strict=True)
    ):
        size = store.range_bytes(first, last)
        within_one = page_groups.last[number] == number
        assert within_one or size <= sizes.mean() * 3
        assert unreadable[number] == (size > 7000 and first == last)
        assert within_one or max(sizes[first : last + 1]) <= 7000
    covered = []
    for number in page_groups.disjoint():
        first, last = (int(pages[0]) for pages in page_groups.pages_of(np.array([number])))
        covered += range(first, last + 1)
    assert covered == list(range(40))
    assert_knows_what_overlaps(page_groups)


def assert_knows_what_overlaps(page_groups: PageGroups) -> None:
    first, last = page_groups.pages_of(np.arange(page_groups.count))
    for number in range(page_groups.count):
        shares = (first <= last[number]) & (first[number] <= last)
        assert list(page_groups.overlapping(number)) == np.flatnonzero(shares).tolist()
