"""A session that keeps order gives the rows of the reference, in the order of the stream, from any store and cache."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equivalence_runs import HOWS, assert_counters_add_up, every_how, examples, weak_hash
from far_folder import FarFolder
from hypothesis import given
from hypothesis import strategies as st
from used_tables import ordered_by_use

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.budget import MemoryBudget
from semistream.core.errors import InvalidSettingError, RowTooLargeError
from semistream.core.plain_types import plain_column, plain_schema
from semistream.engine.output.output_plan import plan_output
from semistream.joining.ordered_session import OrderedSession
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream.store.counting import CountingStore
from semistream.store.memory import MemoryStore
from semistream.store.paged import PagedFileStore
from semistream.testing import assert_same_rows, joined_rows, reference_join
from semistream.testing.strategies import JoinCase, join_cases


def session_of(
    store: MasterStore,
    stream: pa.Schema,
    on: dict[str, str],
    *,
    how: str = "left",
    memory: int = 600_000,
    dead_letters: Any = None,
    parameters: dict[str, float] | None = None,
    **options: Any,
) -> OrderedSession:
    return OrderedSession(
        store,
        plan_output(stream, store.schema, list(on.items()), how=how, **options),
        stream,
        recipe=ALGORITHMS["demandjoin"],
        budget=MemoryBudget(memory),
        dead_letters=dead_letters,
        parameters=parameters,
    )


def in_plain_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch as what calls a session hands it over."""
    columns = [plain_column(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check_case(case: JoinCase, store: MasterStore, how: str, memory: int) -> None:
    schema = plain_schema(case.stream.schema)
    batches = [in_plain_types(batch, schema) for batch in case.stream.batches if batch is not None]
    session = session_of(store, schema, case.on, how=how, memory=memory, **case.options)
    expected = reference_join(case.stream.table, case.master, on=case.on, how=how, **case.options)
    outputs: list[str] = []
    for run in range(2):  # the second one finds what the first has cached
        output = pa.Table.from_batches(list(session.run(batches)), schema=session.plan.schema)
        assert_same_rows(joined_rows(output), expected)
        positions = output.column("s_row").to_numpy()
        assert (np.diff(positions) >= 0).all()
        assert_counters_add_up(session.stats, (run + 1) * case.stream.table.num_rows)
        outputs.append(repr(output.to_pylist()))  # as text, in which NaN is like NaN
    assert outputs[0] == outputs[1]


@given(data=st.data())
@examples(120)
def test_rows_are_those_of_the_reference_in_the_order_of_the_stream(data: st.DataObject) -> None:
    unique = data.draw(st.booleans())
    case = data.draw(join_cases(unique=unique))
    how, memory = data.draw(st.sampled_from(HOWS)), data.draw(st.sampled_from([600_000, 2_000_000]))
    on_duplicate = "error" if unique else "all"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "master"
        MasterTable.build(case.master, path, case.key, page_bytes=512, on_duplicate=on_duplicate)
        with MasterTable(path).open() as store:
            check_case(case, store, how, memory)
            check_case(case, CountingStore(store), how, memory)
    memory_store = MemoryStore(case.master, case.key, rows_per_page=case.rows_per_page, on_duplicate=on_duplicate)
    check_case(case, memory_store, how, memory)


@given(data=st.data())
@examples(60)
def test_rows_of_a_table_by_use_are_those_of_the_reference_near_and_far(data: st.DataObject) -> None:
    unique = data.draw(st.booleans())
    case = data.draw(join_cases(unique=unique))
    how, memory = data.draw(st.sampled_from(HOWS)), data.draw(st.sampled_from([600_000, 2_000_000]))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "master"
        MasterTable.build(case.master, path, case.key, page_bytes=512, on_duplicate="error" if unique else "all")
        with ordered_by_use(MasterTable(path)).open() as store, PagedFileStore(FarFolder(path)) as far:
            for by_use in (store, CountingStore(store), far):
                check_case(case, by_use, how, memory)


@given(data=st.data())
@examples(60)
def test_keys_with_equal_codes_are_told_apart(data: st.DataObject) -> None:
    with weak_hash():
        unique = data.draw(st.booleans())
        case = data.draw(join_cases(unique=unique))
        on_duplicate = "error" if unique else "all"
        store = MemoryStore(case.master, case.key, rows_per_page=case.rows_per_page, on_duplicate=on_duplicate)
        check_case(case, store, data.draw(st.sampled_from(HOWS)), 600_000)


def build(folder: Path, rows: pa.Table, **options: Any) -> MasterStore:
    return MasterTable.build(rows, folder / "master", "key", **options).open()


KEYS = pa.schema([("key", pa.int64()), ("s_row", pa.int64())])


def stream_of(keys: Any, batch_rows: int = 1000) -> list[pa.RecordBatch]:
    rows = pa.table([pa.array(keys, pa.int64()), pa.array(np.arange(len(keys)))], schema=KEYS)
    batches: list[pa.RecordBatch] = rows.to_batches(max_chunksize=batch_rows)
    return batches


@every_how
def test_a_fat_row_that_many_ask_for_leaves_in_pieces(tmp_path: Path, how: str) -> None:
    fat = pa.table({"key": range(100), "text": ["x" * (50_000 if key == 7 else 20) for key in range(100)]})
    store = build(tmp_path, fat)
    session = session_of(store, KEYS, {"key": "key"}, how=how, memory=1_000_000)
    outputs = list(session.run(stream_of([7, 8, 200] * 400)))
    assert sum(output.num_rows for output in outputs) == {"inner": 800, "left": 1200, "semi": 800, "anti": 400}[how]
    assert max(output.nbytes for output in outputs) <= session.sizes.piece_bytes + 60_000
    if how in ("inner", "left"):
        assert len(outputs) > 200, "fifty thousand bytes four hundred times"


@every_how
def test_the_matches_of_one_row_leave_in_pieces(tmp_path: Path, how: str) -> None:
    many = pa.table({"key": [5] * 3000 + [6], "v": range(3001)})
    store = build(tmp_path, many, on_duplicate="all")
    session = session_of(store, KEYS, {"key": "key"}, how=how, memory=1_000_000)
    outputs = list(session.run(stream_of([6, 5, 5, 9])))
    rows = pa.Table.from_batches(outputs)
    assert max(output.nbytes for output in outputs) <= 1.1 * session.sizes.piece_bytes
    if how in ("inner", "left"):
        assert rows["v"].to_pylist() == [3000, *range(3000), *range(3000), *([None] if how == "left" else [])]
        assert len(outputs) > 2
    else:
        assert rows["s_row"].to_pylist() == ([0, 1, 2] if how == "semi" else [3])


def test_a_chunk_whose_master_rows_do_not_fit_is_answered_in_parts(tmp_path: Path) -> None:
    wide = pa.table({"key": range(2000), "text": [f"{key:>3000}" for key in range(2000)]})
    store = build(tmp_path, wide)
    session = session_of(store, KEYS, {"key": "key"}, memory=1_000_000)
    random = np.random.default_rng(3)
    asked = random.integers(0, 2000, 3000)
    rows = pa.Table.from_batches(list(session.run(stream_of(asked))))
    assert [int(text) for text in rows["text"].to_pylist()] == asked.tolist()
    assert_counters_add_up(session.stats, 3000)


def test_a_row_whose_page_is_too_large_goes_to_the_dead_letters_or_stops(tmp_path: Path) -> None:
    rows = pa.table({"key": range(100), "text": ["x" * (300_000 if key == 7 else 20) for key in range(100)]})
    store = build(tmp_path, rows)
    letters: list[pa.RecordBatch] = []
    session = session_of(
        store, KEYS, {"key": "key"}, memory=1_000_000, dead_letters=lambda batch, _: letters.append(batch)
    )
    asked = [1, 7, 2, 7, None, 300]
    output = pa.Table.from_batches(list(session.run(stream_of(asked))))
    assert output["s_row"].to_pylist() == [0, 2, 4, 5]
    assert [row for batch in letters for row in batch["s_row"].to_pylist()] == [1, 3]
    assert_counters_add_up(session.stats, 6)
    assert session.stats.refused == 2
    with pytest.raises(RowTooLargeError, match="give at least"):
        list(session_of(store, KEYS, {"key": "key"}, memory=1_000_000).run(stream_of(asked)))


def test_a_page_is_read_once_for_a_chunk_and_not_again_for_what_is_cached(tmp_path: Path) -> None:
    store = build(tmp_path, pa.table({"key": range(10_000), "v": range(10_000)}), page_bytes=1024)
    session = session_of(store, KEYS, {"key": "key"}, memory=4_000_000)
    list(session.run(stream_of([17, 18, 17, 5000, 17] * 20)))
    assert session.stats.page_reads == 2
    list(session.run(stream_of([17, 18, 5000] * 20)))
    assert session.stats.page_reads == 2
    assert session.stats.cache_hits == 60


def test_only_recipes_that_keep_order_can_be_asked_to(tmp_path: Path) -> None:
    store = build(tmp_path, pa.table({"key": [1]}))
    with pytest.raises(InvalidSettingError, match="hybridjoin sends rows out as they are answered"):
        OrderedSession(
            store,
            plan_output(KEYS, store.schema, [("key", "key")]),
            KEYS,
            recipe=ALGORITHMS["hybridjoin"],
            budget=MemoryBudget(1_000_000),
        )
