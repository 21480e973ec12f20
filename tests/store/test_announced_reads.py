"""Reads from a slow disk are announced to the system, and bring the same pages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.errors import SemistreamError
from semistream.master_table import MasterTable
from semistream.store.paged.read import descriptor_reads as reading

PAGES = 400


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> MasterTable:
    keys = np.arange(PAGES * 20, dtype=np.int64)
    rows = pa.table({"key": keys, "name": [f"row {key} {'x' * 30}" for key in keys]})
    path: Path = tmp_path_factory.mktemp("master") / "table"
    return MasterTable.build(rows.to_batches(), path, "key", page_bytes=1024)


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return where the first and last extents of announcements are put."""
    announcements: list[tuple[int, int]] = []
    announce = reading.announce_extents

    def noted(descriptors: np.ndarray, extents: np.ndarray, first: int, last: int) -> None:
        announcements.append((first, last))
        announce(descriptors, extents, first, last)

    monkeypatch.setattr(reading, "announce_extents", noted)
    return announcements


@pytest.mark.parametrize("is_slow", [True, False])
def test_what_is_left_of_a_slow_read_is_announced_and_the_same_rows_come(
    table: MasterTable, announced: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, is_slow: bool
) -> None:
    monkeypatch.setattr(reading, "_CACHED_SECONDS", -1.0 if is_slow else 1000.0)
    store = table.open()
    pages = np.arange(0, min(store.page_count, PAGES), 2)
    actual = store.read(pages, pages)
    alone = [store.read(pages[index : index + 1], pages[index : index + 1]) for index in range(len(pages))]
    assert actual.codes.tolist() == [code for one in alone for code in one.codes.tolist()]
    whole = (reading._EXTENTS_TIMED, len(pages))
    assert announced[:1] == ([whole] if is_slow else [])


def test_direct_reads_are_not_announced(
    table: MasterTable, announced: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_CACHED_SECONDS", -1.0)
    try:
        store = table.open(direct=True)
    except SemistreamError:
        pytest.skip("the file system refuses direct reads")
    pages = np.arange(0, 100, 2)
    store.read(pages, pages)
    assert not announced
