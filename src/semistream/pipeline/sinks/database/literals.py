"""Columns of Arrow as texts that databases read, made without a loop over rows."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.errors import UnsupportedValueError

_DIGITS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)
_FIRST_DAY = (datetime.date(1, 1, 1) - datetime.date(1970, 1, 1)).days
_DAY_MICROSECONDS = 86_400_000_000


def plain_text(name: str, column: pa.Array) -> pa.Array:
    """Return numbers, booleans, dates and times as texts; times are those of UTC."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.timestamp("us"))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        # As numbers, since Python has no day outside of these years.
        is_day = pa.types.is_date32(kind)
        first = pc.min(column.cast(pa.int32() if is_day else pa.int64())).as_py()
        if first is not None and first < _FIRST_DAY * (1 if is_day else _DAY_MICROSECONDS):
            raise UnsupportedValueError(
                f"A value of the column {name!r} is before the year 1, which the database cannot hold: leave such rows "
                f"out by a filter."
            )
    return column.cast(pa.string())


def hexadecimal(column: pa.Array) -> pa.Array:
    """Return texts or bytes as hexadecimal digits; a null becomes an empty text."""
    values = column.cast(pa.large_binary()).fill_null(b"")
    _, offsets_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    digits = _DIGITS[data[offsets[0] : offsets[-1]]]
    places = np.ascontiguousarray((offsets - offsets[0]) * 2)
    texts = pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(places), pa.py_buffer(digits.tobytes()))
    return texts.cast(pa.string())


def check_finite(name: str, column: pa.Array) -> None:
    """Raise UnsupportedValueError if a column has NaN or an infinity."""
    if pc.all(pc.is_finite(column)).as_py() is False:
        raise UnsupportedValueError(
            f"A value of the column {name!r} is NaN or infinite, which the database cannot hold: replace it in "
            f"[[transform]]."
        )


def check_no_nul(name: str, column: pa.Array) -> None:
    """Raise UnsupportedValueError if a text has the character NUL."""
    if pc.any(pc.match_substring(column, "\0")).as_py():
        raise UnsupportedValueError(
            f"A text of the column {name!r} has the character NUL, which the database cannot hold: remove it in "
            f"[[transform]], as by replace({name}, char(0), '')."
        )
