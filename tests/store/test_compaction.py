"""Merges keep the number of files small, a compaction makes one of them, and readers open only so many."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from table_model import all_rows

from semistream.core.errors import CorruptTableError, SemistreamError
from semistream.master_table import MasterTable
from semistream.store.paged import PagedFileStore
from semistream.store.paged.read import open_files
from semistream.store.paged.write import compaction
from semistream.store.paged.write.compaction import files_to_fold

MEGABYTE = 1 << 20


def rows(keys: list[int], text: str) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "v": [f"{text} {key}" for key in keys]})


@pytest.fixture
def table(tmp_path: Path) -> MasterTable:
    return MasterTable.build(rows(list(range(4000)), "first"), tmp_path / "t", "k", page_bytes=512)


def opened(table: MasterTable, version: int | None = None) -> PagedFileStore:
    store = table.open(version)
    assert isinstance(store, PagedFileStore)
    return store


def many_files(table: MasterTable, count: int, monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """Merge as an earlier semistream did, without copying pages; return the rows."""
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "_TIER_FILES", 10**6)
        patch.setattr(compaction, "_MAX_MERGED_FILES", 10**6)
        for number in range(count):
            table.merge(rows([number * 30], f"merge {number}"))
    with table.open() as store:
        assert len(store.manifest.files) > count
        return {row["k"]: row["v"] for row in all_rows(store)}


def test_two_hundred_merges_leave_a_few_files_and_the_right_rows(table: MasterTable) -> None:
    model = {key: f"first {key}" for key in range(4000)}
    generator = np.random.default_rng(3)
    for number in range(200):
        keys = sorted(generator.choice(4000, 3, replace=False).tolist())
        table.merge(rows(keys, f"merge {number}"))
        model |= {key: f"merge {number} {key}" for key in keys}
        if number % 20 == 0:
            table.vacuum(keep_for=0)
        assert len(table.info()["files"]) <= 10
    with table.open() as store:
        assert {row["k"]: row["v"] for row in all_rows(store)} == model
    table.verify()


def test_what_a_merge_copies_is_bounded() -> None:
    names = [f"data-{number:08d}-00000000.pages" for number in range(1, 200)]
    small = np.full(7, 1000, dtype=np.int64)
    assert files_to_fold(small, names[:7], 1000).all(), "with its own they are eight"
    assert not files_to_fold(small[:6], names[:6], 1000).any()
    assert not files_to_fold(small, names[:7], 9 * MEGABYTE).any(), "its own is of another size"
    large = np.full(8, 300 * MEGABYTE, dtype=np.int64)
    assert not files_to_fold(large, names[:8], 1000).any()
    assert files_to_fold(large, names[:8], 600 * MEGABYTE).all()
    mixed = np.concatenate([small, large])
    assert files_to_fold(mixed, names[:15], 1000).tolist() == [True] * 7 + [False] * 8
    many = np.arange(100, 164, dtype=np.int64) * 100 * MEGABYTE
    assert files_to_fold(many, names[:64], 1000).tolist() == [True] * 9 + [False] * 55
    of_one_build = ["data-00000001-00000000.pages"] * 64
    assert not files_to_fold(many, of_one_build, 1000).any()
    assert not files_to_fold(np.zeros(64, dtype=np.int64), names[:64], 1000).any()


def test_the_number_of_files_stays_small_however_much_is_merged() -> None:
    live = [np.int64(10**13)]
    most = 0
    for number in range(3000):
        sizes = np.array(live, dtype=np.int64)
        names = [f"data-{place:08d}-00000000.pages" for place in range(1, len(live) + 1)]
        own = int(np.random.default_rng(number).integers(1000, 20 * MEGABYTE))
        folded = files_to_fold(sizes, names, own)
        live = [*sizes[~folded].tolist(), own + int(sizes[folded].sum())]
        most = max(most, len(live))
    assert most <= 65


def test_a_table_with_very_many_files_is_read_with_few_of_them_open(
    table: MasterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = many_files(table, 100, monkeypatch)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    store = opened(table)
    faults: list[BaseException] = []

    def look(seed: int) -> None:
        generator = np.random.default_rng(seed)
        try:
            for _ in range(30):
                pages = np.sort(generator.choice(store.page_count, 60, replace=False))
                actual = store.read(pages, pages)
                values = actual.take(np.arange(len(actual.codes)), ["v"]).column(0).to_pylist()
                assert [expected[code] for code in actual.codes.tolist()] == values
                held = len(os.listdir("/proc/self/fd")) - before  # noqa: PTH208
                assert held <= open_files.MAX_OPEN + 4 * open_files.MAX_AT_ONCE + 1
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert {row["k"]: row["v"] for row in all_rows(store)} == expected
    store.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_merges_bring_a_table_with_very_many_files_down(table: MasterTable, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = many_files(table, 100, monkeypatch)
    table.merge(rows([7], "after"))
    assert len(table.info()["files"]) <= 10
    with table.open() as store:
        assert {row["k"]: row["v"] for row in all_rows(store)} == expected | {7: "after 7"}


def test_a_file_that_is_closed_meanwhile_is_read_to_the_end(
    table: MasterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(table)
    from semistream.store.paged.read import descriptor_reads as reader

    read_extents = reader.read_extents

    def closing(*arguments: object) -> int:
        store.close()
        return read_extents(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reader, "read_extents", closing)
    assert len(store.read(np.array([0]), np.array([store.page_count - 1])).codes) == 4000
    with pytest.raises(SemistreamError, match="was closed"):
        store.read(np.array([0]), np.array([0]))


def test_a_file_that_is_gone_when_it_is_opened_again_is_named(
    table: MasterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_files(table, 70, monkeypatch)
    store = opened(table)
    for file in store.manifest.files:
        (table.path / file.name).unlink()
    with pytest.raises(SemistreamError, match=r"data-\S+ was removed while its version was being read"):
        all_rows(store)


def test_a_compaction_makes_one_file_of_the_same_pages(table: MasterTable) -> None:
    for number in range(5):
        table.merge(rows([number * 700], "merged"), rows([number * 700 + 1], ""))
    before = opened(table)
    assert table.compact() == 7
    after = opened(table)
    assert len(after.manifest.files) == 1
    assert after.manifest.files[0].size_bytes == 64 + int(after.entries.lengths.sum())
    assert (after.entries.checksums == before.entries.checksums).all()
    assert (np.diff(after.entries.offsets) == after.entries.lengths[:-1]).all()
    assert all_rows(after) == all_rows(before)
    table.verify()
    assert table.compact() == 7, "there is nothing to do"
    before.close()
    after.close()
    assert table.vacuum(keep_for=0)["kept"] == [7]
    assert len(list(table.path.glob("data-*"))) == 1


def test_an_empty_table_is_compact(tmp_path: Path) -> None:
    empty = MasterTable.build(rows([], ""), tmp_path / "t", "k")
    assert empty.compact() in (1, 2)
    assert empty.verify()["rows"] == 0


def test_a_damaged_page_is_not_copied(table: MasterTable) -> None:
    table.merge(rows([0], "merged"))
    store = opened(table)
    path = table.path / store.manifest.files[0].name
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptTableError, match=path.name):
        table.compact()
    assert table.version == 2


def test_what_was_cached_survives_a_compaction(table: MasterTable) -> None:
    codes = np.arange(4000, dtype=np.int64)
    table.merge(rows([100], "merged"))
    old = opened(table)
    table.compact()
    assert opened(table).unchanged_since(old.version, old.identity)(codes).all()
    table.merge(rows([200], "merged"))
    same = opened(table).unchanged_since(old.version, old.identity)(codes)
    assert not same[200]
    assert same.mean() > 0.98


def test_what_a_merge_copies_is_unchanged_and_what_it_changes_is_not(table: MasterTable) -> None:
    codes = np.arange(4000, dtype=np.int64)
    for number in range(6):
        table.merge(rows([number * 500], f"merge {number}"))
    old = opened(table)
    assert len(old.manifest.files) == 7
    table.merge(rows([3500], "folding"))
    new = opened(table)
    assert len(new.manifest.files) == 1
    same = new.unchanged_since(old.version, old.identity)(codes)
    assert not same[3500]
    assert same[:3400].all()
