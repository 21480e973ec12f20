"""How key codes are told to PostgreSQL: always as bound parameters, from which SQL makes dates and timestamps."""

from __future__ import annotations

from typing import LiteralString

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array

_DAY_MICROSECONDS = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -2_440_588, 2_145_042_905
"""Of dates, from 1970 on."""
_LARGEST = np.iinfo(np.int64).max


def bound(key: pa.DataType) -> LiteralString:
    """Return the SQL of one end of a range."""
    if pa.types.is_date(key):
        return "(DATE '1970-01-01' + %s::int4)"
    if pa.types.is_timestamp(key):
        kind: LiteralString = "TIMESTAMPTZ '1970-01-01 00:00:00+00'" if key.tz else "TIMESTAMP '1970-01-01'"
        return "(" + kind + " + %s::int4 * INTERVAL '1 day' + %s::int8 * INTERVAL '1 microsecond')"
    return "%s::int8"


def array(key: pa.DataType) -> LiteralString:
    """Return the SQL of an array of keys."""
    if pa.types.is_date(key):
        return "ARRAY(SELECT DATE '1970-01-01' + day FROM unnest(%s::int4[]) AS days(day))"
    if pa.types.is_timestamp(key):
        kind: LiteralString = "TIMESTAMPTZ '1970-01-01 00:00:00+00'" if key.tz else "TIMESTAMP '1970-01-01'"
        return (
            "ARRAY(SELECT " + kind + " + day * INTERVAL '1 day' + rest * INTERVAL '1 microsecond' "
            "FROM unnest(%s::int4[], %s::int8[]) AS moments(day, rest))"
        )
    return "%s::int8[]"


def within(key: pa.DataType, codes: Int64Array) -> Int64Array:
    """Return the codes that a value of the database may have."""
    if pa.types.is_integer(key):
        return codes
    first, last = _ends(key)
    kept: Int64Array = codes[(codes >= first) & (codes <= last)]
    return kept


def parameters(key: pa.DataType, codes: Int64Array) -> Int64Array:
    """Return the parameters of each code, a row a code; codes that no value has are brought to the nearest."""
    if pa.types.is_integer(key):
        return codes.reshape(-1, 1)
    clipped = np.clip(codes, *_ends(key))
    if pa.types.is_date(key):
        return clipped.reshape(-1, 1)
    days, rest = np.divmod(clipped, _DAY_MICROSECONDS)
    return np.stack([days, rest], axis=1)


def _ends(key: pa.DataType) -> tuple[int, int]:
    if pa.types.is_date(key):
        return _FIRST_DAY, _LAST_DAY
    return _FIRST_DAY * _DAY_MICROSECONDS, _LARGEST
