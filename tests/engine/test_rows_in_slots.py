"""Rows that are kept for waiting and cached tuples come back as they were put, whatever their types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.rows.slot_rows import SlotRows
from semistream.engine.rows.stream_rows import StreamRows
from semistream.policies.caching import LeastFrequentOverwrite, RandomOverwrite

SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("small", pa.int8()),
        ("flag", pa.bool_()),
        ("price", pa.decimal128(20, 2)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("digest", pa.binary(5)),
        ("name", pa.string()),
        ("photo", pa.large_binary()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.float32()), ("label", pa.string())])),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("nothing", pa.null()),
    ]
)
FIXED_ONLY = pa.schema(list(SCHEMA)[:7])


def rows_of(start: int, count: int, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """Make rows that all differ; some have nulls."""
    made: list[dict[str, Any]] = []
    for number in range(start, start + count):
        row: dict[str, Any] = {
            "number": number,
            "small": number % 100,
            "flag": number % 3 == 0,
            "price": Decimal(number) / 100,
            "day": dt.date(2020, 1, 1) + dt.timedelta(days=number),
            "moment": dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=number),
            "digest": number.to_bytes(5, "big"),
            "name": "n" * (number % 30),
            "photo": bytes([number % 256]) * (number % 50),
            "tags": [f"t{number}"] * (number % 4),
            "place": {"x": number / 2, "label": f"l{number}"},
            "kind": f"k{number % 7}",
            "nothing": None,
        }
        made.append({name: None if number % 5 == index % 5 else row[name] for index, name in enumerate(schema.names)})
    return pa.RecordBatch.from_pylist(made, schema=schema)


@pytest.mark.parametrize("schema", [SCHEMA, FIXED_ONLY], ids=["all types", "fixed width"])
@pytest.mark.parametrize("seed", range(4))
def test_slots_hold_what_was_put_last(schema: pa.Schema, seed: int) -> None:
    random = np.random.default_rng(seed)
    slots = 60
    kept = SlotRows(schema, slots, variable_bytes=3000)
    model: dict[int, dict[str, Any]] = {}
    for step in range(80):
        if random.random() < 0.6:
            # A slice of a batch, so that offsets of buffers matter, and only some of its rows.
            batch = rows_of(step * 100, 40, schema).slice(3, 30)
            rows = random.permutation(30)[: int(random.integers(1, 20))]
            chosen = random.permutation(slots)[: len(rows)]
            kept.put(chosen, batch, rows)
            expected = batch.to_pylist()
            model.update((slot, expected[row]) for slot, row in zip(chosen.tolist(), rows.tolist(), strict=True))
        elif model:
            gone = random.permutation(sorted(model))[: int(random.integers(1, len(model) + 1))]
            kept.drop(gone)
            for slot in gone.tolist():
                del model[slot]
        kept._check()
        if model:
            asked = random.choice(sorted(model), size=25)
            assert kept.take(asked).to_pylist() == [model[slot] for slot in asked.tolist()]


def test_rows_can_move_to_empty_slots() -> None:
    kept = SlotRows(SCHEMA, 10, variable_bytes=4000)
    batch = rows_of(0, 10)
    kept.put(np.arange(10), batch, np.arange(10))
    kept.drop(np.array([1, 4, 9]))
    kept.move(np.array([8, 7]), np.array([1, 4]))
    kept._check()
    assert kept.take(np.arange(7)).to_pylist() == [batch.to_pylist()[row] for row in [0, 8, 2, 3, 7, 5, 6]]
    assert not kept.variable_bytes(np.array([7, 8, 9])).any()


def test_rows_of_slots_take_what_their_variable_columns_hold() -> None:
    kept = SlotRows(SCHEMA, 60, variable_bytes=30_000)
    batch = rows_of(0, 60)
    kept.put(np.arange(60), batch, np.arange(60))
    sizes = kept.variable_bytes(np.arange(60))
    assert sizes.tolist() == kept.sizes.of(batch, np.arange(60)).tolist()
    free = kept.free_bytes()
    kept.drop(np.arange(30))
    assert kept.free_bytes(30_000) > free


def test_all_columns_of_strings_share_the_bytes() -> None:
    schema = pa.schema([("short", pa.string()), ("long", pa.string())])
    kept = SlotRows(schema, 10, variable_bytes=1250)
    kept.put(np.array([0]), pa.RecordBatch.from_pydict({"short": ["x"], "long": ["y" * 999]}), np.array([0]))
    assert kept.free_bytes() == 0
    kept.put(np.array([0]), pa.RecordBatch.from_pydict({"short": ["y" * 999], "long": ["x"]}), np.array([0]))
    assert kept.take(np.array([0])).to_pylist() == [{"short": "y" * 999, "long": "x"}]


@pytest.mark.parametrize("seed", range(4))
def test_stream_rows_keep_rows_and_their_positions(seed: int) -> None:
    random = np.random.default_rng(seed)
    kept = StreamRows(SCHEMA, 50, variable_bytes=20_000)
    model: dict[int, tuple[int, dict[str, Any]]] = {}
    position = 0
    for _ in range(80):
        batch = rows_of(position, int(random.integers(1, 20)))
        rows = np.flatnonzero(random.random(batch.num_rows) < 0.7)[: kept.free_slots]
        slots = kept.put(batch, rows, position) if len(rows) else rows
        assert not set(slots.tolist()) & set(model)
        expected = batch.to_pylist()
        for slot, row in zip(slots.tolist(), rows.tolist(), strict=True):
            model[slot] = (position + row, expected[row])
        position += batch.num_rows
        kept._check()
        if model:
            asked = random.permutation(sorted(model))
            assert kept.positions(asked).tolist() == [model[slot][0] for slot in asked]
            assert kept.take(asked).to_pylist() == [model[slot][1] for slot in asked]
            gone = asked[: int(random.integers(0, len(asked) + 1))]
            kept.free(gone)
            for slot in gone.tolist():
                del model[slot]
        kept._check()
    kept.free(np.array(sorted(model), dtype=np.int64))
    assert kept.free_slots == 50


@pytest.mark.parametrize("replacement", [lambda: RandomOverwrite(3), LeastFrequentOverwrite])
@pytest.mark.parametrize("seed", range(3))
def test_a_tuple_cache_answers_only_what_was_admitted(replacement: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    cache = TupleCache(30, replacement(), SlotRows(SCHEMA, 30, variable_bytes=3000))
    rows = {code: rows_of(code, 1) for code in range(200)}
    absent_codes: set[int] = set()
    for _ in range(120):
        codes = random.permutation(200)[: int(random.integers(1, 40))]
        matches = random.integers(1, 9, len(codes)).astype(np.int32)
        known = cache.find(codes) >= 0
        absent = bool(random.random() < 0.3)
        before, most = cache.evictions, cache.capacity
        batch = None if absent else pa.concat_batches([rows[code] for code in codes.tolist()])
        new = cache.admit(codes, matches, batch, absent=absent)
        cache._check()
        assert new <= min(most, int((~known).sum()))
        assert cache.evictions >= before
        assert cache.count <= cache.capacity <= 30
        entered = set(codes[(cache.find(codes) >= 0) & ~known].tolist())
        absent_codes = (absent_codes - entered) | (entered if absent else set())
        every = np.arange(200)
        slots = cache.find(every)
        held = every[slots >= 0]
        cache.use(slots[slots >= 0].astype(np.int64))
        is_absent = cache.is_absent(slots[held].astype(np.int64))
        assert set(held[is_absent].tolist()) <= absent_codes
        with_row = held[~is_absent]
        if len(with_row):
            taken = cache.take(slots[with_row].astype(np.int64)).to_pylist()
            assert taken == [rows[code].to_pylist()[0] for code in with_row.tolist()]


def test_a_full_cache_without_replacement_stays_as_it_is() -> None:
    cache = TupleCache(4, None, None)
    assert cache.admit(np.arange(3), np.ones(3, dtype=np.int32), None, absent=False) == 3
    assert cache.admit(np.arange(3, 4), np.ones(1, dtype=np.int32), None, absent=True) == 1
    assert cache.admit(np.arange(9, 12), np.ones(3, dtype=np.int32), None, absent=False) == 0
    assert cache.find(np.array([0, 3, 9])).tolist() == [0, 3, -1]
    assert cache.is_absent(np.array([0, 3])).tolist() == [False, True]


def test_of_more_tuples_than_there_are_slots_those_that_matched_most_enter() -> None:
    cache = TupleCache(3, RandomOverwrite(0), None)
    cache.admit(np.arange(6), np.array([5, 1, 9, 2, 7, 3], dtype=np.int32), None, absent=False)
    assert (cache.find(np.arange(6)) >= 0).tolist() == [True, False, True, False, True, False]
