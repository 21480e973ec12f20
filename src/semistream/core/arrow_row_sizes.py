"""Says how many bits each row of Arrow arrays takes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array


def row_bits(rows: pa.RecordBatch) -> Int64Array:
    """Return the bits of each row without padding; costs one pass over the offsets of variable-size columns."""
    total = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        total += _bits(column)
    return total


def row_bytes(column: pa.Array) -> Int64Array:
    """Return the bytes of each value of a column, rounded up."""
    bits = np.broadcast_to(np.asarray(_bits(column), dtype=np.int64), len(column))
    rounded: Int64Array = (bits + 7) >> 3
    return rounded


def padding_bytes(rows: pa.RecordBatch) -> int:
    """Return the most bytes by which the columns of a page exceed the bits of its rows."""
    # Each buffer is padded to 8 bytes, and a column of offsets has one offset more than rows: pad8(4n+4) <= 4n+8.
    return 8 * sum(len(column.buffers()) for column in rows.columns)


def _bits(column: pa.Array) -> Int64Array | int:
    data_type = column.type
    types = pa.types
    if isinstance(data_type, pa.BaseExtensionType):
        return _bits(column.storage)
    validity = 1 if column.null_count else 0
    if types.is_null(data_type):
        return 0
    if types.is_struct(data_type):
        return sum((_bits(column.field(child)) for child in range(data_type.num_fields)), start=validity)
    if types.is_fixed_size_list(data_type):
        size = data_type.list_size
        values = column.values.slice(column.offset * size, len(column) * size)
        inner = np.broadcast_to(_bits(values), len(values))
        summed: Int64Array = inner.reshape(len(column), size).sum(axis=1) + validity
        return summed
    if types.is_list(data_type) or types.is_large_list(data_type) or types.is_map(data_type):
        return _list_bits(column) + validity
    if types.is_string(data_type) or types.is_binary(data_type):
        return np.diff(_offsets(column, np.int32)) * 8 + 32 + validity
    if types.is_large_string(data_type) or types.is_large_binary(data_type):
        return np.diff(_offsets(column, np.int64)) * 8 + 64 + validity
    try:
        return int(data_type.bit_width) + validity
    except ValueError:
        # Unions and what later versions of Arrow may bring: every row counts the mean.
        return -(-int(column.nbytes) * 8 // max(1, len(column)))


def _list_bits(column: pa.Array) -> Int64Array:
    wide = pa.types.is_large_list(column.type)
    offsets = _offsets(column, np.int64 if wide else np.int32)
    first, last = int(offsets[0]), int(offsets[-1])
    if pa.types.is_map(column.type):
        keys, items = column.keys.slice(first, last - first), column.items.slice(first, last - first)
        inner = np.broadcast_to(_bits(keys) + _bits(items), last - first)
    else:
        inner = np.broadcast_to(_bits(column.values.slice(first, last - first)), last - first)
    running = np.concatenate(([0], np.cumsum(inner)))
    return np.diff(running[offsets - first]) + (64 if wide else 32)


def _offsets(column: pa.Array, dtype: type[np.signedinteger]) -> Int64Array:
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(len(column) + 1, dtype=np.int64)
    offsets = np.frombuffer(buffer, dtype=dtype)[column.offset : column.offset + len(column) + 1]
    return offsets.astype(np.int64)
