"""Tells by an Arrow type how much memory a value takes."""

from __future__ import annotations

import pyarrow as pa


def fixed_width(data_type: pa.DataType) -> int | None:
    """Return the bytes of a value if all values of the type take as many, else None; a boolean counts as a byte."""
    if pa.types.is_boolean(data_type):
        return 1
    if pa.types.is_dictionary(data_type) or pa.types.is_nested(data_type) or pa.types.is_null(data_type):
        return None
    try:
        return int(data_type.bit_width // 8) or None
    except ValueError:
        return None


def is_bytes(data_type: pa.DataType) -> bool:
    """Say whether values of the type are plain runs of bytes."""
    types = pa.types
    return bool(
        types.is_string(data_type)
        or types.is_binary(data_type)
        or types.is_large_string(data_type)
        or types.is_large_binary(data_type)
    )
