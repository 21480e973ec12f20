"""Turns key columns of any type into 64-bit codes, and says which key types may meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.core.errors import KeyTypeError
from semistream.core.key_hash import equal_bytes, hash_bytes, hash_integers

_EXACT_KINDS = {"integer", "boolean", "date"}


@dataclass(frozen=True)
class KeyCodes:
    """The codes of some rows; `usable` is None when every row has a key that some master row could equal."""

    codes: Int64Array
    usable: BoolArray | None
    nulls: BoolArray | None
    """Which rows have a null in their key; None if none has."""

    @property
    def null_count(self) -> int:
        """How many rows have a null in their key."""
        return 0 if self.nulls is None else int(self.nulls.sum())


@dataclass(frozen=True)
class _Bytes:
    offsets: Int64Array
    data: UInt8Array


_Canonical = list[Int64Array | _Bytes]


class KeyCodec:
    """Codes the key of one master table; stream keys are brought to the master's types without loss.

    A single integer-like key is its own code and keeps its order. Any other key is hashed: then equal keys have equal
    codes, but equal codes must be verified with `same_key`. Nulls never match. NaN equals NaN and -0.0 equals 0.0, as
    in Spark's joins.
    """

    def __init__(self, master_types: Sequence[pa.DataType]) -> None:
        if not master_types:
            raise KeyTypeError("A master table needs at least one key column: name it in `key`.")
        self.types = tuple(_plain(data_type) for data_type in master_types)
        self._kinds = tuple(_kind(data_type) for data_type in self.types)
        self.exact = len(self.types) == 1 and (
            self._kinds[0] in _EXACT_KINDS or self._kinds[0].startswith(("timestamp", "duration", "time"))
        )

    def check(self, names: Sequence[str], stream_types: Sequence[pa.DataType]) -> None:
        """Raise KeyTypeError if a stream key of these types cannot be compared with the master's without loss."""
        if len(stream_types) != len(self.types):
            raise KeyTypeError(f"The master's key has {len(self.types)} columns, but {len(stream_types)} were given.")
        for name, stream_type, master_type, kind in zip(names, stream_types, self.types, self._kinds, strict=True):
            if _kind(_plain(stream_type)) != kind:
                raise KeyTypeError(
                    f"The key column {name!r} is {stream_type} in the stream but {master_type} in the master table: "
                    f"cast one of them so that both have the same kind of type."
                )

    def encode(self, columns: Sequence[pa.Array]) -> KeyCodes:
        """Return the code of each row; costs one pass over the columns."""
        columns = [_plain_array(column) for column in columns]
        canonical, usable = self._canonical(columns)
        nulls: BoolArray | None = None
        for column in columns:
            if column.null_count:
                of_column = column.is_null().to_numpy(zero_copy_only=False)
                nulls = of_column if nulls is None else nulls | of_column
        if nulls is not None:
            usable = ~nulls if usable is None else usable & ~nulls
        if usable is not None and usable.all():
            usable = None
        if self.exact:
            codes = canonical[0]
            assert isinstance(codes, np.ndarray)
            return KeyCodes(codes, usable, nulls)
        hashes = np.zeros(len(columns[0]), dtype=np.uint64)
        for part in canonical:
            if isinstance(part, _Bytes):
                hash_bytes(hashes, part.offsets, part.data)
            else:
                hash_integers(hashes, part)
        return KeyCodes(hashes.view(np.int64), usable, nulls)

    def same_key(self, left: Sequence[pa.Array], right: Sequence[pa.Array]) -> BoolArray:
        """Say for each row whether the key on the left equals the key on the right."""
        left_parts, left_valid = self._canonical(left)
        right_parts, right_valid = self._canonical(right)
        equal = np.ones(len(left[0]), dtype=np.uint8)
        for ours, theirs in zip(left_parts, right_parts, strict=True):
            if isinstance(ours, _Bytes):
                assert isinstance(theirs, _Bytes)
                equal_bytes(ours.offsets, ours.data, theirs.offsets, theirs.data, equal)
            else:
                equal &= ours == theirs
        same: BoolArray = equal.view(np.bool_)
        for valid in (left_valid, right_valid):
            if valid is not None:
                same &= valid
        return same

    def _canonical(self, columns: Sequence[pa.Array]) -> tuple[_Canonical, BoolArray | None]:
        parts: _Canonical = []
        valid: BoolArray | None = None
        for column, master_type, kind in zip(columns, self.types, self._kinds, strict=True):
            values, fits = _canonical_column(_plain_array(column), master_type, kind)
            parts.extend(values)
            if fits is not None:
                valid = fits if valid is None else valid & fits
        return parts, valid


def _plain(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def _plain_array(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _kind(data_type: pa.DataType) -> str:
    """Return the family of types within which values can be compared without loss."""
    types = pa.types
    if types.is_integer(data_type):
        return "integer"
    if types.is_boolean(data_type):
        return "boolean"
    if types.is_floating(data_type):
        return "floating"
    if types.is_decimal256(data_type):
        raise KeyTypeError(f"A key of type {data_type} has more than 38 digits: cast it to a decimal of at most 38.")
    if types.is_decimal(data_type):
        return "decimal"
    if types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type):
        return "string"
    if types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_binary_view(data_type):
        return "binary"
    if types.is_fixed_size_binary(data_type):
        return "binary"
    if types.is_date(data_type):
        return "date"
    if types.is_timestamp(data_type):
        zone = "zone" if data_type.tz else "naive"
        return f"timestamp {zone} {_resolution(data_type.unit)}"
    if types.is_duration(data_type):
        return f"duration {_resolution(data_type.unit)}"
    if types.is_time(data_type):
        return f"time {_resolution(data_type.unit)}"
    raise KeyTypeError(f"A column of type {data_type} cannot be a key: use columns of simple types.")


def _resolution(unit: str) -> str:
    return "ns" if unit == "ns" else "us"


def _canonical_column(column: pa.Array, master_type: pa.DataType, kind: str) -> tuple[_Canonical, BoolArray | None]:
    """Return the values as integers or bytes that are equal exactly when the keys are, and which rows can match."""
    if kind == "floating":
        values = _numbers(column.cast(pa.float64()), np.float64) + 0.0  # turns -0.0 into 0.0
        values[np.isnan(values)] = np.nan
        return [values.view(np.int64)], None
    if kind == "decimal":
        return _canonical_decimal(column, master_type)
    if kind in ("string", "binary"):
        return [_as_bytes(column)], None
    if kind == "integer":
        if pa.types.is_uint64(column.type):
            unsigned = _numbers(column, np.uint64)
            return [unsigned.view(np.int64)], unsigned < np.uint64(2**63)
        return [_numbers(column.cast(pa.int64()), np.int64)], None
    if kind == "boolean":
        return [_numbers(column.cast(pa.uint8()).cast(pa.int64()), np.int64)], None
    if kind == "date":
        return [_numbers(column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), np.int64)], None
    unit = kind.rsplit(" ", 1)[1]
    return [_numbers(_ticks(column, unit), np.int64)], None


def _ticks(column: pa.Array, unit: str) -> pa.Array:
    data_type = column.type
    if pa.types.is_timestamp(data_type):
        return column.cast(pa.timestamp(unit, data_type.tz)).cast(pa.int64())
    if pa.types.is_duration(data_type):
        return column.cast(pa.duration(unit)).cast(pa.int64())
    return column.cast(pa.time64(unit)).cast(pa.int64())


def _canonical_decimal(column: pa.Array, master_type: pa.DataType) -> tuple[_Canonical, BoolArray | None]:
    scale = master_type.scale
    wide = pa.decimal128(38, scale)
    fits: BoolArray | None = None
    if column.type.scale != scale or not pa.types.is_decimal128(column.type):
        column = column.cast(pa.decimal128(38, column.type.scale))
        if scale > column.type.scale:
            limit = pa.scalar(Decimal(10) ** (38 - scale), column.type)
            column = pc.if_else(pc.less(pc.abs(column), limit), column, pa.scalar(None, column.type))
        rescaled = pc.cast(column, wide, safe=False)
        exact = pc.fill_null(pc.equal(pc.cast(rescaled, column.type, safe=False), column), False)
        fits = exact.to_numpy(zero_copy_only=False).astype(np.bool_)
        column = rescaled
    else:
        column = column.cast(wide)
    words = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset * 2 :][: len(column) * 2]
    words = words.reshape(-1, 2).copy()
    if column.null_count:
        words[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return [np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])], fits


def _as_bytes(column: pa.Array) -> _Bytes:
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    column = column.cast(pa.large_binary())
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    payload = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return _Bytes(starts, payload)


def _numbers(column: pa.Array, dtype: Any) -> Any:
    """Return the values as a numpy array, with zeros for nulls."""
    if column.null_count:
        column = column.fill_null(0)
    values = column.to_numpy(zero_copy_only=False)
    return values if values.dtype == dtype else values.astype(dtype)
