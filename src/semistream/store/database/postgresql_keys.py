"""How key codes are told to PostgreSQL: always as bound parameters, from which SQL makes dates and timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.store.database.contract import Column
from semistream.store.database.key_values import can_be_uuids, plain_values, possible_rows, without_nul

_DAY_MICROSECONDS = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -2_440_588, 2_145_042_905
"""Of dates, from 1970 on."""
_LARGEST = np.iinfo(np.int64).max
_MOMENT: LiteralString = " + {0} * INTERVAL '1 day' + {1} * INTERVAL '1 microsecond'"
_ASKED: dict[str, tuple[tuple[LiteralString, ...], LiteralString]] = {
    **dict.fromkeys(("int2", "int4", "int8"), (("int8[]",), "{key} = {0}")),
    "bool": (("bool[]",), "{key} = {0}"),
    "uuid": (("uuid[]",), "{key} = {0}"),
    "bytea": (("bytea[]",), "{key} = {0}"),
    "numeric": (("numeric[]",), "{key} = {0}"),
    "date": (("int4[]",), "{key} = DATE '1970-01-01' + {0}"),
    "timestamp": (("int4[]", "int8[]"), "{key} = TIMESTAMP '1970-01-01'" + _MOMENT),
    "timestamptz": (("int4[]", "int8[]"), "{key} = TIMESTAMPTZ '1970-01-01 00:00:00+00'" + _MOMENT),
    # The first comparison is one that an index knows; a collation may call texts equal that are not.
    **dict.fromkeys(("text", "varchar"), (("text[]",), '{key} = {0} AND {key}::text COLLATE "C" = {0} COLLATE "C"')),
    # Comparisons of this type ignore spaces at the end.
    "bpchar": (
        ("text[]",),
        '{key} = {0}::bpchar AND {key}::text COLLATE "C" = rtrim({0}, \' \') COLLATE "C" '
        "AND octet_length({key}) = octet_length({0})",
    ),
}
"""How each type is asked for: the arrays of parameters, and the condition on one element of each."""


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


def can_be_asked(column: Column) -> bool:
    """Say whether values of a column can be asked for."""
    return column.declared in _ASKED


def asked(column: Column) -> tuple[tuple[LiteralString, ...], LiteralString]:
    """Return the types of the arrays that a column is asked by, and the condition on one element of each."""
    return _ASKED[column.declared]


def asked_parameters(keys: Sequence[Column], values: Sequence[pa.Array]) -> list[list[Any]]:
    """Return the arrays of all columns; keys that no row of the database can have are left out."""
    plain = [plain_values(column, key.type) for key, column in zip(keys, values, strict=True)]
    plain = possible_rows(plain, [_possible(key, column) for key, column in zip(keys, plain, strict=True)])
    lists: list[list[Any]] = []
    for key, column in zip(keys, plain, strict=True):
        if pa.types.is_date(key.type) or pa.types.is_timestamp(key.type):
            lists.extend(parameters(key.type, column.to_numpy(zero_copy_only=False)).T.tolist())
        else:
            lists.append(column.to_pylist())
    return lists


def _possible(key: Column, values: pa.Array) -> BoolArray | None:
    if key.declared == "uuid":
        return can_be_uuids(values)
    if pa.types.is_string(key.type):
        return without_nul(values)
    if pa.types.is_date(key.type) or pa.types.is_timestamp(key.type):
        first, last = _ends(key.type)
        codes: Int64Array = values.to_numpy(zero_copy_only=False)
        possible: BoolArray = (codes >= first) & (codes <= last)
        return possible
    return None


def _ends(key: pa.DataType) -> tuple[int, int]:
    if pa.types.is_date(key):
        return _FIRST_DAY, _LAST_DAY
    return _FIRST_DAY * _DAY_MICROSECONDS, _LARGEST
