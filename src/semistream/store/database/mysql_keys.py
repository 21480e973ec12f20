"""How keys are told to MySQL and MariaDB: as numbers, moments and hexadecimal bytes, never as quoted text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import BoolArray, Int64Array
from semistream.store.database.contract import Column
from semistream.store.database.key_values import plain_values, possible_rows

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Of dates, from 1970 on: those of the years 1 to 9999."""
_DAY_MICROSECONDS = 86_400_000_000
_MAX_KEY_BYTES = 65_535 * 4
"""No column that can have an index holds more, in any character set."""
_TEXTS = ("char", "varchar")
_OTHERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "date", "datetime", "timestamp")
_BYTES = ("binary", "varbinary")
_NAME = re.compile(r"[a-zA-Z0-9_]+")


def within(key: pa.DataType, codes: Int64Array) -> Int64Array:
    """Return the codes that a value of the database may have."""
    if pa.types.is_integer(key):
        return codes
    first, last = _ends(key)
    kept: Int64Array = codes[(codes >= first) & (codes <= last)]
    return kept


def parameters(key: pa.DataType, codes: Int64Array) -> list[Any]:
    """Return codes as values of the key; those that no value has are brought to the nearest."""
    if pa.types.is_integer(key):
        return list(codes.tolist())
    clipped = np.clip(codes, *_ends(key))
    if pa.types.is_date(key):
        return list(np.datetime_as_string(clipped.astype("M8[D]")).tolist())
    return [text.replace("T", " ") for text in np.datetime_as_string(clipped.astype("M8[us]")).tolist()]


def can_be_asked(column: Column) -> bool:
    """Say whether values of a column can be asked for: those of types that are compared exactly, or byte by byte."""
    declared = _NAME.match(column.declared.lower())
    name = declared.group() if declared else ""
    if name in _TEXTS:
        return column.collation is not None and all(_NAME.fullmatch(part) for part in column.collation)
    return name in _OTHERS or name in _BYTES


def condition(column: Column, master: str, asked: str) -> str:
    """Return the SQL that compares a column with a value that is asked for.

    The first comparison is one that an index knows; a collation may call texts equal that are not, ignoring capitals
    or spaces at the end.
    """
    if not pa.types.is_string(column.type):
        return f"{master} = {asked}"
    assert column.collation is not None
    character_set, collation = column.collation
    return (
        f"{master} = CONVERT({asked} USING {character_set}) COLLATE {collation} "
        f"AND CAST(CONVERT({master} USING utf8mb4) AS BINARY) = CAST({asked} AS BINARY)"
    )


def literals(keys: Sequence[Column], values: Sequence[pa.Array]) -> list[list[str]]:
    """Return the literals of each column; keys that no row of the database can have are left out."""
    plain = [plain_values(column, key.type) for key, column in zip(keys, values, strict=True)]
    plain = possible_rows(plain, [_possible(key.type, column) for key, column in zip(keys, plain, strict=True)])
    return [_literals(key.type, column) for key, column in zip(keys, plain, strict=True)]


def _literals(key: pa.DataType, values: pa.Array) -> list[str]:
    types = pa.types
    if types.is_string(key):
        return [f"_utf8mb4 x'{value.encode().hex()}'" for value in values.to_pylist()]
    if types.is_binary(key):
        return [f"x'{value.hex()}'" for value in values.to_pylist()]
    if types.is_decimal(key):
        return [format(value, "f") for value in values.to_pylist()]
    written = parameters(key, values.to_numpy(zero_copy_only=False))
    if types.is_integer(key):
        return [str(value) for value in written]
    kind = "DATE" if types.is_date(key) else "TIMESTAMP"
    return [f"{kind}'{value}'" for value in written]


def _possible(key: pa.DataType, values: pa.Array) -> BoolArray | None:
    if pa.types.is_string(key) or pa.types.is_binary(key):
        short: BoolArray = pc.less_equal(pc.binary_length(values), _MAX_KEY_BYTES).to_numpy(zero_copy_only=False)
        return short
    if not (pa.types.is_date(key) or pa.types.is_timestamp(key)):
        return None
    codes = values.to_numpy(zero_copy_only=False)
    first, last = _ends(key)
    possible: BoolArray = (codes >= first) & (codes <= last)
    return possible


def _ends(key: pa.DataType) -> tuple[int, int]:
    if pa.types.is_date(key):
        return _FIRST_DAY, _LAST_DAY
    return _FIRST_DAY * _DAY_MICROSECONDS, (_LAST_DAY + 1) * _DAY_MICROSECONDS - 1
