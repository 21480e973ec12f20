"""Tells how much memory the values of an Arrow column take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_NO_OFFSETS = np.zeros(1, dtype=np.int32)


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


def offsets_of(column: pa.Array) -> Any:
    """Return where the values of a column of strings or bytes begin and end, one number more than there are values."""
    buffer = column.buffers()[1]
    if buffer is None:
        return _NO_OFFSETS
    types = pa.types
    is_large = types.is_large_string(column.type) or types.is_large_binary(column.type)
    return np.frombuffer(buffer, dtype=np.int64 if is_large else np.int32)[column.offset :]
