"""Tables whose rows are in the order of their use."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_model import all_rows

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.budget import parse_bytes
from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream.engine.cache.hot_rows import HotRows
from semistream.master_table import MasterTable
from semistream.spark.saved_cache import SavedCache
from semistream.store.paged import PagedFileStore
from semistream.store.paged.format import layout
from semistream.store.paged.format.heat_map import HeatMap
from semistream.store.paged.write.heat import HottestKeys, heat_map_of
from semistream.store.tables import table_at

SCHEMA = {"int": pa.int64(), "short": pa.int32(), "text": pa.string()}
COUNT = 20_000


@pytest.fixture(autouse=True, scope="module")
def _small_classes() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("semistream.store.paged.write.heat._SMALLEST_CLASS", 4)
        yield


def table_of(rows: list[tuple[int, str]], kind: str) -> pa.Table:
    keys = [f"key {key}" if kind == "text" else key for key, _ in rows]
    return pa.table({"v": pa.array([value for _, value in rows], pa.string()), "k": pa.array(keys, SCHEMA[kind])})


def counts_of(counts: dict[int, int], kind: str) -> pa.Table:
    keys = table_of([(key, "") for key in counts], kind).column("k")
    return pa.table({"k": keys, "count": list(counts.values())})


def opened(table: MasterTable, version: int | None = None) -> PagedFileStore:
    store = table.open(version)
    assert isinstance(store, PagedFileStore)
    return store


def assert_found(store: PagedFileStore, rows: pa.Table) -> None:
    """Assert that each row is on the page that its key is located on, and that there are no others."""
    codes = store.codec.encode([rows.column(name).combine_chunks() for name in store.key]).codes
    pages = store.locate(codes).astype(np.int64)
    for page in range(store.page_count):
        assert set(store.read(np.array([page]), np.array([page])).codes) == set(codes[pages == page])


_key = st.integers(0, 120)
_rows = st.lists(st.tuples(_key, st.text("ab", max_size=40)), max_size=80)
_counts = st.dictionaries(_key, st.integers(0, 9), max_size=80)
_merge = st.tuples(_rows, st.lists(_key, max_size=60), st.sampled_from(["5KB", "64MB"]))
_steps = st.lists(st.one_of(_merge, _counts, st.sampled_from(["compact", "refresh"])), max_size=5)


@settings(max_examples=80, deadline=None)
@given(kind=st.sampled_from(list(SCHEMA)), start=_rows, counts=_counts, steps=_steps)
def test_any_sequence_of_merges_of_a_table_by_use_equals_a_dict(
    kind: str, start: list[tuple[int, str]], counts: dict[int, int], steps: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        model = dict(start)
        table = MasterTable.build(table_of(start, kind), f"{directory}/t", "k", page_bytes=512, on_duplicate="latest")
        for step in [counts, *steps]:
            if isinstance(step, dict):
                if len(model) > 1 and any(step.get(key) for key in model):
                    table.recluster(counts_of(step, kind))
                    assert table.info()["by_use"]["keys"] <= len(model) // 2
            elif step == "compact":
                table.compact()
            elif step == "refresh":
                model = {key: value for key, value in model.items() if key % 5} | {3: "refreshed", 200: "new"}
                table.refresh(table_of(list(model.items()), kind))
            else:
                upserts, deletes, memory = step
                gone = table_of([(key, "") for key in deletes], kind).select(["k"])
                table.merge(table_of(upserts, kind), gone, memory=memory)
                for key in deletes:
                    model.pop(key, None)
                model.update(upserts)
            expected = table_of(list(model.items()), kind)
            with opened(table) as store:
                found = {row["k"]: row["v"] for row in all_rows(store)}
                assert found == {row["k"]: row["v"] for row in expected.to_pylist()}
                assert store.row_count == len(model)
                assert_found(store, expected)
            table.verify()


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(list(SCHEMA)), start=_rows, counts=_counts, merges=st.lists(_merge, max_size=3))
def test_rows_that_are_called_unchanged_are_the_same(
    kind: str, start: list[tuple[int, str]], counts: dict[int, int], merges: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = MasterTable.build(table_of(start, kind), f"{directory}/t", "k", page_bytes=512, on_duplicate="latest")
        models = [dict(start)]
        if len(models[0]) > 1 and any(counts.get(key) for key in models[0]):
            table.recluster(counts_of(counts, kind))
            models.append(models[0])
        for upserts, deletes, _ in merges:
            gone = table_of([(key, "") for key in deletes], kind).select(["k"])
            if table.merge(table_of(upserts, kind), gone) > len(models):
                model = {key: value for key, value in models[-1].items() if key not in deletes}
                models.append(model | dict(upserts))
        keys = list(range(125))
        stores = [opened(table, number) for number in range(1, len(models) + 1)]
        column = table_of([(key, "") for key in keys], kind).column("k").combine_chunks()
        codes = stores[0].codec.encode([column]).codes
        for then, old in zip(models, stores, strict=True):
            for now, new in zip(models, stores, strict=True):
                same = new.unchanged_since(old.version, old.identity)(codes)
                changed = [key for key, is_same in zip(keys, same, strict=True) if is_same]
                assert [then.get(key) for key in changed] == [now.get(key) for key in changed]


@pytest.fixture
def rows() -> pa.Table:
    heat = np.random.default_rng(5).permutation(COUNT)
    return pa.table({"id": np.arange(COUNT) * 3, "rank": heat, "text": [f"row {number:040d}" for number in heat]})


@pytest.fixture
def table(tmp_path: Path, rows: pa.Table) -> MasterTable:
    return MasterTable.build(rows, tmp_path / "t", "id", page_bytes=2048)


def test_the_hottest_rows_are_on_the_first_pages(table: MasterTable, rows: pa.Table) -> None:
    heat = pa.array(COUNT - rows.column("rank").to_numpy())
    table.recluster(pa.table({"id": rows.column("id"), "count": heat}))
    store = opened(table)
    pages = store.locate(rows.column("id").to_numpy())
    ranks = rows.column("rank").to_numpy()
    for hottest in (10, 100, 1000, 5000):
        # Twice as many rows at most, since classes double, and some that look like hot ones.
        needed = 2.3 * hottest * store.page_count / COUNT + 4
        assert pages[ranks < hottest].max() < needed


def test_a_column_tells_the_heat(table: MasterTable, rows: pa.Table) -> None:
    table.recluster("rank")
    pages = table.open().locate(rows.column("id").to_numpy()[rows.column("rank").to_numpy() >= COUNT - 50])
    assert pages.max() < 10
    assert table.info()["by_use"]["by"] == "column rank"


def test_rows_without_a_value_are_cold_and_moments_before_1970_may_be_hot(tmp_path: Path) -> None:
    days = pa.array([None if day % 3 else -day for day in range(3000)], pa.int32()).cast(pa.date32())
    table = MasterTable.build(pa.table({"id": np.arange(3000), "day": days}), tmp_path / "t", "id", page_bytes=512)
    table.recluster("day")
    assert table.info()["by_use"]["keys"] in range(990, 1001)
    assert table.open().locate(np.arange(0, 60, 3)).max() < 3
    table.verify()


def test_saved_statistics_of_several_caches_tell_the_heat(table: MasterTable) -> None:
    saved = table_at(table.address).saved_rows
    assert saved is not None
    for kind, first in (("one cache", 0), ("another", 300)):
        codes = np.arange(first, first + 600, 3, dtype=np.int64)
        hot = HotRows(codes, np.full(200, 7, dtype=np.int32), None, np.array([1], dtype=np.int64))
        SavedCache(saved, kind).save([hot], pa.schema([]), 1, "identity")
    (table.path / "hot" / "damaged.rows").write_bytes(b"SSHOT1")
    table.recluster()
    assert table.info()["by_use"]["keys"] == 300
    pages = table.open().locate(np.arange(0, 900, 3, dtype=np.int64))
    assert pages.max() < 20
    table.verify()


def test_new_rows_go_to_the_coldest_class_and_changed_rows_stay_in_theirs(table: MasterTable, rows: pa.Table) -> None:
    table.recluster("rank")
    keys, new = rows.column("id").to_numpy(), np.arange(1, 3000, 3)
    then = classes_of(opened(table), keys)
    table.merge(pa.table({"id": np.append(keys[:500], new), "rank": [0] * 1500, "text": ["x"] * 1500}))
    after = opened(table)
    assert np.array_equal(then, classes_of(after, keys))
    coldest = after.entries.classes.heat_map.class_count - 1 if after.entries.classes is not None else 0
    assert (classes_of(after, new) == coldest).mean() > 0.98


def classes_of(store: PagedFileStore, keys: Int64Array) -> UInt8Array:
    assert store.entries.classes is not None
    return store.entries.classes.of_pages(store.locate(keys))


def test_a_version_in_another_order_has_the_same_rows(table: MasterTable, rows: pa.Table) -> None:
    codes = rows.column("id").to_numpy()
    first = table.open()
    table.recluster("rank")
    second = table.open()
    table.recluster(pa.table({"id": codes[:900], "count": np.arange(900)}))
    for old in (first, second):
        assert table.open().unchanged_since(old.version, old.identity)(codes).all()
    table.merge(rows.slice(0, 1).set_column(2, "text", pa.array(["changed"])))
    changed = table.open()
    assert not changed.unchanged_since(first.version, first.identity)(codes).any()


def test_a_restored_version_is_in_its_order_again(table: MasterTable) -> None:
    table.recluster("rank")
    table.restore(1)
    assert (table.info()["by_use"], table.open().first_codes is None) == (None, False)
    table.restore(2)
    assert (table.info()["by_use"]["by"], table.open().first_codes) == ("column rank", None)
    table.verify()


def test_only_versions_by_use_have_the_newer_format(table: MasterTable) -> None:
    table.recluster("rank")
    table.merge(deletes=pa.table({"id": [0]}))
    formats = [
        json.loads((table.path / name).read_text().splitlines()[0])["format"]
        for name in sorted(path.name for path in table.path.glob("manifest-*"))
    ]
    assert formats == [layout.PLAIN_FORMAT, layout.BY_USE_FORMAT, layout.BY_USE_FORMAT]


def test_verify_finds_a_row_in_the_wrong_class(table: MasterTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.recluster("rank")
    keys = HeatMap.class_of
    with monkeypatch.context() as patch:
        patch.setattr(HeatMap, "class_of", lambda self, codes: keys(self, codes + 1))
        with pytest.raises(CorruptTableError, match="another heat class"):
            table.verify()
    table.verify()


def test_a_build_puts_the_rows_in_the_order_of_their_keys_again(table: MasterTable, rows: pa.Table) -> None:
    table.recluster("rank")
    MasterTable.build(rows, table.path, "id")
    assert table.info()["by_use"] is None
    table.verify()


@pytest.mark.parametrize("memory", [1 << 20, "64MB"])
def test_a_table_may_be_larger_than_the_memory(table: MasterTable, rows: pa.Table, memory: int | str) -> None:
    said: list[str] = []
    table.recluster("rank", memory=memory, progress=lambda what, *_: said.append(what))
    assert set(said) == {"reading", "sorting", "writing"}
    assert all_rows(table.open()) == rows.to_pylist()
    assert not list(table.path.glob("tmp-*"))


def test_counts_of_unknown_keys_and_of_none_are_refused(table: MasterTable) -> None:
    with pytest.raises(InvalidSettingError, match=r"No row .* hotter than the others by its counts of keys"):
        table.recluster(pa.table({"id": [1, 2], "count": [10, 20]}))
    with pytest.raises(InvalidSettingError, match=r"No row .* hotter"):
        table.recluster(pa.table({"id": [0], "count": [0]}))
    assert table.version == 1


def test_the_map_costs_less_than_three_bytes_a_hot_key() -> None:
    random = np.random.default_rng(1)
    codes = random.integers(-(2**63), 2**63 - 1, 400_000)
    hot = heat_map_of(codes[:100_000], 400_000)
    assert hot.size_bytes < 3 * 100_000
    assert (hot.class_of(codes[:100_000]) < hot.class_count - 1).all()
    strangers = hot.class_of(codes[100_000:]) < hot.class_count - 1
    assert strangers.mean() < 0.003
    few = heat_map_of(codes[:1000], 400_000)
    assert (few.class_of(codes[1000:]) < few.class_count - 1).sum() <= 2
    again = HeatMap.decode(memoryview(hot.encode()))
    assert again.is_same_as(hot)
    assert not few.is_same_as(hot)


@pytest.mark.parametrize("index_memory", ["2KB", "20KB", 1])
def test_the_map_takes_no_more_than_it_may(table: MasterTable, index_memory: int | str) -> None:
    plain = table.open().index_bytes
    table.recluster("rank", index_memory=index_memory)
    about = table.info()["by_use"]
    assert 0 < about["keys"] <= COUNT // 2
    # The head of the map, and a bucket or two, are all that the smallest one has.
    assert about["map_bytes"] <= max(parse_bytes(index_memory), 20) + 20
    # Each class has a page that is not full, and a sparse index of its own.
    assert table.open().index_bytes < plain + about["map_bytes"] + 16 * 100
    table.verify()


@settings(max_examples=100, deadline=None)
@given(cut=st.integers(0, 400), place=st.integers(0, 13), value=st.integers(0, 255))
def test_a_damaged_map_is_refused_or_harmless(cut: int, place: int, value: int) -> None:
    content = bytearray(heat_map_of(np.arange(100, dtype=np.int64), 200).encode())
    content[place] = value
    try:
        heat_map = HeatMap.decode(memoryview(bytes(content[: len(content) - cut])))
    except ValueError:
        return
    assert heat_map.class_of(np.arange(-500, 500, dtype=np.int64)).max() < heat_map.class_count


def test_the_hottest_keys_are_chosen_in_little_memory() -> None:
    random = np.random.default_rng(2)
    values = random.permutation(300_000).astype(np.float64)
    chosen = HottestKeys(1000)
    for start in range(0, 300_000, 7_000):
        part = values[start : start + 7_000]
        chosen.add(np.arange(start, start + len(part), dtype=np.int64), part)
    assert chosen.by_heat().tolist() == np.argsort(-values)[:1000].tolist()
