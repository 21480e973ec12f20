"""Makes Arrow arrays of the rows that MySQL sends, as texts of known lengths one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.core.errors import UnsupportedValueError

HEAD = 4
"""The bytes before each packet: its length, and a number."""
NULL = -1
MORE, END, ERROR, HUGE = 0, 1, 2, 3
"""What follows the packets that are whole: more of them, the end, an error, or one that is cut into several."""
_MAX_PACKET = 0xFFFFFF


@kernel
def scan(data: UInt8Array, at: int, starts: Int64Array, found: int) -> tuple[int, int, int]:
    """Note where the packets of rows start, as far as they are whole and there is room.

    Returns where the next packet begins, how many were found in all, and what follows.
    """
    size = data.shape[0]
    while at + HEAD <= size and found < starts.shape[0]:
        length = np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16
        if length == _MAX_PACKET:
            return at, found, HUGE
        if at + HEAD + length > size:
            break
        if length and data[at + HEAD] == 0xFF:
            return at, found, ERROR
        if length and length < 9 and data[at + HEAD] == 0xFE:
            return at, found, END
        starts[found] = at + HEAD
        found += 1
        at += HEAD + int(length)
    return at, found, MORE


@kernel
def split(data: UInt8Array, starts: Int64Array, places: Int64Array, lengths: Int64Array) -> None:
    """Note where the values of each row are and how long, a row of the arrays a column; NULL for no value."""
    for row in range(starts.shape[0]):
        at = starts[row]
        for column in range(places.shape[0]):
            first = np.int64(data[at])
            at += 1
            length = first
            if first == 0xFB:
                places[column, row] = at
                lengths[column, row] = NULL
                continue
            more = 2 if first == 0xFC else 3 if first == 0xFD else 8 if first == 0xFE else 0
            if more:
                length = np.int64(0)
                for index in range(more):
                    length |= np.int64(data[at + index]) << (8 * index)
                at += more
            places[column, row] = at
            lengths[column, row] = length
            at += length


@kernel
def _copy(data: UInt8Array, places: Int64Array, offsets: Int64Array, values: UInt8Array) -> None:
    for row in range(places.shape[0]):
        length = offsets[row + 1] - offsets[row]
        values[offsets[row] : offsets[row + 1]] = data[places[row] : places[row] + length]


def texts_of(data: UInt8Array, places: Int64Array, lengths: Int64Array) -> pa.Array:
    """Return the values of a column as bytes."""
    is_null = lengths == NULL
    offsets = np.concatenate(([0], np.cumsum(np.where(is_null, 0, lengths))))
    values = np.empty(int(offsets[-1]), dtype=np.uint8)
    _copy(data, places, offsets, values)
    bitmap = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None
    is_large = offsets[-1] > np.iinfo(np.int32).max
    stored = offsets if is_large else offsets.astype(np.int32)
    data_type = pa.large_binary() if is_large else pa.binary()
    return pa.Array.from_buffers(data_type, len(places), [bitmap, pa.py_buffer(stored), pa.py_buffer(values)])


def arrow_array(texts: pa.Array, data_type: pa.DataType, column: str) -> pa.Array:
    """Return the values of a column, which MySQL has sent as texts, by their type."""
    types = pa.types
    if types.is_binary(data_type):
        return texts.cast(data_type)
    strings = texts.view(pa.string() if types.is_binary(texts.type) else pa.large_string())
    if types.is_string(data_type):
        return strings.cast(data_type)
    try:
        if types.is_timestamp(data_type):
            naive = _cast(strings, pa.timestamp("us"))
            return naive.cast(data_type) if data_type.tz is None else pc.assume_timezone(naive, "UTC")
        if types.is_floating(data_type):
            return pc.cast(pc.cast(strings, pa.float64()), data_type, safe=False)
        return _cast(strings, data_type)
    except pa.ArrowInvalid:
        raise UnsupportedValueError(
            f"A value of the column {column!r} cannot be read as {data_type}, such as a date of zeros: "
            f"make a view that replaces it, for example by NULL, and name the view."
        ) from None


def _cast(strings: pa.Array, data_type: pa.DataType) -> Any:
    return pc.cast(strings, data_type)
