"""Brings Arrow columns to types that can be cut and taken row by row: no dictionaries, runs or views."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import Int64Array
from semistream.core.arrow_row_sizes import row_bits
from semistream.core.errors import InvalidSettingError


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types."""
    fields = [field.with_type(plain_type(field.type)) for field in schema]
    return pa.schema(fields, metadata=schema.metadata)


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of the same values without dictionaries, runs and views, also inside nested types."""
    types = pa.types
    if isinstance(data_type, pa.BaseExtensionType):
        return data_type
    if types.is_dictionary(data_type) or types.is_run_end_encoded(data_type):
        return plain_type(data_type.value_type)
    if types.is_string_view(data_type):
        return pa.string()
    if types.is_binary_view(data_type):
        return pa.binary()
    if types.is_map(data_type):
        return pa.map_(_plain_field(data_type.key_field), _plain_field(data_type.item_field), data_type.keys_sorted)
    if types.is_struct(data_type):
        return pa.struct([_plain_field(data_type.field(child)) for child in range(data_type.num_fields)])
    if types.is_fixed_size_list(data_type):
        return pa.list_(_plain_field(data_type.value_field), data_type.list_size)
    if types.is_list(data_type) or types.is_list_view(data_type):
        return pa.list_(_plain_field(data_type.value_field))
    if types.is_large_list(data_type) or types.is_large_list_view(data_type):
        return pa.large_list(_plain_field(data_type.value_field))
    return data_type


def plain_column(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return a column in its plain type; raises pyarrow.ArrowException where Arrow has no such cast."""
    types, kind = pa.types, column.type
    if kind == data_type:
        return column
    if types.is_run_end_encoded(kind):
        return plain_column(pc.run_end_decode(column), data_type)
    if types.is_dictionary(kind):
        return plain_column(column.dictionary_decode(), data_type)
    # Arrow's own cast of list views makes offsets that are wrong, so that whatever holds them is taken apart here.
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return _as_list(column, data_type, column.sizes.to_numpy())
    if types.is_struct(kind):
        fields = list(data_type)
        children = [plain_column(column.field(at), field.type) for at, field in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
    if types.is_list(kind) or types.is_large_list(kind):
        return _as_list(column, data_type, np.diff(column.offsets.to_numpy()))
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        values = plain_column(column.values.slice(column.offset * size, len(column) * size), data_type.value_type)
        return pa.FixedSizeListArray.from_arrays(values, type=data_type, mask=column.is_null())
    if types.is_map(kind):
        return _as_map(column, data_type)
    return column.cast(data_type)


def _as_list(column: pa.Array, data_type: pa.DataType, sizes: Int64Array) -> pa.Array:
    """Return lists of these sizes as lists of plain values; what the size of a null is does not matter."""
    nulls = column.is_null()
    offsets = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(np.where(nulls.to_numpy(zero_copy_only=False), 0, sizes), out=offsets[1:])
    is_large = pa.types.is_large_list(data_type)
    kind = pa.LargeListArray if is_large else pa.ListArray
    places = pa.array(offsets, pa.int64()).cast(pa.int64() if is_large else pa.int32())
    return kind.from_arrays(places, plain_column(column.flatten(), data_type.value_type), type=data_type, mask=nulls)


def _as_map(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return maps with plain keys and items, which lie in one piece from the first map to the last."""
    offsets = column.offsets.to_numpy()
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys = plain_column(column.keys.slice(first, count), data_type.key_type)
    items = plain_column(column.items.slice(first, count), data_type.item_type)
    return pa.MapArray.from_arrays(pa.array(offsets - first), keys, items, type=data_type, mask=column.is_null())


def plain_batches(batch: pa.RecordBatch, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch with plain types, in pieces that take at most `max_bytes` unless they are one row.

    A batch of plain types is passed on whole: its bytes are there already, while those of a dictionary's values are
    made here, and may be far more than the batch had.
    """
    schema = plain_schema(batch.schema)
    if schema.equals(batch.schema):
        yield batch
        return
    changed = [at for at, field in enumerate(batch.schema) if field.type != schema.field(at).type]
    sums = np.cumsum(row_bits(batch.select(changed)))
    if not batch.num_rows:
        yield _retyped(batch, schema)
    start = 0
    while start < batch.num_rows:
        before = int(sums[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(sums, before + 8 * max_bytes, side="right")))
        yield _retyped(batch.slice(start, end - start), schema)
        start = end


def _retyped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field, column in zip(schema, batch.columns, strict=True):
        try:
            columns.append(plain_column(column, field.type))
        except pa.ArrowException:
            raise InvalidSettingError(
                f"The column {field.name!r} is {column.type}, which Arrow cannot turn into {field.type}: "
                f"cast it, or leave it out."
            ) from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))
