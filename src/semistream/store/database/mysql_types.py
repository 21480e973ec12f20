"""Which Arrow type a column of MySQL or MariaDB has, and what is selected for it."""

from __future__ import annotations

import pyarrow as pa

from semistream.core.errors import UnsupportedValueError

_MAX_DIGITS = 38
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json", "time", "inet4")
_MORE_TEXTS = ("inet6", "uuid")
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


def arrow_type(
    column: str, type_name: str, whole: str, digits: int | None, scale: int | None
) -> tuple[pa.DataType, str]:
    """Return the Arrow type of a column and the SQL that selects it; a type without a counterpart is read as bytes."""
    if type_name in _INTEGERS:
        sizes = _UNSIGNED if "unsigned" in whole else _SIGNED
        return sizes[_INTEGERS[type_name]], "{}"
    if type_name == "decimal":
        return _decimal(column, digits or 10, scale or 0), "{}"
    if type_name in _TEXTS or type_name in _MORE_TEXTS:
        return pa.string(), "{}"
    match type_name:
        case "float":
            return pa.float32(), "{} * 1e0"  # alone it would come with six digits
        case "double":
            return pa.float64(), "{}"
        case "bit":
            return pa.uint64(), "{} + 0"
        case "year":
            return pa.int16(), "{}"
        case "date":
            return pa.date32(), "{}"
        case "datetime":
            return pa.timestamp("us"), "{}"
        case "timestamp":
            return pa.timestamp("us", "UTC"), "{}"
        case _:
            return pa.binary(), "{}"


def _decimal(column: str, digits: int, scale: int) -> pa.DataType:
    if digits > _MAX_DIGITS:
        raise UnsupportedValueError(
            f"The column {column!r} is decimal with {digits} digits, and Arrow and Spark have at most {_MAX_DIGITS}: "
            f"make a view that casts it or leaves it out, and name the view."
        )
    return pa.decimal128(digits, scale)
