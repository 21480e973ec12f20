"""Hashes of rows: equal rows have equal hashes wherever they stand, and others have others."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.row_hash import row_hashes

NESTED = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))
VALUES: list[tuple[pa.DataType, list[object]]] = [
    (pa.int8(), [1, -1, 0, None]),
    (pa.int64(), [1, 2**40, -(2**62), None]),
    (pa.float64(), [0.0, -0.0, 1.5, float("nan"), None]),
    (pa.float32(), [0.5, None, 2.0]),
    (pa.bool_(), [True, False, None]),
    (pa.string(), ["", "a", "ab", "abcdefgh", "abcdefghi", None]),
    (pa.large_string(), ["x", "", None]),
    (pa.binary(), [b"", b"\0", b"\0\0", None]),
    (pa.decimal128(20, 2), [Decimal("1.00"), Decimal("-1.00"), None]),
    (pa.date32(), [dt.date(2026, 1, 1), None]),
    (pa.timestamp("us", tz="UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None]),
    (pa.list_(pa.int64()), [[], [1], [1, 2], [2, 1], None, [None]]),
    (NESTED, [[], None, [{"a": 1, "b": "x"}], [{"a": 1, "b": "x"}, None], [{"a": None, "b": "x"}]]),
    (pa.map_(pa.string(), pa.int64()), [[], [("a", 1)], [("a", 2)], None]),
    (pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": None}, None]),
    (pa.list_(pa.int16(), 2), [[1, 2], [2, 1], None]),
    (pa.null(), [None]),
]


def hashes(values: pa.Array) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in row_hashes([values], len(values)).tolist()]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_different_values_have_different_hashes(kind: pa.DataType, values: list[object]) -> None:
    assert len(set(hashes(pa.array(values, kind)))) == len(values)


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_value_has_its_hash_wherever_it_stands(kind: pa.DataType, values: list[object], data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=30))
    start = data.draw(st.integers(0, len(drawn) - 1))
    column = pa.array([values[index] for index in drawn], kind)
    known = dict(enumerate(hashes(pa.array(values, kind))))
    assert hashes(column.slice(start)) == [known[index] for index in drawn[start:]]


def test_what_is_under_a_null_does_not_matter() -> None:
    one = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([5, 6]))])
    other = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([5, 7]))])
    assert hashes(one) == hashes(other)


def test_rows_differ_by_any_column_and_by_the_order_of_columns() -> None:
    left, right = pa.array([1, 1, 2, 2]), pa.array([1, 2, 1, 2])
    both = [tuple(pair) for pair in row_hashes([left, right], 4).tolist()]
    assert max(Counter(both).values()) == 1


def test_a_million_rows_have_a_million_hashes() -> None:
    keys = pa.array(np.arange(1_000_000))
    assert len(np.unique(row_hashes([keys], len(keys)))) == 1_000_000
