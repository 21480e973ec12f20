"""How pages come from the disk into memory: sizes told beforehand, short reads, errors, memory that is used again."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.errors import CorruptTableError, MasterNotFoundError, SemistreamError
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream.store.counting import CountingStore
from semistream.store.memory import MemoryStore
from semistream.store.paged import PagedFileStore
from semistream.store.paged.read import descriptor_reads as reader
from semistream.store.paged.read.read_memory import ReadMemory
from semistream.store.places.local_folder import LocalFolder
from semistream.store.places.place import Lease


def products(count: int = 3000, text: str = "row") -> pa.Table:
    return pa.table({"id": np.arange(count) * 2, "text": [f"{text} {number:020d}" for number in range(count)]})


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> MasterTable:
    """A table whose pages lie in three files."""
    table = MasterTable.build(products(), tmp_path_factory.mktemp("merged") / "t", "id", page_bytes=1024)
    table.merge(products(40, "new"))
    table.merge(pa.table({"id": [1001, 1003, 5001], "text": ["a", "b", "c"]}))
    return table


def _direct(table: MasterTable) -> PagedFileStore:
    try:
        return PagedFileStore(table.path, direct=True)
    except SemistreamError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["paged file", "direct", "memory", "wrapped"])
def store(request: pytest.FixtureRequest, merged: MasterTable) -> Iterator[MasterStore]:
    makers = {
        "paged file": lambda: PagedFileStore(merged.path),
        "direct": lambda: _direct(merged),
        "memory": lambda: MemoryStore(products(), "id"),
        "wrapped": lambda: CountingStore(PagedFileStore(merged.path)),
    }
    with makers[request.param]() as made:
        yield made


def some_ranges(page_count: int) -> np.ndarray[Any, Any]:
    drawn = np.random.default_rng(3).integers(0, page_count, (400, 2))
    drawn[:200, 1] = drawn[:200, 0]
    return np.sort(drawn, axis=1)


def test_the_bytes_of_ranges_are_the_sum_of_the_bytes_of_each(store: MasterStore) -> None:
    ranges = some_ranges(store.page_count)
    each = [store.range_bytes(first, last) for first, last in ranges.tolist()]
    assert store.ranges_bytes(ranges[:, 0], ranges[:, 1]) == sum(each)
    assert MasterStore.ranges_bytes(store, ranges[:, 0], ranges[:, 1]) == sum(each)
    nothing = np.zeros(0, dtype=np.int64)
    assert store.ranges_bytes(nothing, nothing) == 0


@pytest.mark.parametrize("direct", [False, True])
def test_a_read_transfers_the_bytes_that_were_told(merged: MasterTable, direct: bool) -> None:
    with _direct(merged) if direct else PagedFileStore(merged.path) as store:
        for first, last in some_ranges(store.page_count)[::7].tolist():
            pages = store.read_pages(np.array([first]), np.array([last]))
            assert pages.buffer.size == store.range_bytes(first, last)
            if not direct:
                assert store.range_bytes(first, last) == store.entries.lengths[first : last + 1].sum()


def test_ranges_that_are_not_of_the_table_are_refused(merged: MasterTable) -> None:
    with PagedFileStore(merged.path) as store:
        for first, last in ((-1, 0), (2, 1), (0, store.page_count)):
            with pytest.raises(IndexError, match=f"of {store.page_count}"):
                store.range_bytes(first, last)
            with pytest.raises(IndexError, match=f"of {store.page_count}"):
                store.ranges_bytes(np.array([0, first]), np.array([0, last]))


@settings(max_examples=40, deadline=None)
@given(stops=st.lists(st.booleans(), min_size=1, max_size=30), at_once=st.integers(1, 40))
def test_a_read_that_is_interrupted_goes_on(merged: MasterTable, stops: list[bool], at_once: int) -> None:
    with PagedFileStore(merged.path) as store, pytest.MonkeyPatch.context() as patch:
        pages = np.random.default_rng(1).permutation(store.page_count)[:90]
        whole = store.read_pages(pages, pages)
        read_extents = reader.read_extents
        turns = iter(stops)

        def stopping(descriptors: Any, extents: Any, first: int, last: int, memory: Any) -> int:
            return first if next(turns, False) else read_extents(descriptors, extents, first, last, memory)

        patch.setattr(reader, "read_extents", stopping)
        patch.setattr(reader, "_EXTENTS_AT_ONCE", at_once)
        parted = store.read_pages(pages, pages)
        assert parted.buffer.equals(whole.buffer)
        assert (parted.codes == whole.codes).all()


def test_a_file_that_shrinks_while_it_is_open_is_noticed(tmp_path: Path) -> None:
    table = MasterTable.build(products(), tmp_path / "t", "id", page_bytes=1024)
    (data,) = table.path.glob("data-*")
    with PagedFileStore(table.path) as store:
        half = data.stat().st_size // 2
        os.truncate(data, half)
        pages = np.arange(store.page_count)
        with pytest.raises(CorruptTableError, match=r"data-\S+ is truncated: expected \d+ bytes from \d+ on, found"):
            store.read(pages, pages)
        with pytest.raises(CorruptTableError, match=r"expected \d+ bytes from 64 on, found \d+"):
            store.read(pages[:1], pages[-1:])
        assert len(store.read(pages[:5], pages[:5]).codes)


def test_an_error_of_the_system_is_raised_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = MasterTable.build(products(100), tmp_path / "t", "id")
    descriptor = os.open(tmp_path / "unreadable", os.O_WRONLY | os.O_CREAT)
    try:
        with PagedFileStore(table.path) as store:
            monkeypatch.setattr(store._files, "_descriptors", np.array([descriptor], dtype=np.int32))
            with pytest.raises(OSError, match="Bad file descriptor"):
                store.read(np.array([0]), np.array([0]))
            monkeypatch.undo()
    finally:
        os.close(descriptor)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = MasterTable.build(products(10), tmp_path / "t", "id").open()
    store.close()
    with pytest.raises(SemistreamError, match="was closed: open the table again"):
        store.read(np.array([0]), np.array([0]))


def test_a_version_that_is_replaced_while_it_is_looked_for_does_not_stop_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = MasterTable.build(products(10), tmp_path / "t", "id")
    lease = LocalFolder.lease

    def replaced_meanwhile(place: LocalFolder, name: str) -> Lease:
        monkeypatch.setattr(LocalFolder, "lease", lease)
        table.merge(products(11))
        table.vacuum(keep_for=0)
        return lease(place, name)

    monkeypatch.setattr(LocalFolder, "lease", replaced_meanwhile)
    assert table.open().version == 2
    with pytest.raises(MasterNotFoundError, match="has no version 1: it has 2"):
        table.open(version=1)


def test_memory_is_used_again_for_reads_of_about_the_same_size() -> None:
    memory = ReadMemory()
    places = set()
    for size_bytes in (5_000_000, 5_100_000, 2_000_000, 4_900_000, 5_200_000):
        block = memory.take(size_bytes)
        assert block.nbytes == size_bytes
        block[:] = 7
        places.add(block.ctypes.data)
        del block
        gc.collect()
    assert len(places) == 1


def test_memory_in_use_is_not_handed_out_again() -> None:
    memory = ReadMemory()
    blocks = [memory.take(100_000) for _ in range(5)]
    for number, block in enumerate(blocks):
        block[:] = number
    assert [int(block.min()) for block in blocks] == [int(block.max()) for block in blocks] == [0, 1, 2, 3, 4]


def test_a_large_block_stays_for_a_few_small_reads_and_not_for_many() -> None:
    memory = ReadMemory()
    first = memory.take(8_000_000).ctypes.data
    for _ in range(5):
        memory.take(1000)
    assert memory.take(8_000_000).ctypes.data == first
    for _ in range(50):
        memory.take(1000)
    assert max(len(block) for block, _ in memory._spare) < 1_000_000
