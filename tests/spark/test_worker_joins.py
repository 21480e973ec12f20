"""What a worker keeps between tasks: joins and caches in one budget, and nothing of a task that failed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from enrich_runs import build, products, sales
from enrich_tasks import enrich_task, handed_over, new_worker, run_task
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_without_snapshots import TableWithoutSnapshots

from semistream.core.errors import BudgetTooSmallError, SchemaDriftError
from semistream.master_table import MasterTable
from semistream.spark.pinning import Pin
from semistream.spark.worker import Worker
from semistream.testing import joined_rows, reference_join

SALES = sales(0, 1000)
LATER = sales(1000, 1000)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Return a worker that has just started."""
    return new_worker(monkeypatch)


def expected(rows: pa.Table, master: pa.Table, how: str = "left") -> object:
    return reference_join(rows, master, on={"product_id": "product_id"}, how=how).rows


@pytest.mark.usefixtures("worker")
def test_a_second_task_finds_what_the_first_has_cached(tmp_path: Path) -> None:
    task = enrich_task(build(tmp_path), SALES.schema)
    first, cold = run_task(task, handed_over(SALES))
    second, warm = run_task(task, handed_over(SALES))
    assert first.equals(second), "the state of the cache shows in the rows or their order"
    assert joined_rows(first).rows == expected(SALES, products())
    assert cold["cache_hits"] < 300
    assert warm["cache_hits"] + warm["absent"] + warm["null_keys"] == warm["tuples_out"] == SALES.num_rows
    assert warm["page_reads"] == warm["read_hits"] == 0


@pytest.mark.usefixtures("worker")
def test_a_worker_joins_with_any_store_that_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = enrich_task(build(tmp_path), SALES.schema, pin=Pin())
    table = TableWithoutSnapshots(products(), "product_id")
    for module in ("task_run", "held_join"):
        monkeypatch.setattr(f"semistream.spark.{module}.table_at", lambda _, **__: table)
    for place, master in enumerate((products(), products(version=2))):
        if place:
            table.replace(master)
        with pytest.warns(UserWarning, match="the newest version of the master table is read"):
            output, _ = run_task(task, handed_over(SALES))
        assert joined_rows(output).rows == expected(SALES, master), "rows of an earlier version were kept"
    with pytest.warns(UserWarning, match="the newest version of the master table is read"):
        _, counters = run_task(task, handed_over(SALES))
    assert counters["page_reads"] == 0, "the cache of the same version was not kept"


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_rows_leave_in_the_order_they_came_and_are_counted(tmp_path: Path, how: str) -> None:
    task = enrich_task(build(tmp_path), SALES.schema, how=how)
    for _ in range(2):
        output, counters = run_task(task, handed_over(SALES))
        numbers = output["o0"].to_numpy()
        assert (np.diff(numbers) > 0).all()
        assert joined_rows(output).rows == expected(SALES, products(), how)
        assert counters["rows_out"] == output.num_rows
        assert counters["tuples_in"] == SALES.num_rows


@pytest.mark.usefixtures("worker")
def test_a_task_without_rows_tells_so_and_touches_nothing(tmp_path: Path) -> None:
    table = build(tmp_path)
    task = enrich_task(table, SALES.schema)
    shutil.rmtree(table)
    output, counters = run_task(task, [])
    assert output.num_rows == counters["tuples_in"] == counters["version"] == counters["memory_bytes"] == 0
    output, counters = run_task(task, handed_over(SALES.slice(0, 0)))
    assert output.num_rows == counters["tuples_in"] == 0


def test_two_masters_have_half_of_the_memory_each_and_a_third_one_makes_it_thirds(
    worker: Worker, tmp_path: Path
) -> None:
    rows = [sales(0, 1000, seed=seed) for seed in range(3)]
    made = [enrich_task(build(tmp_path / str(n)), SALES.schema, memory_bytes=10_000_000) for n in range(3)]
    shares: list[list[int]] = []
    for count in (1, 2, 3):
        for _ in range(2):  # the second time all of them know of each other
            held = []
            for task, sales_of_one in zip(made[:count], rows, strict=False):
                output, counters = run_task(task, handed_over(sales_of_one))
                assert joined_rows(output).rows == expected(sales_of_one, products())
                held.append(counters["memory_bytes"])
        shares.append(held)
        assert sum(held) <= shares[0][0] <= 10_000_000
        assert sum(join._share.memory_bytes for join in worker._joins.values()) <= shares[0][0]
    assert shares[1] == [shares[0][0] // 2] * 2
    assert shares[2] == [shares[0][0] // 3] * 3


def test_what_is_hot_survives_when_shares_shrink(worker: Worker, tmp_path: Path) -> None:
    one, two = (enrich_task(build(tmp_path / name), SALES.schema, memory_bytes=10_000_000) for name in "ab")
    _, alone = run_task(one, handed_over(SALES))
    run_task(two, handed_over(SALES))
    _, counters = run_task(one, handed_over(SALES))
    assert counters["memory_bytes"] == alone["memory_bytes"] // 2
    assert counters["page_reads"] == 0
    assert counters["warm_rows"] > 0
    assert len(worker._joins) == 2


def test_a_join_that_was_not_used_for_long_gives_its_memory_to_those_that_are(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, running = (enrich_task(build(tmp_path / name), SALES.schema, memory_bytes=10_000_000) for name in "ab")
    run_task(ended, handed_over(SALES))
    shares = []
    for idle_seconds in (600.0, 600.0, 0.0, 0.0):
        monkeypatch.setattr("semistream.spark.worker._IDLE_SECONDS", idle_seconds)
        _, counters = run_task(running, handed_over(SALES))
        shares.append(counters["memory_bytes"])
    assert shares == [5_000_000, 5_000_000, 5_000_000, 10_000_000]
    assert len(worker._joins) == 1


def test_joins_that_do_not_fit_together_take_turns(worker: Worker, tmp_path: Path) -> None:
    count = 20
    made = [enrich_task(build(tmp_path / str(number)), SALES.schema) for number in range(count)]
    for round_ in range(2):
        for number, task in enumerate(made):
            sales_of_one = sales(0, 200, seed=number + round_)
            output, counters = run_task(task, handed_over(sales_of_one))
            assert joined_rows(output).rows == expected(sales_of_one, products())
            assert counters["memory_bytes"] <= task.memory_bytes
    assert 0 < len(worker._joins) < count


def test_a_join_that_does_not_fit_alone_is_an_error_and_later_tasks_work(worker: Worker, tmp_path: Path) -> None:
    table = build(tmp_path)
    with pytest.raises(BudgetTooSmallError):
        run_task(enrich_task(table, SALES.schema, memory_bytes=30_000), handed_over(SALES))
    output, _ = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert joined_rows(output).rows == expected(SALES, products())
    assert len(worker._joins) == 1


def test_a_task_whose_input_fails_leaves_no_join_behind(worker: Worker, tmp_path: Path) -> None:
    task = enrich_task(build(tmp_path), SALES.schema)
    run_task(task, handed_over(SALES))
    assert len(worker._joins) == 1

    def failing() -> Iterator[pa.RecordBatch]:
        yield from list(handed_over(LATER))[:3]
        raise OSError("the connection is lost")

    with pytest.raises(OSError, match="connection is lost"):
        run_task(task, failing())
    assert not worker._joins
    output, counters = run_task(task, handed_over(LATER))
    assert joined_rows(output).rows == expected(LATER, products())
    assert counters["tuples_in"] == LATER.num_rows


def test_a_task_that_is_left_early_leaves_no_join_behind(worker: Worker, tmp_path: Path) -> None:
    # What a LIMIT does: rows are no longer wanted.
    task = enrich_task(build(tmp_path), SALES.schema)
    output = task(handed_over(SALES))
    assert next(output).num_rows
    output.close()  # type: ignore[attr-defined]
    assert not worker._joins
    again, _ = run_task(task, handed_over(SALES))
    assert joined_rows(again).rows == expected(SALES, products())


@pytest.mark.usefixtures("worker")
def test_after_a_merge_changed_rows_are_new_and_the_cache_of_the_others_is_kept(tmp_path: Path) -> None:
    table = build(tmp_path)
    _, cold = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    changed = products(version=2).filter(pa.array(np.isin(np.arange(3000), [1, 40, 2900])))
    inserted = pa.table({"product_id": [3], "name": ["was absent"], "price": pa.array([7], pa.int32())})
    MasterTable(table).merge(pa.concat_tables([changed, inserted]), pa.table({"product_id": [4]}))
    rows = {row["product_id"]: row for row in products().to_pylist()}
    rows |= {row["product_id"]: row for row in [*changed.to_pylist(), *inserted.to_pylist()]}
    del rows[4]
    output, counters = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    now = pa.Table.from_pylist(list(rows.values()), schema=products().schema)
    assert joined_rows(output).rows == expected(SALES, now)
    assert counters["version"] == 2
    assert counters["warm_rows"] > 100
    assert 0 < counters["page_reads"] < 0.3 * cold["page_reads"]


@pytest.mark.usefixtures("worker")
def test_tasks_that_see_two_versions_in_turn_get_the_rows_of_their_own(tmp_path: Path) -> None:
    table = build(tmp_path)
    MasterTable(table).merge(products(version=2).slice(0, 200), products().slice(700, 5).select(["product_id"]))
    versions = [products(), pa.concat_tables([products(version=2).slice(0, 200), products().slice(200, 500)])]
    versions[1] = pa.concat_tables([versions[1], products().slice(705)])
    for round_ in range(3):
        for number, master in enumerate(versions, 1):
            rows = sales(1000 * round_, 500)
            output, counters = run_task(enrich_task(table, rows.schema, pin=Pin(number)), handed_over(rows))
            assert counters["version"] == number
            assert joined_rows(output).rows == expected(rows, master)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("how", ["inner", "left"])
def test_without_columns_of_the_master_rows_are_filtered_or_kept(tmp_path: Path, how: str) -> None:
    task = enrich_task(build(tmp_path), SALES.schema, how=how, columns=[])
    for _ in range(2):
        output, _ = run_task(task, handed_over(SALES))
        wanted = expected(SALES, products(), "semi") if how == "inner" else joined_rows(SALES).rows
        assert joined_rows(output).rows == wanted


@pytest.mark.usefixtures("worker")
def test_values_of_300_kilobytes_pass_on_both_sides(tmp_path: Path) -> None:
    long = "x" * 300_000
    master = pa.table({"product_id": list(range(50)), "v": [long if n % 10 == 0 else "short" for n in range(50)]})
    rows = pa.table({"product_id": list(range(60)), "w": [long if n % 7 == 0 else "short" for n in range(60)]})
    task = enrich_task(build(tmp_path, master), rows.schema, memory_bytes=64_000_000)
    output, _ = run_task(task, handed_over(rows, 1000))
    assert joined_rows(output).rows == expected(rows, master)


@pytest.mark.usefixtures("worker")
def test_two_streams_of_other_columns_share_the_cache_of_a_master(tmp_path: Path) -> None:
    table = build(tmp_path)
    run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    swapped = SALES.select(["note", "product_id"])
    output, counters = run_task(enrich_task(table, swapped.schema, how="inner"), handed_over(swapped))
    assert joined_rows(output).rows == expected(swapped, products(), "inner")
    assert counters["page_reads"] == 0


@pytest.mark.usefixtures("worker")
def test_a_table_that_was_removed_and_built_again_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    table = build(tmp_path)
    run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    shutil.rmtree(table)
    build(tmp_path, products(version=5))
    output, counters = run_task(enrich_task(table, SALES.schema), handed_over(SALES))
    assert counters["version"] == 1
    assert joined_rows(output).rows == expected(SALES, products(version=5))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("cached", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("change", ["dropped", "retyped", "key retyped", "added", "moved"])
def test_a_master_of_another_shape_stops_the_task_and_an_added_column_does_not(
    tmp_path: Path, change: str, cached: bool
) -> None:
    table = build(tmp_path)
    task = enrich_task(table, SALES.schema, columns=["name", "price"])
    if cached:
        run_task(task, handed_over(SALES))
    old = products()
    new = {
        "dropped": old.drop_columns(["price"]),
        "retyped": old.set_column(2, "price", old["price"].cast(pa.int64())),
        "key retyped": old.set_column(0, "product_id", old["product_id"].cast(pa.string())),
        "added": old.add_column(0, "colour", pa.array(["red"] * len(old))),
        "moved": old.select(["price", "name", "product_id"]),
    }[change]
    MasterTable.build(new, table, "product_id", page_bytes=1024)
    newest = replace(task, pin=Pin(2))
    if change in ("added", "moved"):
        output, counters = run_task(newest, handed_over(SALES))
        assert counters["version"] == 2
        assert joined_rows(output).rows == expected(SALES, products())
        return
    with pytest.raises(SchemaDriftError, match="product_id" if change == "key retyped" else "price"):
        run_task(newest, handed_over(SALES))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_order_of_rows_never_shows_what_was_cached(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    """Many rows of one key, too, come in one order, from the cache or not, in batches of any size."""
    folder = tmp_path_factory.mktemp("order")
    keys = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=200))
    master = pa.table({"product_id": keys, "v": [f"value {place}" for place in range(len(keys))]})
    table = build(folder, master, page_bytes=512, on_duplicate="all")
    asked = data.draw(st.lists(st.none() | st.integers(-1, 42), min_size=1, max_size=300))
    rows = pa.table({"n": list(range(len(asked))), "product_id": pa.array(asked, pa.int64())})
    task = enrich_task(table, rows.schema, how=data.draw(st.sampled_from(["inner", "left"])))
    outputs = []
    for _ in range(2):
        new_worker(monkeypatch)
        shutil.rmtree(table / "hot", ignore_errors=True)
        warmed = data.draw(st.integers(0, len(asked)))
        if warmed:
            run_task(task, handed_over(rows.slice(0, warmed), 7))
        output, _ = run_task(task, handed_over(rows, 50))
        outputs.append(output)
    assert outputs[0].equals(outputs[1])
    assert joined_rows(outputs[0]).rows == expected(rows, master, task.plan.how)
