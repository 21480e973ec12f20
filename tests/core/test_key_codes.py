"""Keys of any type become codes: equal keys equal codes, and nothing else is the same."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.errors import KeyTypeError
from semistream.core.keys import KeyCodec
from semistream.testing.strategies import KEY_KINDS, ColumnKind

fixed = settings(max_examples=25, deadline=None, derandomize=True, print_blob=True)


def comparable(value: Any) -> Any:
    return "not a number" if isinstance(value, float) and value != value else value


@pytest.mark.parametrize("kind", KEY_KINDS, ids=lambda kind: kind.name)
def test_codes_are_equal_exactly_when_keys_are(kind: ColumnKind) -> None:
    @fixed
    @given(st.lists(kind.values, min_size=1, max_size=30), st.sampled_from([kind.type, *kind.stream_types]))
    def holds(values: list[Any], stream_type: pa.DataType) -> None:
        codec = KeyCodec([kind.type])
        codec.check(["key"], [stream_type])
        plain = stream_type.value_type if pa.types.is_dictionary(stream_type) else stream_type
        ours = pa.array(values, plain)
        ours = ours.dictionary_encode() if plain != stream_type else ours
        theirs = pa.array(values, kind.type)
        left, right = codec.encode([ours]), codec.encode([theirs])
        assert (left.usable, left.null_count) == (None, 0)
        assert np.array_equal(left.codes, right.codes)
        names = [comparable(value) for value in values]
        for shift in range(len(values)):
            same = [names[row] == names[row - shift] for row in range(len(values))]
            moved = theirs.take(pa.array([(row - shift) % len(values) for row in range(len(values))]))
            assert codec.same_key([ours], [moved]).tolist() == same
            assert (left.codes == np.roll(right.codes, shift)).tolist() == same

    holds()


@pytest.mark.parametrize("kind", KEY_KINDS, ids=lambda kind: kind.name)
def test_nulls_are_counted_and_never_usable(kind: ColumnKind) -> None:
    @fixed
    @given(st.lists(st.one_of(st.none(), kind.values), min_size=1, max_size=20), st.integers(0, 5))
    def holds(values: list[Any], cut: int) -> None:
        column = pa.array(values, kind.type).slice(cut)
        coded = KeyCodec([kind.type]).encode([column])
        nulls = [value is None for value in column.to_pylist()]
        assert coded.null_count == sum(nulls)
        usable = np.ones(len(nulls), dtype=bool) if coded.usable is None else coded.usable
        assert usable.tolist() == [not null for null in nulls]
        whole = KeyCodec([kind.type]).encode([pa.array(values, kind.type)])
        assert np.array_equal(coded.codes[usable], whole.codes[cut:][usable])

    holds()


def test_an_integer_key_is_its_own_code_and_keeps_its_order() -> None:
    values = [-(2**63), -1, 0, 7, 2**63 - 1]
    codec = KeyCodec([pa.int64()])
    assert codec.exact
    assert codec.encode([pa.array(values)]).codes.tolist() == values
    for narrow in (pa.int8(), pa.uint8(), pa.int16(), pa.uint32()):
        codec.check(["id"], [narrow])
        assert codec.encode([pa.array([5, 100], narrow)]).codes.tolist() == [5, 100]


def test_a_master_key_may_be_narrower_than_the_stream_key() -> None:
    codec = KeyCodec([pa.int8()])
    codec.check(["id"], [pa.int64()])
    assert codec.encode([pa.array([5, 10**12])]).codes.tolist() == [5, 10**12]


def test_a_stream_key_that_no_integer_of_64_bits_equals_cannot_match() -> None:
    coded = KeyCodec([pa.int64()]).encode([pa.array([5, 2**63, 2**64 - 5], pa.uint64())])
    assert coded.usable.tolist() == [True, False, False]
    assert coded.null_count == 0


def test_nan_equals_nan_and_minus_zero_equals_zero() -> None:
    codec = KeyCodec([pa.float64()])
    other_nan = np.frombuffer(np.uint64(0xFFF8000000000001).tobytes(), dtype=np.float64)[0]
    codes = codec.encode([pa.array([float("nan"), other_nan, 0.0, -0.0, 1.0])]).codes.tolist()
    assert codes[0] == codes[1] != codes[2] == codes[3] != codes[4]
    codec.check(["x"], [pa.float32()])
    assert codec.encode([pa.array([float("nan"), -0.0], pa.float32())]).codes.tolist() == [codes[0], codes[2]]


def test_decimals_of_another_scale_match_only_without_loss() -> None:
    codec = KeyCodec([pa.decimal128(9, 2)])
    master = codec.encode([pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(9, 2))]).codes
    finer = codec.encode([pa.array([Decimal("1.5000"), Decimal("2.0001")], pa.decimal128(12, 4))])
    assert finer.usable.tolist() == [True, False]
    assert finer.codes[0] == master[0]
    whole = codec.encode([pa.array([Decimal(2), Decimal(7), Decimal(10) ** 37], pa.decimal128(38, 0))])
    assert whole.usable.tolist() == [True, True, False]
    assert whole.codes[0] == master[1]


def test_times_of_one_kind_match_whatever_their_unit_and_zone() -> None:
    moment = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
    codec = KeyCodec([pa.timestamp("us", "UTC")])
    expected = codec.encode([pa.array([moment], pa.timestamp("us", "UTC"))]).codes
    for other in (pa.timestamp("s", "Europe/Berlin"), pa.timestamp("ms", "UTC")):
        codec.check(["t"], [other])
        assert np.array_equal(codec.encode([pa.array([moment], other)]).codes, expected)


def test_parts_of_a_composite_key_do_not_run_together() -> None:
    codec = KeyCodec([pa.string(), pa.string()])
    left, right = pa.array(["ab", "a", "", "abc"]), pa.array(["c", "bc", "abc", ""])
    assert len(set(codec.encode([left, right]).codes.tolist())) == 4
    assert not codec.exact


@pytest.mark.parametrize(
    ("master", "stream"),
    [
        (pa.int64(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.decimal128(9, 0)),
        (pa.int64(), pa.bool_()),
        (pa.string(), pa.binary()),
        (pa.date32(), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.timestamp("ns")),
    ],
)
def test_types_of_different_kinds_are_refused_by_name(master: pa.DataType, stream: pa.DataType) -> None:
    for one, other in ((master, stream), (stream, master)):
        with pytest.raises(KeyTypeError) as raised:
            KeyCodec([one]).check(["id"], [other])
        assert all(text in str(raised.value) for text in ("'id'", str(one), str(other)))


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.null(), pa.decimal256(40, 2)]
)
def test_a_type_that_cannot_be_a_key_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(KeyTypeError, match="key"):
        KeyCodec([kind])


def test_a_key_needs_columns_and_as_many_as_the_master_has() -> None:
    with pytest.raises(KeyTypeError):
        KeyCodec([])
    with pytest.raises(KeyTypeError, match="2 columns, but 1"):
        KeyCodec([pa.int64(), pa.string()]).check(["id"], [pa.int64()])


@pytest.mark.parametrize("kind", KEY_KINDS, ids=lambda kind: kind.name)
def test_a_column_without_rows_has_no_codes(kind: ColumnKind) -> None:
    assert len(KeyCodec([kind.type]).encode([pa.array([], kind.type)]).codes) == 0


def test_a_null_inside_a_dictionary_is_a_null() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([None, "a"]))
    coded = KeyCodec([pa.string()]).encode([column])
    assert coded.null_count == 1
    assert coded.usable is not None
    assert coded.usable.tolist() == [False, True]
