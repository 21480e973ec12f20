"""Saved rows: a new worker starts with what an old one had cached, and never with anything wrong."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from enrich_runs import build, products, sales
from enrich_tasks import enrich_task, handed_over, new_worker, run_task
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semistream.engine.cache.hot_rows import HotRows
from semistream.master_table import MasterTable
from semistream.spark import held_join
from semistream.spark.saved_cache import SavedCache
from semistream.store.places.local_folder import LocalFolder
from semistream.store.places.saved_in_place import SavedInPlace
from semistream.testing import joined_rows, reference_join

SALES = sales(0, 1000)
COLUMNS = pa.schema([("v", pa.string()), ("n", pa.int32())])
PLENTY = 10**9


def hot(first: int, count: int, absent: int) -> HotRows:
    codes = np.arange(first, first + count)
    rows = pa.record_batch([[f"v{code}" for code in codes], pa.array(codes, pa.int32())], schema=COLUMNS)
    return HotRows(codes, np.full(count, 7, np.int32), rows if count else None, -1 - np.arange(first, first + absent))


def saved(folder: Path, *parts: HotRows, version: int = 3) -> SavedCache:
    file = SavedCache(SavedInPlace(LocalFolder(folder), "hot"), "kind")
    file.save(parts, COLUMNS, version, "the table")
    return file


def loaded(file: SavedCache, max_bytes: int = PLENTY) -> tuple[int, list[HotRows]]:
    version, identity, parts = file.load(max_bytes, 60)
    assert identity == ("the table" if version else "")
    return version, list(parts)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=4), version=st.integers(1, 10**9))
def test_what_is_saved_is_loaded_in_its_order(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[int, int]], version: int
) -> None:
    folder = tmp_path_factory.mktemp("hot")
    parts = [hot(1000 * place, *size) for place, size in enumerate(sizes)]
    found_version, actual = loaded(saved(folder, *parts, version=version))
    assert found_version == version
    assert [code for part in actual for code in part.codes] == [code for part in parts for code in part.codes]
    assert [c for part in actual for c in part.absent_codes] == [c for part in parts for c in part.absent_codes]
    assert all(frequency == 7 for part in actual for frequency in part.frequencies)
    rows = [row for part in actual if part.rows is not None for row in part.rows.to_pylist()]
    assert rows == [row for part in parts if part.rows is not None for row in part.rows.to_pylist()]
    assert [path.suffix for path in (folder / "hot").iterdir()] == [".rows"], "temporary files are gone"


def test_any_damage_makes_a_file_as_good_as_none(tmp_path: Path) -> None:
    file = saved(tmp_path, hot(0, 100, 10))
    good = (tmp_path / "hot" / file.name).read_bytes()
    random = np.random.default_rng(1)
    for _ in range(200):
        place, bit = int(random.integers(len(good))), 1 << int(random.integers(8))
        if 12 <= place < 16:
            continue  # bytes without a meaning
        bad = bytearray(good)
        bad[place] ^= bit
        (tmp_path / "hot" / file.name).write_bytes(bad)
        assert loaded(file) == (0, []), place
    for length in (0, 5, 24, len(good) - 1):
        (tmp_path / "hot" / file.name).write_bytes(good[:length])
        assert loaded(file) == (0, [])
    (tmp_path / "hot" / file.name).write_bytes(good + b"\0")
    assert loaded(file) == (0, [])
    (tmp_path / "hot" / file.name).write_bytes(good)
    assert loaded(file)[0] == 3


def test_too_large_a_file_or_none_or_a_strange_one_is_left_alone(tmp_path: Path) -> None:
    file = saved(tmp_path, hot(0, 100, 10))
    assert loaded(file, 500) == (0, [])
    assert loaded(SavedCache(SavedInPlace(LocalFolder(tmp_path), "hot"), "another kind")) == (0, [])
    kept = (tmp_path / "hot" / file.name).rename(tmp_path / "elsewhere")
    (tmp_path / "hot" / file.name).symlink_to(kept)
    assert loaded(file) == (0, []), "links are not followed"
    (tmp_path / "hot" / file.name).unlink()
    os.mkfifo(tmp_path / "hot" / file.name)
    assert loaded(file) == (0, []), "nor is a pipe waited for"


def test_a_folder_in_the_place_of_saved_rows_is_left_alone(tmp_path: Path) -> None:
    file = SavedCache(SavedInPlace(LocalFolder(tmp_path), "hot"), "kind")
    (tmp_path / "hot" / file.name).mkdir(parents=True)
    assert loaded(file) == (0, [])


def test_loading_stops_at_its_deadline(tmp_path: Path) -> None:
    file = saved(tmp_path, *(hot(1000 * place, 100, 0) for place in range(5)))
    version, _, parts = file.load(PLENTY, -1.0)
    assert version == 3
    assert list(parts) == []


def test_a_table_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "hot").write_text("in the way")
    file = saved(tmp_path, hot(0, 10, 0))
    assert loaded(file) == (0, [])


def expected(master: pa.Table) -> object:
    return reference_join(SALES, master, on={"product_id": "product_id"}, how="left").rows


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a master table beside which a worker, that is gone now, has saved what it had cached."""
    monkeypatch.setattr(held_join, "_FIRST_SAVE_SECONDS", 0.0)
    made = build(tmp_path)
    new_worker(monkeypatch)
    run_task(enrich_task(made, SALES.schema), handed_over(SALES))
    assert len(list((made / "hot").iterdir())) == 1
    new_worker(monkeypatch)
    return made


def test_a_new_worker_answers_its_first_task_from_saved_rows(table: Path) -> None:
    output, counters = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert joined_rows(output).rows == expected(products())
    assert counters["warm_rows"] == counters["cached_rows"] > 0
    assert counters["page_reads"] == counters["read_hits"] == 0
    _, later = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert later["warm_rows"] == 0, "they are counted once"


def test_saved_rows_of_an_older_version_are_used_where_they_are_still_true(table: Path) -> None:
    changed = products(version=2).filter(pa.array(np.isin(np.arange(3000), [1, 2000])))
    MasterTable(table).merge(changed)
    rows = {row["product_id"]: row for row in products().to_pylist()}
    rows |= {row["product_id"]: row for row in changed.to_pylist()}
    output, counters = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert joined_rows(output).rows == expected(pa.Table.from_pylist(list(rows.values()), schema=products().schema))
    assert counters["version"] == 2
    assert counters["warm_rows"] > 100


def test_a_table_is_put_in_the_order_of_saved_rows_and_they_stay_true(table: Path) -> None:
    assert MasterTable(table).recluster() == 2
    assert MasterTable(table).info()["by_use"]["by"] == "saved statistics"
    output, counters = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert joined_rows(output).rows == expected(products())
    assert counters["version"] == 2
    assert counters["warm_rows"] > 100
    assert counters["page_reads"] == 0
    MasterTable(table).merge(products(version=2))
    output, _ = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert joined_rows(output).rows == expected(products(version=2))


def test_saved_rows_of_a_version_that_is_gone_are_not_used(table: Path) -> None:
    MasterTable.build(products(version=2), table, "product_id", page_bytes=1024)
    MasterTable(table).vacuum(keep_for=0)
    output, counters = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert joined_rows(output).rows == expected(products(version=2))
    assert counters["warm_rows"] == 0


def test_saved_rows_that_are_damaged_cost_nothing_but_reads(table: Path) -> None:
    file = next((table / "hot").iterdir())
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    output, counters = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert joined_rows(output).rows == expected(products())
    assert counters["warm_rows"] == 0
    assert counters["page_reads"] > 0


def test_saved_rows_hold_no_code_and_are_no_pickle(table: Path) -> None:
    file = next((table / "hot").iterdir())
    assert stat.S_ISREG(file.stat().st_mode)
    reader = pa.ipc.open_stream(file.read_bytes()[24:])
    assert json.loads(reader.schema.metadata[b"semistream"])["version"] == 1
    assert reader.read_all().num_rows > 0
