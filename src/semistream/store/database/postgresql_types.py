"""Which Arrow type a column of PostgreSQL has, and what is selected for it."""

from __future__ import annotations

import pyarrow as pa

from semistream.core.errors import UnsupportedValueError

_PLAIN: dict[str, tuple[pa.DataType, str]] = {
    "bool": (pa.bool_(), "{}::bool"),
    "int2": (pa.int16(), "{}::int2"),
    "int4": (pa.int32(), "{}::int4"),
    "int8": (pa.int64(), "{}::int8"),
    "oid": (pa.int64(), "{}::int8"),
    "float4": (pa.float32(), "{}::float4"),
    "float8": (pa.float64(), "{}::float8"),
    "text": (pa.string(), "{}::text"),
    "varchar": (pa.string(), "{}::text"),
    "bpchar": (pa.string(), "{}"),
    "name": (pa.string(), "{}::text"),
    "bytea": (pa.binary(), "{}::bytea"),
    "date": (pa.date32(), "{}::date"),
    "time": (pa.time64("us"), "{}::time"),
    "timestamp": (pa.timestamp("us"), "{}::timestamp"),
    "timestamptz": (pa.timestamp("us", "UTC"), "{}::timestamptz"),
}
_MAX_DIGITS = 38
_FREE_SCALE = 18
_HEADER = 4


def arrow_type(column: str, type_name: str, modifier: int) -> tuple[pa.DataType, str]:
    """Return the Arrow type of a column and the SQL that selects it; a type without a counterpart is read as text."""
    if type_name == "numeric":
        return _decimal(column, modifier), "{}::numeric::text"
    return _PLAIN.get(type_name, (pa.string(), "{}::text"))


def _decimal(column: str, modifier: int) -> pa.DataType:
    if modifier < _HEADER:
        return pa.decimal128(_MAX_DIGITS, _FREE_SCALE)
    digits, scale = (modifier - _HEADER) >> 16 & 0xFFFF, (modifier - _HEADER) & 0x7FF
    scale = (scale ^ 1024) - 1024
    # PostgreSQL knows scales below 0 and above the number of digits, which Spark does not.
    digits, scale = (digits - scale, 0) if scale < 0 else (max(digits, scale), scale)
    if digits > _MAX_DIGITS:
        raise UnsupportedValueError(
            f"The column {column!r} is numeric with {digits} digits, and Arrow and Spark have at most {_MAX_DIGITS}: "
            f"make a view that casts it or leaves it out, and name the view."
        )
    return pa.decimal128(digits, scale)
