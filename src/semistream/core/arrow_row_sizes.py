"""Says how many bits each row of Arrow arrays takes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array


def row_bits(rows: pa.RecordBatch) -> Int64Array:
    """Return the bits of each row without padding; costs one pass over the offsets of variable-size columns.

    Values of dictionaries, runs and views count as often as rows have them, as if each row stood alone.
    """
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
    encoded = _encoded_bits(column)
    if encoded is not None:
        return encoded + validity
    try:
        return int(data_type.bit_width) + validity
    except ValueError:
        # Unions and what later versions of Arrow may bring: every row counts the mean.
        return -(-int(column.nbytes) * 8 // max(1, len(column)))


def _encoded_bits(column: pa.Array) -> Int64Array | None:
    """Return the bits of values that rows share or point to, or None if each row has its own."""
    types, data_type, count = pa.types, column.type, len(column)
    if types.is_dictionary(data_type):
        values = column.dictionary
        of_null = np.broadcast_to(_bits(pa.nulls(1, values.type)), 1) - 1
        of_values = np.concatenate([np.broadcast_to(_bits(values), len(values)), of_null])
        indices = column.indices.cast(pa.int64()).fill_null(len(values)).to_numpy(zero_copy_only=False)
        sizes: Int64Array = of_values[indices]
        return sizes
    if types.is_run_end_encoded(data_type):
        ends = column.run_ends.to_numpy().astype(np.int64)
        runs = np.searchsorted(ends, np.arange(count) + column.offset, side="right")
        of_run: Int64Array = np.broadcast_to(_bits(column.values), len(column.values))[runs]
        return of_run
    if types.is_string_view(data_type) or types.is_binary_view(data_type):
        buffer = column.buffers()[1]
        if buffer is None or not count:
            return np.zeros(count, dtype=np.int64)
        # A view is four words: its length, then its bytes or where they are; of a null it may be anything.
        lengths = np.frombuffer(buffer, dtype=np.int32)[4 * column.offset :: 4][:count].astype(np.int64)
        return np.where(_is_valid(column), lengths, 0) * 8 + 32
    if types.is_list_view(data_type) or types.is_large_list_view(data_type):
        wide = types.is_large_list_view(data_type)
        offsets, sizes = column.offsets.to_numpy().astype(np.int64), column.sizes.to_numpy().astype(np.int64)
        valid = _is_valid(column)
        offsets, sizes = np.where(valid, offsets, 0), np.where(valid, sizes, 0)
        inner = np.broadcast_to(_bits(column.values), len(column.values))
        running = np.concatenate(([0], np.cumsum(inner)))
        of_list: Int64Array = running[offsets + sizes] - running[offsets] + (64 if wide else 32)
        return of_list
    return None


def _is_valid(column: pa.Array) -> BoolArray:
    valid: BoolArray = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


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
