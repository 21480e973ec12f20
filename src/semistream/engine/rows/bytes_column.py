"""Columns of strings or bytes in slots that are reused, in one heap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.core.memory_copy import copy_bytes
from semistream.core.value_widths import offsets_of


class BytesHeap:
    """The bytes of numbered values, in memory of `size_bytes` that is compacted when it is full.

    Values are appended; what a number held before is garbage until the next compaction. Garbage may take a fifth of the
    memory at least, so that compactions are rare. Who puts values in must see to it that they fit: the memory never
    grows.
    """

    VALUE_BYTES = 12
    GARBAGE = 1.25
    """The memory is so many times what may be live."""

    def __init__(self, values: int, size_bytes: int) -> None:
        self.limit_bytes = int(size_bytes / self.GARBAGE)
        self.live_bytes = 0
        self.starts = np.zeros(values, dtype=np.int64)
        self.lengths = np.full(values, _EMPTY, dtype=np.int32)
        self.memory = np.empty(max(64, size_bytes), dtype=np.uint8)
        self._used = 0

    @property
    def free_bytes(self) -> int:
        """How many more bytes fit."""
        return self.limit_bytes - self.live_bytes

    def reserve(self, extra_bytes: int) -> int:
        """Return where so many bytes can be appended that are live from now on."""
        if self._used + extra_bytes > len(self.memory):
            self._compact()
            if self._used + extra_bytes > len(self.memory):
                raise AssertionError(
                    f"{extra_bytes} bytes do not fit: {self.live_bytes} of {len(self.memory)} are live"
                )
        first = self._used
        self._used += extra_bytes
        self.live_bytes += extra_bytes
        return first

    def _compact(self) -> None:
        live = np.flatnonzero(self.lengths > 0)
        live = live[np.argsort(self.starts[live], kind="stable")]
        self._used = int(_move(self.memory, self.starts, self.lengths, live))

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        assert self.live_bytes == int(self.lengths[self.lengths > 0].sum())
        assert self.live_bytes <= self._used <= len(self.memory)


class BytesColumn:
    """Strings or bytes by slot number: the values of a heap from `first` on, one a slot."""

    def __init__(self, data_type: pa.DataType, slots: int, heap: BytesHeap, first: int) -> None:
        self._type = data_type
        large = pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type)
        self._offset_type = np.int64 if large else np.int32
        self._heap = heap
        self._starts = heap.starts[first : first + slots]
        self._lengths = heap.lengths[first : first + slots]

    def put(self, slots: Int64Array, column: pa.Array, rows: Int64Array) -> None:
        """Write the values at some rows of a column into empty slots; they must fit the heap."""
        offsets = offsets_of(column)
        data = column.buffers()[2]
        values = np.frombuffer(data, dtype=np.uint8) if data is not None else _NOTHING
        first = self._heap.reserve(int(_total(offsets, rows)))
        _append(self._heap.memory, first, self._starts, self._lengths, slots, values, offsets, rows)
        if column.null_count:
            null = column.is_null().to_numpy(zero_copy_only=False)[rows]
            self._heap.live_bytes -= int(self._lengths[slots[null]].sum())
            self._lengths[slots[null]] = _NULL

    def take(self, slots: Int64Array) -> pa.Array:
        """Return the values of slots."""
        offsets = np.zeros(len(slots) + 1, dtype=self._offset_type)
        total, nulls = _offsets(self._lengths, slots, offsets)
        data = np.empty(total, dtype=np.uint8)
        _copy(self._heap.memory, self._starts, slots, offsets, data)
        mask = None
        if nulls:
            mask = pa.py_buffer(np.packbits(self._lengths[slots] != _NULL, bitorder="little"))
        return pa.Array.from_buffers(self._type, len(slots), [mask, pa.py_buffer(offsets), pa.py_buffer(data)])

    @property
    def parts(self) -> tuple[UInt8Array, Int64Array, Int32Array]:
        """The bytes of the heap, and of each slot where its value starts and how long it is: -1 if it is null."""
        return self._heap.memory, self._starts, self._lengths

    def add_lengths(self, slots: Int64Array, sizes: Int64Array) -> None:
        """Add the bytes of the value of each slot to its size."""
        _add_lengths(self._lengths, slots, sizes)

    def drop(self, slots: Int64Array) -> None:
        """Forget the values of slots."""
        self._heap.live_bytes -= _forget(self._lengths, slots)

    def move(self, slots: Int64Array, targets: Int64Array) -> None:
        """Let empty slots hold the values of others, which are empty afterwards."""
        self._starts[targets], self._lengths[targets] = self._starts[slots], self._lengths[slots]
        self._lengths[slots] = _EMPTY


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
def _add_lengths(lengths: Int32Array, slots: Int64Array, sizes: Int64Array) -> None:
    for index in range(slots.shape[0]):
        sizes[index] += max(np.int64(0), np.int64(lengths[slots[index]]))


@kernel
def _move(memory: UInt8Array, starts: Int64Array, lengths: Int32Array, live: Int64Array) -> int:
    # In order of place, so that moving down never overwrites what is still to be moved.
    used = 0
    for index in range(live.shape[0]):
        value = live[index]
        start = starts[value]
        if start != used:
            gap = start - used
            for moved in range(0, lengths[value], gap):  # blocks that do not overlap with where they come from
                copy_bytes(memory, used + moved, memory, start + moved, min(gap, lengths[value] - moved))
            starts[value] = used
        used += lengths[value]
    return used
