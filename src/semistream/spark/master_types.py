"""Says how the columns of a Spark DataFrame are stored in a master table, and which ones cannot be."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from semistream.core.errors import InvalidSettingError, KeyTypeError

_NAMES = """
    BooleanType ByteType ShortType IntegerType LongType FloatType DoubleType DecimalType StringType BinaryType DateType
    TimestampType TimestampNTZType DayTimeIntervalType TimeType NullType
"""
# Some are younger than the oldest Spark that is supported.
_SIMPLE_TYPES: tuple[type[DataType], ...] = tuple(
    getattr(spark_types, name) for name in _NAMES.split() if hasattr(spark_types, name)
)
_PLAIN_COLLATION = "UTF8_BINARY"


def arrow_schema(schema: StructType, key: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of stored rows, or raise an error for a column that cannot be stored or be a key.

    Timestamps are in UTC whatever the zone of the session. What is nested may be null, because Spark's sources differ
    in what they promise there.
    """
    for field in schema:
        if field.name in key and _is_collated(field.dataType):
            raise KeyTypeError(
                f"The key column {field.name!r} is {field.dataType.simpleString()}, but keys are compared by their "
                f"bytes: cast it to STRING COLLATE {_PLAIN_COLLATION}."
            )
    stored = StructType(
        [StructField(field.name, _stored(field.name, field.dataType), field.nullable) for field in schema]
    )
    # Up to Spark 4.1 UTC is what it does without being told.
    options: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    schema_of_table: pa.Schema = to_arrow_schema(stored, **options)
    return schema_of_table.remove_metadata()


def code_expression(data_type: DataType) -> str | None:
    """Return the SQL of the code of a key that is this column alone, `{}` standing for it, or None if there is none.

    It gives what KeyCodec gives, but rows need not go through Python for it.
    """
    if isinstance(data_type, IntegralType):
        return "CAST({} AS BIGINT)"
    if isinstance(data_type, DateType):
        return "CAST(unix_date({}) AS BIGINT)"
    if isinstance(data_type, TimestampType):
        return "unix_micros({})"
    return None


def is_orderable(data_type: DataType) -> bool:
    """Say whether Spark can sort by a column of this type."""
    if isinstance(data_type, StructType):
        return all(is_orderable(field.dataType) for field in data_type)
    if isinstance(data_type, ArrayType):
        return is_orderable(data_type.elementType)
    return not isinstance(data_type, MapType)


def _stored(column: str, data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType([StructField(field.name, _stored(column, field.dataType)) for field in data_type])
    if isinstance(data_type, ArrayType):
        return ArrayType(_stored(column, data_type.elementType))
    if isinstance(data_type, MapType):
        return MapType(_stored(column, data_type.keyType), _stored(column, data_type.valueType))
    if isinstance(data_type, StringType):
        return StringType()
    if isinstance(data_type, _SIMPLE_TYPES):
        return data_type
    raise InvalidSettingError(
        f"The column {column!r} has the type {data_type.simpleString()}, which a master table cannot hold: "
        f"cast it or leave it out."
    )


def _is_collated(data_type: DataType) -> bool:
    return isinstance(data_type, StringType) and getattr(data_type, "collation", _PLAIN_COLLATION) != _PLAIN_COLLATION
