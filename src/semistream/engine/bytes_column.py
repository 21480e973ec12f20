"""One column of strings or bytes in slots that are reused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.core.memory_copy import copy_bytes


class BytesColumn:
    """Strings or bytes by slot number, in a heap of about `limit_bytes` that is compacted when it is full.

    Values are appended to the heap; what a slot held before is garbage until the next compaction. A value that does
    not fit even then makes the heap grow: who puts values in must keep to `has_room`.
    """

    SLOT_BYTES = 12

    def __init__(self, data_type: pa.DataType, slots: int, limit_bytes: int) -> None:
        self._type = data_type
        large = pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type)
        self._offset_type = np.int64 if large else np.int32
        self._limit_bytes = limit_bytes
        self._heap = np.empty(max(64, limit_bytes), dtype=np.uint8)
        self._used = 0
        self._live_bytes = 0
        self._starts = np.zeros(slots, dtype=np.int64)
        self._lengths = np.full(slots, _EMPTY, dtype=np.int32)

    def has_room(self, extra_bytes: int) -> bool:
        """Say whether values of this size fit the limit."""
        return self._live_bytes + extra_bytes <= self._limit_bytes

    def put(self, slots: Int64Array, column: pa.Array, rows: Int64Array) -> None:
        """Write the values at some rows of a column into slots."""
        offsets = np.frombuffer(column.buffers()[1], dtype=self._offset_type)[column.offset :]
        data = column.buffers()[2]
        values = np.frombuffer(data, dtype=np.uint8) if data is not None else _NOTHING
        self.drop(slots)
        extra = int(_total(offsets, rows))
        if self._used + extra > len(self._heap):
            self._compact(extra)
        _append(self._heap, self._used, self._starts, self._lengths, slots, values, offsets, rows)
        self._used += extra
        self._live_bytes += extra
        if column.null_count:
            null = column.is_null().to_numpy(zero_copy_only=False)[rows]
            self._live_bytes -= int(self._lengths[slots[null]].sum())
            self._lengths[slots[null]] = _NULL

    def take(self, slots: Int64Array) -> pa.Array:
        """Return the values of slots."""
        offsets = np.zeros(len(slots) + 1, dtype=self._offset_type)
        total, nulls = _offsets(self._lengths, slots, offsets)
        data = np.empty(total, dtype=np.uint8)
        _copy(self._heap, self._starts, slots, offsets, data)
        mask = None
        if nulls:
            mask = pa.py_buffer(np.packbits(self._lengths[slots] != _NULL, bitorder="little"))
        return pa.Array.from_buffers(self._type, len(slots), [mask, pa.py_buffer(offsets), pa.py_buffer(data)])

    @property
    def parts(self) -> tuple[UInt8Array, Int64Array, Int32Array]:
        """The heap, and of each slot where its value starts in it and how long it is: -1 if it is null."""
        return self._heap, self._starts, self._lengths

    def drop(self, slots: Int64Array) -> None:
        """Forget the values of slots."""
        self._live_bytes -= _forget(self._lengths, slots)

    def renumber(self, kept: Int64Array) -> None:
        """Keep only these slots, numbered in this order."""
        self._starts, self._lengths = self._starts[kept], self._lengths[kept]

    def _compact(self, extra: int) -> None:
        live = np.flatnonzero(self._lengths > 0)
        live = live[np.argsort(self._starts[live], kind="stable")]
        heap = self._heap
        if self._live_bytes + extra > len(heap):
            heap = np.empty(int(1.25 * (self._live_bytes + extra)), dtype=np.uint8)
        self._used = int(_move(self._heap, heap, self._starts, self._lengths, live))
        self._heap = heap

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        assert self._live_bytes == int(self._lengths[self._lengths > 0].sum())
        assert self._live_bytes <= self._used <= len(self._heap)


_EMPTY = -2
_NULL = -1
_NOTHING = np.empty(0, dtype=np.uint8)


@kernel
def _total(offsets: Any, rows: Int64Array) -> Any:
    total = np.int64(0)
    for index in range(rows.shape[0]):
        total += np.int64(offsets[rows[index] + 1]) - np.int64(offsets[rows[index]])
    return total


@kernel
def _append(
    heap: UInt8Array,
    used: Any,
    starts: Int64Array,
    lengths: Int32Array,
    slots: Int64Array,
    values: UInt8Array,
    offsets: Any,
    rows: Int64Array,
) -> None:
    for index in range(slots.shape[0]):
        first = np.int64(offsets[rows[index]])
        length = np.int64(offsets[rows[index] + 1]) - first
        copy_bytes(heap, used, values, first, length)
        starts[slots[index]] = used
        lengths[slots[index]] = length
        used += length


@kernel
def _offsets(lengths: Int32Array, slots: Int64Array, offsets: Any) -> tuple[Any, int]:
    total = np.int64(0)
    nulls = 0
    for index in range(slots.shape[0]):
        length = lengths[slots[index]]
        if length > 0:
            total += length
        elif length == _NULL:
            nulls += 1
        offsets[index + 1] = total
    return total, nulls


@kernel
def _copy(heap: UInt8Array, starts: Int64Array, slots: Int64Array, offsets: Any, data: UInt8Array) -> None:
    for index in range(slots.shape[0]):
        first = np.int64(offsets[index])
        copy_bytes(data, first, heap, starts[slots[index]], np.int64(offsets[index + 1]) - first)


@kernel
def _forget(lengths: Int32Array, slots: Int64Array) -> int:
    freed = 0
    for index in range(slots.shape[0]):
        if lengths[slots[index]] > 0:
            freed += lengths[slots[index]]
        lengths[slots[index]] = _EMPTY
    return freed


@kernel
def _move(old: UInt8Array, new: UInt8Array, starts: Int64Array, lengths: Int32Array, live: Int64Array) -> int:
    # In order of place, so that moving down inside one heap never overwrites what is still to be moved.
    used = 0
    for index in range(live.shape[0]):
        slot = live[index]
        start = starts[slot]
        for byte in range(lengths[slot]):  # not a block copy: inside one heap the two may overlap
            new[used + byte] = old[start + byte]
        starts[slot] = used
        used += lengths[slot]
    return used
