"""Says which Spark type shows a column of a master table exactly, or why none does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from semistream.core.errors import SemistreamError

_MAX_DIGITS = 38
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


def spark_type(column: str, data_type: pa.DataType) -> Any:
    """Return the Spark type, or raise an error in one sentence; Arrow casts every value to it without loss.

    Unsigned integers become the next wider type, as when Spark reads them from Parquet files.
    """
    why = "which Spark does not have"
    try:
        return from_arrow_type(_exact(data_type))
    except _NotExactError as error:
        why = str(error)
    except Exception:  # Spark's errors about types have no base in common
        pass
    raise SemistreamError(
        f"The master table's column {column!r} is {data_type}, {why}: leave it out of `columns`, or cast it and build "
        f"the table again."
    )


class _NotExactError(Exception):
    """Spark's nearest type does not hold all values of another one."""


def _exact(data_type: pa.DataType) -> pa.DataType:
    """Return a type that Spark has and that holds all values of another one."""
    types = pa.types
    is_time = types.is_timestamp(data_type) or types.is_duration(data_type) or types.is_time64(data_type)
    if is_time and data_type.unit == "ns":
        raise _NotExactError("but Spark's times end at microseconds")
    if types.is_decimal(data_type):
        scale = max(0, data_type.scale)
        digits = max(scale, data_type.precision + scale - data_type.scale)
        if digits > _MAX_DIGITS:
            raise _NotExactError(f"but Spark's decimals have at most {_MAX_DIGITS} digits")
        return pa.decimal128(digits, scale)
    if types.is_list(data_type) or types.is_large_list(data_type) or types.is_fixed_size_list(data_type):
        return pa.list_(data_type.value_field.with_type(_exact(data_type.value_type)))
    if types.is_map(data_type):
        keys, items = _exact(data_type.key_type), _exact(data_type.item_type)
        return pa.map_(data_type.key_field.with_type(keys), data_type.item_field.with_type(items))
    if types.is_struct(data_type):
        return pa.struct([field.with_type(_exact(field.type)) for field in data_type])
    return pa.time64("us") if types.is_time32(data_type) else _WIDER.get(data_type, data_type)
