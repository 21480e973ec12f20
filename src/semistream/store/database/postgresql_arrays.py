"""Makes Arrow arrays of arrays of PostgreSQL in their binary form, as `array_agg` brings a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.core.errors import UnsupportedValueError

# From 1970-01-01, where Arrow begins to count, to 2000-01-01, where PostgreSQL does.
_DAYS = 10_957
_MICROSECONDS = 946_684_800_000_000
_DAY_MICROSECONDS = 86_400_000_000
_ONE_DIMENSION = 20
"""The bytes before the first element."""


def arrow_array(data: bytes | None, data_type: pa.DataType, column: str) -> pa.Array:
    """Return the elements; None stands for no row."""
    if data is None:
        return pa.array([], data_type)
    raw = np.frombuffer(data, dtype=np.uint8)
    dimensions = int.from_bytes(data[:4], "big")
    if not dimensions:
        return pa.array([], data_type)
    count = int.from_bytes(data[12:16], "big")
    types = pa.types
    if types.is_string(data_type) or types.is_binary(data_type) or types.is_decimal(data_type):
        return _of_bytes(raw, count, data_type, column)
    if types.is_boolean(data_type):
        values, valid = _fixed(raw, count, 1)
        return pa.array(values.view(np.bool_), mask=None if valid.all() else ~valid)
    values, valid = _fixed(raw, count, data_type.bit_width // 8)
    if types.is_date(data_type):
        values = _moved(values.view(np.int32), valid, _DAYS, column).view(np.uint8)
    elif types.is_timestamp(data_type):
        values = _moved(values.view(np.int64), valid, _MICROSECONDS, column).view(np.uint8)
    elif types.is_time(data_type) and (values.view(np.int64) >= _DAY_MICROSECONDS).any():
        raise UnsupportedValueError(
            f"A value of the column {column!r} is the time 24:00:00, which Arrow cannot represent: "
            f"make a view that casts it, and name the view."
        )
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(data_type, count, [bitmap, pa.py_buffer(values)])


def _moved(values: NDArray[Any], valid: NDArray[Any], by: int, column: str) -> NDArray[Any]:
    limits = np.iinfo(values.dtype)
    if ((values[valid] == limits.min) | (values[valid] > limits.max - by)).any():
        raise UnsupportedValueError(
            f"A value of the column {column!r} is infinite or beyond the range of Arrow: "
            f"make a view that replaces it, for example by NULL, and name the view."
        )
    moved: NDArray[Any] = values + values.dtype.type(by)
    return moved


def _fixed(raw: UInt8Array, count: int, width: int) -> tuple[UInt8Array, NDArray[Any]]:
    values = np.zeros(count * width, dtype=np.uint8)
    valid = np.ones(count, dtype=np.uint8)
    _copy_fixed(raw, _ONE_DIMENSION, width, values, valid)
    return values, valid.view(np.bool_)


def _of_bytes(raw: UInt8Array, count: int, data_type: pa.DataType, column: str) -> pa.Array:
    offsets = np.zeros(count + 1, dtype=np.int64)
    valid = np.ones(count, dtype=np.uint8)
    _measure(raw, _ONE_DIMENSION, offsets, valid)
    values = np.empty(int(offsets[-1]), dtype=np.uint8)
    _copy_bytes(raw, _ONE_DIMENSION, offsets, valid, values)
    is_valid = valid.view(np.bool_)
    bitmap = None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    stored = data_type if not pa.types.is_decimal(data_type) else pa.string()
    buffers = [bitmap, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(values)]
    array = pa.Array.from_buffers(stored, count, buffers)
    return decimals(array, data_type, column) if pa.types.is_decimal(data_type) else array


def decimals(texts: pa.Array, data_type: pa.DataType, column: str) -> pa.Array:
    """Return texts as decimals, or raise an error for what is not a number or has too many digits."""
    try:
        return pc.cast(texts, data_type)
    except pa.ArrowInvalid:
        raise UnsupportedValueError(
            f"A value of the column {column!r} is NaN, infinite or does not fit {data_type}: "
            f"make a view that casts or leaves out the column, and name the view."
        ) from None


@kernel
def _length(raw: UInt8Array, at: int) -> int:
    number = (np.int64(raw[at]) << 24) | (np.int64(raw[at + 1]) << 16) | (np.int64(raw[at + 2]) << 8) | raw[at + 3]
    return -1 if number == 0xFFFFFFFF else number


@kernel
def _copy_fixed(raw: UInt8Array, at: int, width: int, values: UInt8Array, valid: UInt8Array) -> None:
    """Copy elements of one width, whose bytes come in the other order; costs some nanoseconds an element."""
    for row in range(valid.shape[0]):
        length = _length(raw, at)
        at += 4
        if length < 0:
            valid[row] = 0
            continue
        for index in range(width):
            values[row * width + width - 1 - index] = raw[at + index]
        at += length


@kernel
def _measure(raw: UInt8Array, at: int, offsets: Int64Array, valid: UInt8Array) -> None:
    for row in range(valid.shape[0]):
        length = _length(raw, at)
        at += 4
        if length < 0:
            valid[row] = 0
            length = 0
        offsets[row + 1] = offsets[row] + length
        at += length


@kernel
def _copy_bytes(raw: UInt8Array, at: int, offsets: Int64Array, valid: UInt8Array, values: UInt8Array) -> None:
    for row in range(valid.shape[0]):
        at += 4
        if valid[row]:
            length = offsets[row + 1] - offsets[row]
            values[offsets[row] : offsets[row + 1]] = raw[at : at + length]
            at += length
