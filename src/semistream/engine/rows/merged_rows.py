"""Gathers master rows of which some are cached and some were just found, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.arrow_row_sizes import row_bytes
from semistream.core.compile import kernel
from semistream.core.memory_copy import copy_bytes
from semistream.engine.rows.bytes_column import BytesColumn
from semistream.engine.rows.fixed_column import FixedColumn
from semistream.engine.rows.slot_rows import SlotRows
from semistream.store.found_rows import ByteValues, FixedValues, FoundColumn

NOWHERE = -1
"""The place of a row that does not exist: its columns are null."""
_FIRST_FOUND = -2
_SLOTS_AT_ONCE = 1024
_NO_BYTES = np.empty(0, dtype=np.uint8)
_NO_STARTS = np.empty(0, dtype=np.int64)
_NO_LENGTHS = np.empty(0, dtype=np.int32)


def found_place(rows: Any) -> Any:
    """Return the place of rows that were found, by their number; the next row has the place below."""
    return _FIRST_FOUND - rows


class MergedRows:
    """The rows of a cache and rows that were found beside it, each by its place.

    A place is a slot of the cache, NOWHERE, or what `found_place` says. Each column is gathered by one loop from both.
    """

    def __init__(self, schema: pa.Schema, cached: SlotRows | None, found_columns: tuple[FoundColumn, ...]) -> None:
        self.schema = schema
        self._found_columns = found_columns
        self._cached = [cached.column(index) if cached is not None else None for index in range(len(schema))]
        self._slots = cached

    def take(self, places: Int64Array, columns: range | list[int] | None = None) -> list[pa.Array]:
        """Return some columns, or all of them, of the rows at these places."""
        wanted = range(len(self._found_columns)) if columns is None else columns
        return [self._column(index, places) for index in wanted]

    def variable_bytes(self, places: Int64Array) -> Int64Array | None:
        """Return what each row takes beyond values of fixed width; None if no column takes more."""
        total: Int64Array | None = None
        for index, column in enumerate(self._found_columns):
            if isinstance(column, FixedValues):
                continue
            sizes = self._sizes(index, column, places)
            total = sizes if total is None else total + sizes
        return total

    def row_bytes(self, places: Int64Array) -> Int64Array:
        """Return what each row takes."""
        variable = self.variable_bytes(places)
        fixed = np.full(len(places), self.fixed_bytes, dtype=np.int64)
        return fixed if variable is None else fixed + variable

    @property
    def fixed_bytes(self) -> int:
        """What a row takes in values of fixed width, in bits that say what is null, and in offsets."""
        return sum(column.width + 1 if isinstance(column, FixedValues) else 5 for column in self._found_columns)

    def _column(self, index: int, places: Int64Array) -> pa.Array:
        column, cached = self._found_columns[index], self._cached[index]
        data_type = self.schema.field(index).type
        if isinstance(column, FixedValues):
            assert cached is None or isinstance(cached, FixedColumn)
            return _fixed(data_type, column, cached, places)
        if isinstance(column, ByteValues):
            assert cached is None or isinstance(cached, BytesColumn)
            return _bytes(data_type, column, cached, places)
        return self._nested_column(index, column, places)

    def _sizes(self, index: int, column: FoundColumn, places: Int64Array) -> Int64Array:
        sizes = np.empty(len(places), dtype=np.int64)
        if isinstance(column, ByteValues):
            cached = self._cached[index]
            lengths = cached.parts[2] if isinstance(cached, BytesColumn) else _NO_LENGTHS
            _lengths(lengths, column.lengths, places, sizes)
            return sizes
        assert isinstance(column, pa.Array)
        sizes[places == NOWHERE] = 0
        in_found = places < NOWHERE
        if in_found.any():
            sizes[in_found] = row_bytes(column)[_FIRST_FOUND - places[in_found]]
        if self._slots is not None and (in_cache := places >= 0).any():
            slots, of_each = np.unique(places[in_cache], return_inverse=True)
            pieces = [slots[start : start + _SLOTS_AT_ONCE] for start in range(0, len(slots), _SLOTS_AT_ONCE)]
            of_slots = np.concatenate([row_bytes(self._slots.take(slots).column(index)) for slots in pieces])
            sizes[in_cache] = of_slots[of_each]
        return sizes

    def _nested_column(self, index: int, column: pa.Array, places: Int64Array) -> pa.Array:
        in_cache, in_found = places >= 0, places < NOWHERE
        order = np.zeros(len(places), dtype=np.int64)
        order[in_found] = _FIRST_FOUND - places[in_found]
        parts = [column]
        if self._slots is not None and in_cache.any():
            parts.append(self._slots.take(places[in_cache]).column(index))
            order[in_cache] = len(column) + np.arange(int(in_cache.sum()))
        indices = pa.array(order, mask=places == NOWHERE)
        return (pa.concat_arrays(parts) if len(parts) > 1 else parts[0]).take(indices)


def _fixed(data_type: pa.DataType, of_found: FixedValues, cached: FixedColumn | None, places: Int64Array) -> pa.Array:
    count, width = len(places), of_found.width
    out = np.empty(count * width, dtype=np.uint8)
    memory, place, stride = cached.memory if cached is not None else (_NO_BYTES, 0, 0)
    _gather_fixed(memory, place, stride, of_found.values, width, places, out)
    valid = np.empty(count, dtype=np.uint8)
    of_cached = cached.valid if cached is not None and cached.valid is not None else _NO_BYTES
    nulls = int(_gather_valid(of_cached, of_found.valid if of_found.valid is not None else _NO_BYTES, places, valid))
    data = np.packbits(out, bitorder="little") if pa.types.is_boolean(data_type) else out
    return pa.Array.from_buffers(data_type, count, [_bitmap(valid, nulls), pa.py_buffer(data)], nulls)


def _bytes(data_type: pa.DataType, of_found: ByteValues, cached: BytesColumn | None, places: Int64Array) -> pa.Array:
    large = pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type)
    heap, starts, lengths = cached.parts if cached is not None else (_NO_BYTES, _NO_STARTS, _NO_LENGTHS)
    offsets = np.empty(len(places) + 1, dtype=np.int64 if large else np.int32)
    valid = np.empty(len(places), dtype=np.uint8)
    total, nulls = _string_offsets(lengths, of_found.lengths, places, offsets, valid)
    data = np.empty(int(total), dtype=np.uint8)
    _copy_strings(heap, starts, of_found.heap, of_found.starts, places, offsets, data)
    buffers = [_bitmap(valid, int(nulls)), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(data_type, len(places), buffers, int(nulls))


def _bitmap(valid: UInt8Array, nulls: int) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None


@kernel
def _gather_fixed(
    memory: UInt8Array, at: int, stride: int, of_found: UInt8Array, width: int, places: Int64Array, out: UInt8Array
) -> None:
    # A copy of a size that the compiler knows is one instruction; any other is a call.
    if width == 8:
        for index in range(places.shape[0]):
            place = places[index]
            if place >= 0:
                copy_bytes(out, index * 8, memory, place * stride + at, 8)
            elif place < NOWHERE:
                copy_bytes(out, index * 8, of_found, (_FIRST_FOUND - place) * 8, 8)
            else:
                out[index * 8 : index * 8 + 8] = 0
    elif width == 4:
        for index in range(places.shape[0]):
            place = places[index]
            if place >= 0:
                copy_bytes(out, index * 4, memory, place * stride + at, 4)
            elif place < NOWHERE:
                copy_bytes(out, index * 4, of_found, (_FIRST_FOUND - place) * 4, 4)
            else:
                out[index * 4 : index * 4 + 4] = 0
    else:
        for index in range(places.shape[0]):
            place = places[index]
            if place >= 0:
                copy_bytes(out, index * width, memory, place * stride + at, width)
            elif place < NOWHERE:
                copy_bytes(out, index * width, of_found, (_FIRST_FOUND - place) * width, width)
            else:
                out[index * width : index * width + width] = 0


@kernel
def _gather_valid(cached: UInt8Array, of_found: UInt8Array, places: Int64Array, valid: UInt8Array) -> int:
    nulls = 0
    for index in range(places.shape[0]):
        place = places[index]
        is_valid = np.uint8(1)
        if place >= 0:
            if cached.shape[0]:
                is_valid = cached[place]
        elif place < NOWHERE:
            if of_found.shape[0]:
                is_valid = of_found[_FIRST_FOUND - place]
        else:
            is_valid = np.uint8(0)
        valid[index] = is_valid
        if not is_valid:
            nulls += 1
    return nulls


@kernel
def _lengths(cached: Int32Array, of_found: Int32Array, places: Int64Array, sizes: Int64Array) -> None:
    for index in range(places.shape[0]):
        place = places[index]
        length = np.int64(0)
        if place >= 0:
            length = np.int64(cached[place])
        elif place < NOWHERE:
            length = np.int64(of_found[_FIRST_FOUND - place])
        sizes[index] = max(np.int64(0), length)


@kernel
def _string_offsets(
    cached: Int32Array, of_found: Int32Array, places: Int64Array, offsets: Any, valid: UInt8Array
) -> tuple[Any, Any]:
    total = np.int64(0)
    nulls = 0
    offsets[0] = 0
    for index in range(places.shape[0]):
        place = places[index]
        length = np.int64(-1)
        if place >= 0:
            length = np.int64(cached[place])
        elif place < NOWHERE:
            length = np.int64(of_found[_FIRST_FOUND - place])
        valid[index] = length >= 0
        if length >= 0:
            total += length
        else:
            nulls += 1
        offsets[index + 1] = total
    return total, nulls


@kernel
def _copy_strings(
    heap: UInt8Array,
    starts: Int64Array,
    found_heap: UInt8Array,
    found_starts: Int64Array,
    places: Int64Array,
    offsets: Any,
    data: UInt8Array,
) -> None:
    for index in range(places.shape[0]):
        place = places[index]
        first = np.int64(offsets[index])
        size = np.int64(offsets[index + 1]) - first
        if place >= 0:
            copy_bytes(data, first, heap, starts[place], size)
        elif place < NOWHERE:
            copy_bytes(data, first, found_heap, found_starts[_FIRST_FOUND - place], size)
