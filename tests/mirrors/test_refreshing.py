"""A refresh brings a table in step with its source, in one commit and at the price of what has changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from changing_source import SCHEMA, ChangingSource
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_rows import as_multiset, stored_rows

import semistream as ss
from semistream.core.errors import ConcurrentWriteError, DuplicateKeyError, InvalidSettingError, SchemaDriftError
from semistream.mirrors import refreshing
from semistream.testing.strategies import KEY_KINDS, PAYLOAD_KINDS


def _numbers(count: int, text: str = "v") -> pa.Table:
    return pa.table({"k": np.arange(count), "v": [f"{text}{key}" for key in range(count)]}, schema=SCHEMA)


def _mirror(source: ChangingSource, folder: Path, count: int = 2000) -> ss.MasterTable:
    for key in range(count):
        source.put(key, f"first {key}")
    return ss.MasterTable.build(source, folder / "mirror", key="k", page_bytes=512)


def _content(table: ss.MasterTable) -> dict[int, str]:
    rows = stored_rows(table)
    return dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_after_a_refresh_from_all_rows_the_table_has_them_whatever_their_types(data: st.DataObject) -> None:
    import tempfile

    kind, payload = data.draw(st.sampled_from(KEY_KINDS)), data.draw(st.sampled_from(PAYLOAD_KINDS))
    schema = pa.schema([("k", kind.type), ("p", payload.type)])
    keys = data.draw(st.lists(kind.values, max_size=12, unique_by=repr))
    keys = [key for at, key in enumerate(keys) if not any(_same(key, other) for other in keys[:at])]
    values = st.one_of(st.none(), payload.values)

    def rows() -> pa.Table:
        kept = [key for key in keys if data.draw(st.booleans())]
        return pa.table({"k": kept, "p": [data.draw(values) for _ in kept]}, schema=schema)

    with tempfile.TemporaryDirectory() as folder:
        first, second = rows(), rows()
        table = ss.MasterTable.build(first, Path(folder) / "t", key="k", page_bytes=512)
        table.refresh(second)
        assert as_multiset(stored_rows(table)) == as_multiset(second)
        assert not table.refresh(second).changed


def _same(one: object, other: object) -> bool:
    return one == other or (one != one and other != other)


@settings(max_examples=30, deadline=None)
@given(
    changes=st.lists(
        st.lists(st.tuples(st.integers(-5, 60), st.one_of(st.none(), st.sampled_from(["a", "b"]))), max_size=15),
        max_size=4,
    )
)
def test_after_each_refresh_from_changes_a_mirror_equals_its_source(
    changes: list[list[tuple[int, str | None]]],
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source = ChangingSource("random")
        mirror = _mirror(source, Path(folder), count=40)
        for some in changes:
            before = dict(source.rows)
            for key, value in some:
                source.put(key, value)
            done = mirror.refresh()
            assert _content(mirror) == source.rows
            changed = {key for key in source.rows if before.get(key) != source.rows[key]}
            assert done.rows_upserted == len(changed)
            assert done.rows_deleted == len(before.keys() - source.rows.keys())
            assert done.position == {"log": len(source.log)}


def test_a_refresh_writes_the_pages_that_changes_touch_and_no_others(tmp_path: Path) -> None:
    source = ChangingSource("pages")
    mirror = _mirror(source, tmp_path, count=20_000)
    table_bytes = mirror.info()["bytes"]
    index_bytes = mirror.info()["files"][0]["bytes"]
    source.given_rows = 0
    for key in (7, 9_000, 19_999):
        source.put(key, "new")
    done = mirror.refresh()
    assert source.given_rows <= 6
    assert (done.rows_upserted, done.rows_deleted, done.rebuilt) == (3, 0, False)
    assert done.bytes_written - index_bytes < 6 * 1024 < table_bytes / 50


def test_what_did_not_change_makes_no_version(tmp_path: Path) -> None:
    table = ss.MasterTable.build(_numbers(500), tmp_path / "t", key="k")
    done = table.refresh(_numbers(500))
    assert (done.changed, done.version, done.rows_upserted, done.rows_deleted, done.bytes_written) == (
        False,
        1,
        0,
        0,
        0,
    )


def test_changes_that_leave_the_rows_as_they_are_move_the_position_alone(tmp_path: Path) -> None:
    source = ChangingSource("still")
    mirror = _mirror(source, tmp_path)
    source.put(5, "other")
    source.put(5, "first 5")
    done = mirror.refresh()
    assert (done.rows_upserted, done.version, done.position) == (0, 2, {"log": 2002})
    assert not mirror.refresh().changed


def test_all_rows_of_a_key_are_replaced_if_one_differs(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 1, 2, 2, 3], "v": ["a", "b", "c", "d", "e"]}, schema=SCHEMA)
    table = ss.MasterTable.build(rows, tmp_path / "t", key="k", on_duplicate="all")
    other = pa.table({"k": [1, 1, 2, 3], "v": ["a", "x", "c", "e"]}, schema=SCHEMA)
    done = table.refresh(other)
    assert as_multiset(stored_rows(table)) == as_multiset(other)
    assert done.rows_upserted == 3


def test_a_key_that_the_source_has_twice_is_refused(tmp_path: Path) -> None:
    table = ss.MasterTable.build(_numbers(5), tmp_path / "t", key="k")
    with pytest.raises(DuplicateKeyError, match="k=0"):
        table.refresh(pa.concat_tables([_numbers(5), _numbers(2)]))
    assert table.version == 1


def test_a_comparison_larger_than_its_memory_gives_the_same(tmp_path: Path) -> None:
    table = ss.MasterTable.build(_numbers(20_000), tmp_path / "t", key="k", page_bytes=512)
    wanted = _numbers(20_000).take(pa.array(np.random.default_rng(1).permutation(20_000)[:15_000]))
    done = table.refresh(wanted, memory=100_000)
    assert (done.rows_upserted, done.rows_deleted) == (0, 5_000)
    assert as_multiset(stored_rows(table)) == as_multiset(wanted)


def test_a_merge_by_hand_and_a_compaction_keep_the_position(tmp_path: Path) -> None:
    source = ChangingSource("hand")
    mirror = _mirror(source, tmp_path)
    kept = mirror.info()["mirror"]
    mirror.merge(pa.table({"k": [1], "v": ["by hand"]}, schema=SCHEMA))
    assert mirror.info()["mirror"] == kept
    mirror.compact()
    assert (
        mirror.info()["mirror"] == kept == {"source": {"kind": "changing", "name": "hand"}, "position": {"log": 2000}}
    )


def test_a_restored_version_has_its_own_position_and_a_refresh_brings_it_forward(tmp_path: Path) -> None:
    source = ChangingSource("restored")
    mirror = _mirror(source, tmp_path)
    source.put(3, None)
    mirror.refresh()
    mirror.restore(1)
    assert mirror.info()["mirror"]["position"] == {"log": 2000}
    assert 3 in _content(mirror)
    mirror.refresh()
    assert _content(mirror) == source.rows


def test_a_build_by_hand_ends_a_mirror(tmp_path: Path) -> None:
    mirror = _mirror(ChangingSource("ended"), tmp_path)
    ss.MasterTable.build(_numbers(3), mirror.path, key="k")
    with pytest.raises(InvalidSettingError, match="is not a mirror"):
        mirror.refresh()


def test_of_two_refreshes_from_one_position_the_second_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ChangingSource("twice")
    mirror = _mirror(source, tmp_path)
    source.put(1, "new")
    run = refreshing._Refresh.run

    def overtaken(self: refreshing._Refresh, rows: refreshing.SourceRows | None) -> object:
        monkeypatch.setattr(refreshing._Refresh, "run", run)
        mirror.refresh()
        return run(self, rows)

    monkeypatch.setattr(refreshing._Refresh, "run", overtaken)
    with pytest.raises(ConcurrentWriteError, match="was quicker"):
        mirror.refresh()
    assert mirror.version == 2
    assert _content(mirror) == source.rows


def test_an_added_column_is_there_after_a_refresh_which_says_so(tmp_path: Path) -> None:
    source = ChangingSource("added")
    mirror = _mirror(source, tmp_path)
    source.put(1, "new")
    source.schema = SCHEMA.append(pa.field("extra", pa.int32()))
    done = mirror.refresh()
    assert (done.columns_added, done.rebuilt, done.rows_upserted) == (("extra",), True, 2000)
    assert stored_rows(mirror).schema.names == ["k", "v", "extra"]
    assert _content(mirror) == source.rows
    assert done.position == {"log": 2001}
    source.put(2, None)
    assert mirror.refresh().rows_deleted == 1


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (pa.schema([("k", pa.int64())]), "has lost the column 'v'"),
        (pa.schema([("k", pa.int64()), ("v", pa.int32())]), "'v' of the source is int32 now and string in the mirror"),
    ],
)
def test_a_lost_or_retyped_column_stops_before_anything_is_written(
    tmp_path: Path, schema: pa.Schema, sentence: str
) -> None:
    table = ss.MasterTable.build(_numbers(10), tmp_path / "t", key="k")
    before = sorted(path.name for path in table.path.rglob("*"))
    with pytest.raises(SchemaDriftError, match=sentence):
        table.refresh(schema.empty_table())
    assert sorted(path.name for path in table.path.rglob("*")) == before


def test_a_table_whose_manifest_tells_of_no_mirror_is_not_one(tmp_path: Path) -> None:
    table = ss.MasterTable.build(_numbers(10), tmp_path / "t", key="k")
    assert table.info()["mirror"] is None
    assert b'"mirror"' not in next(table.path.glob("manifest*")).read_bytes()
    with pytest.raises(InvalidSettingError, match=r"master build .* --from ADDRESS"):
        table.refresh()
