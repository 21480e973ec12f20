"""Merging changes into tables."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_model import all_rows

from semistream.core.errors import KeyTypeError, MasterNotFoundError, NullKeyError, SchemaDriftError
from semistream.master_table import MasterTable
from semistream.store.paged import PagedFileStore

SCHEMA = {"int": pa.int64(), "short": pa.int32(), "text": pa.string()}


def table_of(rows: list[tuple[Any, str]], kind: str) -> pa.Table:
    keys = [f"key {key}" if kind == "text" else key for key, _ in rows]
    return pa.table({"v": pa.array([value for _, value in rows], pa.string()), "k": pa.array(keys, SCHEMA[kind])})


_key = st.integers(0, 120)
_rows = st.lists(st.tuples(_key, st.text("ab", max_size=40)), max_size=80)
_merge = st.tuples(_rows, st.lists(_key, max_size=60), st.sampled_from(["5KB", "64MB"]))


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(list(SCHEMA)), start=_rows, merges=st.lists(_merge, max_size=4))
def test_any_sequence_of_merges_equals_a_dict(
    kind: str, start: list[tuple[int, str]], merges: list[tuple[list[tuple[int, str]], list[int], str]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        model = dict(start)
        table = MasterTable.build(table_of(start, kind), f"{directory}/t", "k", page_bytes=512, on_duplicate="latest")
        for upserts, deletes, memory in merges:
            gone = table_of([(key, "") for key in deletes], kind).select(["k"])
            table.merge(table_of(upserts, kind), gone, memory=memory)
            for key in deletes:
                model.pop(key, None)
            model.update(upserts)
            with table.open() as store:
                found = {row["k"]: row["v"] for row in all_rows(store)}
                assert found == {row["k"]: row["v"] for row in table_of(list(model.items()), kind).to_pylist()}
                assert store.row_count == len(model)
            table.verify()


@settings(max_examples=30, deadline=None)
@given(kind=st.sampled_from(list(SCHEMA)), start=_rows, upserts=_rows, deletes=st.lists(_key, max_size=20))
def test_an_upsert_replaces_all_rows_of_a_key_in_a_table_that_keeps_all(
    kind: str, start: list[tuple[int, str]], upserts: list[tuple[int, str]], deletes: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = MasterTable.build(table_of(start, kind), f"{directory}/t", "k", page_bytes=512, on_duplicate="all")
        table.merge(table_of(upserts, kind), table_of([(key, "") for key in deletes], kind))
        gone = {*deletes, *(key for key, _ in upserts)}
        expected = [row for row in start if row[0] not in gone] + upserts
        found = all_rows(table.open())
        assert sorted(found, key=repr) == sorted(table_of(expected, kind).to_pylist(), key=repr)
        table.verify()


@pytest.fixture
def table(tmp_path: Path) -> MasterTable:
    rows = pa.table({"id": np.arange(10_000) * 2, "text": [f"row {number:030d}" for number in range(10_000)]})
    return MasterTable.build(rows, tmp_path / "t", "id")


def test_only_touched_pages_are_written(table: MasterTable) -> None:
    before = PagedFileStore(table.path)
    table.merge(pa.table({"id": [2000, 9001], "text": ["changed", "new"]}), pa.table({"id": [15_000]}))
    after = PagedFileStore(table.path)
    shared = set(before.entries.addresses.tolist()) & set(after.entries.addresses.tolist())
    assert len(shared) == before.page_count - 3
    assert after.row_count == 10_000
    assert table.info()["files"][2]["bytes"] < 5 * 8192


def test_a_read_over_pages_of_several_files_is_in_order(table: MasterTable) -> None:
    for number in range(0, 20_000, 1500):
        table.merge(pa.table({"id": [number + 1], "text": ["between"]}))
    store = table.open()
    found = store.read(np.array([0, 3]), np.array([store.page_count - 1, 9]))
    assert (np.diff(found.codes[: found.bounds[1]]) > 0).all()
    assert found.bounds[1] == 10_014
    table.verify()


def test_a_page_that_grows_is_split_and_an_emptied_page_disappears(table: MasterTable) -> None:
    before = PagedFileStore(table.path).page_count
    table.merge(pa.table({"id": np.arange(1, 2001, 2), "text": ["x" * 100] * 1000}))
    grown = PagedFileStore(table.path)
    assert grown.page_count > before + 5
    assert grown.entries.lengths.max() <= 8192
    table.merge(deletes=pa.table({"id": np.arange(0, 10_000)}))
    assert PagedFileStore(table.path).page_count < before * 0.6
    table.verify()


def test_rows_behind_the_last_key_fill_new_pages(table: MasterTable) -> None:
    table.merge(pa.table({"id": np.arange(50_000, 80_000), "text": ["x" * 20] * 30_000}), memory="200KB")
    assert table.open().row_count == 40_000
    assert table.verify()["rows"] == 40_000


def test_deletes_of_absent_keys_write_nothing(table: MasterTable) -> None:
    assert table.merge(deletes=pa.table({"id": np.arange(1, 20_000, 2)})) == 1
    assert table.merge() == 1
    assert table.version == 1
    assert len(list(table.path.iterdir())) == 4


def test_a_delete_applies_before_an_upsert_of_the_same_key(table: MasterTable) -> None:
    table.merge(pa.table({"id": [4], "text": ["kept"]}), pa.table({"id": [4]}))
    assert all_rows(table.open())[2] == {"id": 4, "text": "kept"}


def test_the_last_upsert_of_a_key_wins(table: MasterTable) -> None:
    table.merge(pa.table({"id": [4, 6, 4], "text": ["first", "other", "last"]}))
    assert all_rows(table.open())[2]["text"] == "last"


def test_changes_larger_than_memory_are_sorted_on_disk(table: MasterTable) -> None:
    order = np.random.default_rng(2).permutation(30_000)
    rows = pa.table({"id": order, "text": [f"new {number}" for number in order]})
    table.merge(rows, pa.table({"id": order[:20_000]}), memory="200KB")
    assert all_rows(table.open()) == rows.sort_by("id").to_pylist()
    assert not list(table.path.glob("tmp-*"))


def test_an_added_column_is_refused_before_any_write(table: MasterTable) -> None:
    before = sorted(path.name for path in table.path.iterdir())
    with pytest.raises(SchemaDriftError, match="no column 'colour', so its values would be lost: leave it out"):
        table.merge(pa.table({"colour": ["red"], "text": ["changed"], "id": [0]}))
    assert sorted(path.name for path in table.path.iterdir()) == before


def test_deletes_may_be_whole_rows(table: MasterTable) -> None:
    table.merge(deletes=pa.table({"colour": ["red"], "text": ["changed"], "id": [0]}))
    assert all_rows(table.open())[0]["id"] != 0


def test_a_dropped_or_retyped_column_stops_before_any_write(table: MasterTable) -> None:
    before = sorted(path.name for path in table.path.iterdir())
    with pytest.raises(SchemaDriftError, match=r"'text'.*is missing"):
        table.merge(pa.table({"id": [0]}))
    with pytest.raises(SchemaDriftError, match="'text' is int64, but it is string"):
        table.merge(pa.table({"id": [0], "text": [1]}))
    with pytest.raises(SchemaDriftError, match="'id' is missing"):
        table.merge(deletes=pa.table({"key": [0]}))
    with pytest.raises(KeyTypeError, match="string in the stream but int64"):
        table.merge(deletes=pa.table({"id": ["0"]}))
    assert sorted(path.name for path in table.path.iterdir()) == before


def test_a_null_key_among_upserts_is_refused_and_among_deletes_matches_nothing(table: MasterTable) -> None:
    with pytest.raises(NullKeyError, match=r"^1 master rows"):
        table.merge(pa.table({"id": [None, 3], "text": ["a", "b"]}, schema=table.open().schema))
    assert table.merge(deletes=pa.table({"id": pa.array([None], pa.int64())})) == 1


def test_deletes_may_have_a_narrower_key_type(table: MasterTable) -> None:
    table.merge(deletes=pa.table({"id": pa.array([0, 2], pa.int16())}))
    assert table.open().row_count == 9_998


def test_the_old_version_stays_readable(table: MasterTable) -> None:
    table.merge(pa.table({"id": [0], "text": ["changed"]}))
    assert all_rows(table.open(version=1))[0]["text"] == f"row {0:030d}"
    assert all_rows(table.open())[0]["text"] == "changed"


def test_a_merge_needs_a_table(tmp_path: Path) -> None:
    with pytest.raises(MasterNotFoundError, match=r"MasterTable\.build"):
        MasterTable(tmp_path / "absent").merge(pa.table({"id": [0]}))
    assert not (tmp_path / "absent").exists()
