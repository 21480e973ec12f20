"""Rows that are taken from pages are the rows that went in, for every type of column and every order."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from semistream.core.errors import UnknownColumnError
from semistream.store.paged import PagedFileStore, build
from semistream.store.paged.format.page_columns import PageColumns
from semistream.store.paged.format.row_layout import RowLayout

_TEXTS = st.one_of(st.sampled_from(["", " ", "é", "漢字", "x" * 70]), st.text("abc", max_size=9))
_BYTES = st.one_of(st.just(b""), st.binary(max_size=20))
_MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
_UNITS = st.integers(-(10**7), 10**7)
_FLOATS = st.floats(width=16)

SIMPLE: list[tuple[pa.DataType, SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint16(), st.integers(0, 2**16 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float16(), _FLOATS.map(np.float16)),
    (pa.float32(), _FLOATS),
    (pa.float64(), _FLOATS),
    (pa.bool_(), st.booleans()),
    (pa.string(), _TEXTS),
    (pa.large_string(), _TEXTS),
    (pa.binary(), _BYTES),
    (pa.large_binary(), _BYTES),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.binary(24), st.binary(min_size=24, max_size=24)),
    (pa.decimal128(9, 2), _UNITS.map(lambda units: Decimal(units) / 100)),
    (pa.decimal256(50, 2), _UNITS.map(lambda units: Decimal(units) / 100)),
    (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
    (pa.time64("us"), st.times()),
    (pa.timestamp("us"), _MOMENTS),
    (pa.timestamp("us", "UTC"), _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    (pa.duration("us"), st.timedeltas(dt.timedelta(-999), dt.timedelta(999))),
    (pa.month_day_nano_interval(), st.just(pa.MonthDayNano([1, 2, 3]))),
]
NESTED: list[tuple[pa.DataType, SearchStrategy[Any]]] = [
    (pa.null(), st.none()),
    (pa.list_(pa.string()), st.lists(st.one_of(st.none(), _TEXTS), max_size=3)),
    (pa.large_list(pa.int8()), st.lists(st.integers(-9, 9), max_size=3)),
    (pa.list_(pa.int16(), 2), st.lists(st.integers(-9, 9), min_size=2, max_size=2)),
    (
        pa.map_(pa.string(), pa.int32()),
        st.dictionaries(_TEXTS, st.integers(0, 9), max_size=2).map(dict.items).map(list),
    ),
    (
        pa.struct([("n", pa.int32()), ("tags", pa.list_(pa.bool_()))]),
        st.fixed_dictionaries({"n": st.integers(-9, 9), "tags": st.lists(st.booleans(), max_size=2)}),
    ),
]


@contextmanager
def opened(rows: pa.Table, page_bytes: int) -> Iterator[PagedFileStore]:
    """Build a table, with pages that have a few rows, and open it."""
    with tempfile.TemporaryDirectory() as directory:
        build(rows, f"{directory}/t", "id", page_bytes=page_bytes)
        with PagedFileStore(f"{directory}/t") as store:
            yield store


@st.composite
def masters(draw: DrawFn, kinds: list[tuple[pa.DataType, SearchStrategy[Any]]]) -> pa.Table:
    """Return rows with ascending keys and columns of any of these kinds, some of which have nulls."""
    count = draw(st.integers(1, 150))
    columns = {}
    for index, (data_type, values) in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=6))):
        nulls = draw(st.sampled_from(["none", "some", "all"]))
        pool = st.none() if nulls == "all" else values if nulls == "none" else st.one_of(st.none(), values)
        drawn = draw(st.lists(pool, min_size=1, max_size=7))
        # A period that shares no factor with the bits of a byte brings every value to every bit.
        columns[f"c{index}"] = pa.array([drawn[row % len(drawn)] for row in range(count)], data_type)
    place = draw(st.integers(0, len(columns)))
    named = list(columns.items())
    named.insert(place, ("id", pa.array(range(0, 3 * count, 3), draw(st.sampled_from([pa.int64(), pa.int16()])))))
    return pa.table(dict(named))


@st.composite
def ranges_of(draw: DrawFn, page_count: int) -> np.ndarray[Any, Any]:
    """Return ranges of pages in any order, which may overlap and repeat."""
    pages = st.integers(0, page_count - 1)
    drawn = draw(st.lists(st.tuples(pages, pages), min_size=1, max_size=8))
    return np.sort(np.array(drawn, dtype=np.int64), axis=1)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(), rows=st.one_of(masters(SIMPLE), masters(SIMPLE + NESTED)), page_bytes=st.sampled_from([512, 2048])
)
def test_any_rows_of_any_columns_are_those_that_went_in(data: st.DataObject, rows: pa.Table, page_bytes: int) -> None:
    with opened(rows, page_bytes) as store:
        ranges = data.draw(ranges_of(store.page_count))
        pages = store.read(ranges[:, 0], ranges[:, 1])
        wanted = data.draw(st.lists(st.integers(0, len(pages.codes) - 1), max_size=60).map(np.array))
        if data.draw(st.booleans()):
            wanted = np.sort(wanted)
        columns = data.draw(st.lists(st.sampled_from(rows.schema.names), min_size=1, max_size=4))
        taken = pages.take(wanted.astype(np.int64), columns)
        taken.validate(full=True)
        at = pages.codes[wanted.astype(np.int64)] // 3
        expected = pa.RecordBatch.from_arrays(
            [rows.column(name).combine_chunks().take(pa.array(at)) for name in columns],
            schema=pa.schema([rows.schema.field(name) for name in columns]),
        )
        assert taken.schema.equals(expected.schema)
        # A NaN is not equal to itself, but its text is; names may stand twice.
        for index in range(len(columns)):
            assert repr(taken.column(index).to_pylist()) == repr(expected.column(index).to_pylist())
            assert taken.column(index).null_count == expected.column(index).null_count


@pytest.mark.parametrize("data_type", [data_type for data_type, _ in SIMPLE], ids=str)
def test_simple_columns_are_gathered_behind_nested_ones_too(data_type: pa.DataType) -> None:
    fields = [("id", pa.int64()), *((f"n{index}", kind) for index, (kind, _) in enumerate(NESTED)), ("c", data_type)]
    columns = PageColumns(RowLayout(pa.schema(fields), ["id"]))
    assert columns.gathering(["c", "id"]) is not None
    assert columns.gathering(["c", "n1"]) is None


def test_a_column_behind_one_of_unknown_parts_is_decoded() -> None:
    union = pa.sparse_union([pa.field("a", pa.int8())])
    schema = pa.schema([("id", pa.int64()), ("before", pa.string()), ("union", union), ("behind", pa.string())])
    columns = PageColumns(RowLayout(schema, ["id"]))
    assert columns.gathering(["before"]) is not None
    assert columns.gathering(["behind"]) is None


def test_extension_types_come_back(tmp_path: Path) -> None:
    storage = pa.array([bytes([number]) * 16 for number in range(50)], pa.binary(16))
    rows = pa.table({"id": np.arange(50), "u": pa.ExtensionArray.from_storage(pa.uuid(), storage)})
    build(rows, tmp_path / "t", "id", page_bytes=512)
    pages = PagedFileStore(tmp_path / "t").read(np.array([0]), np.array([1]))
    taken = pages.take(np.array([3, 0, 7]), ["u"])
    taken.validate(full=True)
    assert taken.column(0).equals(rows["u"].combine_chunks().take(pa.array([3, 0, 7])))


def test_fields_keep_their_metadata_and_nullability(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int32(), nullable=False, metadata={"unit": "m"})])
    build(pa.table({"id": [1, 2], "n": pa.array([5, 6], pa.int32())}, schema=schema), tmp_path / "t", "id")
    taken = PagedFileStore(tmp_path / "t").read(np.array([0]), np.array([0])).take(np.array([1]), ["n"])
    assert taken.schema.field("n").equals(schema.field("n"), check_metadata=True)


def test_rows_and_columns_that_are_not_there_are_named(tmp_path: Path) -> None:
    build(pa.table({"id": np.arange(9), "list": [[1]] * 9}), tmp_path / "t", "id")
    pages = PagedFileStore(tmp_path / "t").read(np.array([0]), np.array([0]))
    for columns in (["id"], ["id", "list"]):
        for row in (-1, 9, 2**40):
            with pytest.raises(IndexError, match="not one of the 9"):
                pages.take(np.array([0, row]), columns)
    for rows in (np.array([0]), np.array([], dtype=np.int64)):
        with pytest.raises(UnknownColumnError, match="'colour'"):
            pages.take(rows, ["colour"])
    assert pages.take(np.array([], dtype=np.int64), ["list"]).num_rows == 0
    assert pages.take(np.arange(5), []).num_rows == 5
