"""Values of key columns as queries ask for them: brought to one type of each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import BoolArray

_CANONICAL_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


def plain_values(values: pa.Array, master_type: pa.DataType) -> pa.Array:
    """Return values of the stream's type as integers of 64 bits, days, microseconds, or plain texts, bytes, decimals.

    Values that a codec calls usable lose nothing by it.
    """
    types = pa.types
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if types.is_integer(master_type):
        return values.cast(pa.int64(), safe=False)
    if types.is_date(master_type):
        return values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    if types.is_timestamp(master_type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    if types.is_decimal(master_type):
        return values.cast(pa.decimal128(38, master_type.scale), safe=False)
    return values.cast(master_type)


def can_be_uuids(values: pa.Array) -> BoolArray:
    """Say which texts are written as the database writes a uuid; no other text equals one byte for byte."""
    found: BoolArray = pc.match_substring_regex(values, _CANONICAL_UUID).to_numpy(zero_copy_only=False)
    return found


def without_nul(values: pa.Array) -> BoolArray:
    """Say which texts have no character 0, which PostgreSQL does not store."""
    found: BoolArray = ~pc.match_substring(values, "\0").to_numpy(zero_copy_only=False).astype(np.bool_)
    return found


def possible_rows(columns: Sequence[pa.Array], masks: Sequence[BoolArray | None]) -> list[pa.Array]:
    """Return the rows of columns that no mask excludes."""
    kept: BoolArray | None = None
    for mask in masks:
        if mask is not None:
            kept = mask if kept is None else kept & mask
    if kept is None or kept.all():
        return list(columns)
    return [column.filter(pa.array(kept)) for column in columns]


Values = Callable[[pa.Array], list[list[Any]]]
"""Turns plain values into the parameters of a query, one list for each that a value has."""
