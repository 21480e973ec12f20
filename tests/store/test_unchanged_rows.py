"""What is said to be unchanged between two versions of a table is really the same in both."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_model import all_rows

from semistream.core.arrays import BoolArray, Int64Array
from semistream.master_table import MasterTable
from semistream.store.paged import PagedFileStore
from semistream.store.paged.versions import manifest

_keys = st.integers(0, 150)
_rows = st.lists(st.tuples(_keys, st.text("ab", max_size=30)), max_size=120)
_change = st.tuples(st.lists(st.tuples(_keys, st.text("ab", max_size=30)), max_size=6), st.lists(_keys, max_size=4))


def table_of(rows: list[tuple[int, str]], kind: str) -> pa.Table:
    keys = [f"key {key}" if kind == "text" else key for key, _ in rows]
    return pa.table(
        {
            "v": pa.array([value for _, value in rows], pa.string()),
            "k": pa.array(keys, pa.string() if kind == "text" else pa.int64()),
        }
    )


def opened(table: MasterTable, version: int) -> PagedFileStore:
    store = table.open(version)
    assert isinstance(store, PagedFileStore)
    return store


def unchanged(store: PagedFileStore, version: int, codes: Int64Array) -> BoolArray:
    known = version in manifest.versions(store.place)
    return store.unchanged_since(version, manifest.load(store.place, version).identity if known else "gone")(codes)


def codes_of(store: PagedFileStore, kind: str) -> dict[int, Int64Array]:
    keys = table_of([(key, "") for key in range(-2, 155)], kind)["k"].combine_chunks()
    return dict(zip(range(-2, 155), store.codec.encode([keys]).codes, strict=True))


def values_by_key(store: PagedFileStore, kind: str) -> dict[Any, list[str]]:
    by_key: dict[Any, list[str]] = defaultdict(list)
    for row in all_rows(store):
        by_key[int(row["k"].removeprefix("key ")) if kind == "text" else row["k"]].append(row["v"])
    return by_key


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["integer", "text"]),
    duplicates=st.sampled_from(["latest", "all"]),
    start=_rows,
    changes=st.lists(_change, min_size=1, max_size=3),
)
def test_rows_and_absences_that_are_called_unchanged_are_the_same(
    kind: str,
    duplicates: str,
    start: list[tuple[int, str]],
    changes: list[tuple[list[tuple[int, str]], list[int]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = MasterTable.build(table_of(start, kind), f"{folder}/t", "k", page_bytes=512, on_duplicate=duplicates)
        for upserts, deletes in changes:
            table.merge(table_of(upserts, kind), table_of([(key, "") for key in deletes], kind).select(["k"]))
        versions = [opened(table, version) for version in range(1, table.version + 1)]
        content = [values_by_key(store, kind) for store in versions]
        codes = codes_of(versions[0], kind)
        asked = np.array(list(codes.values()), dtype=np.int64)
        for newer, store in enumerate(versions):
            for older in range(len(versions)):
                same = unchanged(store, older + 1, asked)
                assert same.shape == asked.shape
                if older == newer:
                    assert same.all()
                for key, is_same in zip(codes, same.tolist(), strict=True):
                    assert not is_same or content[newer][key] == content[older][key], (key, older, newer)


@pytest.fixture
def large(tmp_path_factory: pytest.TempPathFactory) -> MasterTable:
    """Return a table of many pages."""
    rows = pa.table({"k": np.arange(0, 8000, 2), "v": [f"value {number}" for number in range(4000)]})
    return MasterTable.build(rows, tmp_path_factory.mktemp("unchanged") / "t", "k", page_bytes=512)


def test_a_small_merge_leaves_nearly_all_rows_unchanged(large: MasterTable) -> None:
    large.merge(pa.table({"k": [4000], "v": ["other"]}), pa.table({"k": [12]}))
    same = unchanged(opened(large, 2), 1, np.arange(8000, dtype=np.int64))
    assert not same[[4000, 12]].any()
    assert same.mean() > 0.95


def test_nothing_is_known_of_a_version_that_is_gone_or_of_other_columns(large: MasterTable) -> None:
    codes = np.arange(100, dtype=np.int64)
    large.merge(pa.table({"k": [4000], "v": ["other"]}))
    large.vacuum(keep_for=0)
    assert not unchanged(opened(large, 2), 1, codes).any()
    assert not unchanged(opened(large, 2), 77, codes).any()
    MasterTable.build(pa.table({"k": [1, 2], "v": [1, 2]}), large.path, "k")
    assert not unchanged(opened(large, 3), 2, codes).any()


def test_a_table_that_was_or_is_empty_has_nothing_unchanged(large: MasterTable) -> None:
    codes = np.arange(100, dtype=np.int64)
    MasterTable.build(pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.string())}), large.path, "k")
    assert not unchanged(opened(large, 2), 1, codes).any()
    assert not unchanged(opened(large, 1), 2, codes).any()
    assert unchanged(opened(large, 2), 1, codes[:0]).shape == (0,)


def test_nothing_is_the_same_in_a_table_that_was_built_again_in_the_same_place(tmp_path: Path) -> None:
    rows = table_of([(key, "a") for key in range(50)], "integer")
    old = opened(MasterTable.build(rows, tmp_path / "t", "k"), 1)
    shutil.rmtree(tmp_path / "t")
    new = opened(MasterTable.build(rows, tmp_path / "t", "k"), 1)
    assert not new.unchanged_since(1, old.identity)(np.arange(50, dtype=np.int64)).any()
