"""A cache whose rows turn out fat holds fewer of them, and as many as before once they are thin again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.rows.slot_rows import SlotRows
from semistream.policies.caching import LeastFrequentOverwrite, LessUsedOverwrite, RandomOverwrite

ENTRIES = 400
ROW_BYTES = 100
ROOM = int(1.25 * 1.25 * ENTRIES * ROW_BYTES)
REPLACEMENTS = [lambda: RandomOverwrite(3), LeastFrequentOverwrite, LessUsedOverwrite]
SCHEMAS = {
    "strings": pa.schema([("number", pa.int64()), ("text", pa.string())]),
    "two strings": pa.schema([("number", pa.int64()), ("text", pa.string()), ("more", pa.large_string())]),
    "lists": pa.schema([("number", pa.int64()), ("tags", pa.list_(pa.string()))]),
}


def rows_of(codes: np.ndarray, row_bytes: int, schema: pa.Schema) -> pa.RecordBatch:
    text = ["x" * row_bytes] * len(codes)
    columns: dict[str, Any] = {"number": codes, "text": text, "more": text, "tags": [[value] for value in text]}
    return pa.RecordBatch.from_pydict({name: columns[name] for name in schema.names}, schema=schema)


class Admitting:
    """Admits new codes again and again, each worth a little more than those before."""

    def __init__(self, schema: pa.Schema, replacement: Any) -> None:
        self.rows = SlotRows(schema, ENTRIES, ROOM * (len(schema) - 1))
        self.cache = TupleCache(ENTRIES, replacement(), self.rows)
        self._code = 0

    def admit(self, batches: int, row_bytes: int) -> None:
        for _ in range(batches):
            codes = np.arange(self._code, self._code + 20)
            self._code += 20
            worth = np.full(20, 1 + self._code // 20, dtype=np.int32)
            self.cache.admit(codes, worth, rows_of(codes, row_bytes, self.rows.schema), absent=False)
            self.cache._check()
            assert self.rows.free_bytes() >= 0
            held = np.flatnonzero(self.cache.find(np.arange(self._code)) >= 0)
            taken = self.cache.take(self.cache.find(held).astype(np.int64))
            assert taken.column(0).to_pylist() == held.tolist()


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=["random", "least frequent", "less used"])
def test_after_a_burst_of_fat_rows_the_cache_holds_as_many_thin_ones_as_before(schema: str, replacement: Any) -> None:
    admitting = Admitting(SCHEMAS[schema], replacement)
    admitting.admit(40, ROW_BYTES)
    before = admitting.cache.count
    assert before > 0.9 * ENTRIES
    admitting.admit(60, 20 * ROW_BYTES)
    assert admitting.cache.count < before / 2
    admitting.admit(400, ROW_BYTES)
    assert admitting.cache.count >= 0.9 * before
    assert admitting.cache.capacity == ENTRIES


def test_columns_of_fixed_width_do_not_count_against_the_bytes_of_strings() -> None:
    """Rows of 400 bytes of which ten are strings fit a heap for ten bytes a row."""
    wide = pa.schema([*((f"number {index}", pa.int64()) for index in range(50)), ("text", pa.string())])
    cache = TupleCache(ENTRIES, LeastFrequentOverwrite(), SlotRows(wide, ENTRIES, int(1.25 * 10 * ENTRIES)))
    codes = np.arange(ENTRIES)
    columns = {f"number {index}": codes for index in range(50)}
    rows = pa.RecordBatch.from_pydict({**columns, "text": ["x" * 10] * ENTRIES}, schema=wide)
    assert cache.admit(codes, np.ones(ENTRIES, dtype=np.int32), rows, absent=False) == ENTRIES
    assert cache.count == ENTRIES


def test_a_row_that_would_drive_out_many_others_does_not_enter() -> None:
    admitting = Admitting(SCHEMAS["strings"], LeastFrequentOverwrite)
    admitting.admit(40, ROW_BYTES)
    before = admitting.cache.count
    code = np.array([10**6])
    fat = rows_of(code, ROOM // 10, SCHEMAS["strings"])
    assert admitting.cache.admit(code, np.array([1000], dtype=np.int32), fat, absent=False) == 0
    assert admitting.cache.count == before


def test_rows_to_save_are_copied_some_bytes_at_a_time() -> None:
    admitting = Admitting(SCHEMAS["strings"], LeastFrequentOverwrite)
    admitting.admit(40, ROW_BYTES)
    pieces = list(admitting.cache.hottest(ENTRIES))
    assert sum(len(piece.codes) for piece in pieces) == admitting.cache.count
    assert max(piece.rows.nbytes for piece in pieces if piece.rows is not None) < ROOM / 4


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_slot_of_absent_keys_takes_no_bytes(schema: str) -> None:
    cache = TupleCache(ENTRIES, None, SlotRows(SCHEMAS[schema], ENTRIES, ROOM * 2))
    codes = np.arange(10)
    cache.admit(codes, np.ones(10, dtype=np.int32), rows_of(codes, ROW_BYTES, SCHEMAS[schema]), absent=False)
    sizes = cache.variable_bytes(np.array([cache.absent_slot, 0, cache.absent_slot, 9]))
    assert sizes is not None
    assert sizes[[0, 2]].tolist() == [0, 0]
    assert (sizes[[1, 3]] >= ROW_BYTES).all()
