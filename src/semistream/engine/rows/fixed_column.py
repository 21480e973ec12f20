"""Columns of fixed width in slots that are reused: one record a slot, so that a row lies on one or two cache lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.core.memory_copy import copy_bytes
from semistream.core.value_widths import fixed_width

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Records:
    """Memory for one record in each slot, with the columns that live in it."""

    def __init__(self, types: list[pa.DataType], slots: int) -> None:
        widths = [fixed_width(data_type) or 0 for data_type in types]
        self._stride = self.record_bytes(types)
        self._memory = np.empty(slots * self._stride, dtype=np.uint8)
        self._slots = slots
        places: dict[int, int] = {}
        place = 0
        for index in sorted(range(len(types)), key=lambda index: _alignment(widths[index]), reverse=True):
            places[index] = place
            place += widths[index]
        self.columns = [
            FixedColumn(data_type, slots, self._memory, places[index], self._stride)
            for index, data_type in enumerate(types)
        ]

    @staticmethod
    def record_bytes(types: list[pa.DataType]) -> int:
        """Return what a slot takes."""
        return -(-sum(fixed_width(data_type) or 0 for data_type in types) // 8) * 8

    def move(self, slots: Int64Array, targets: Int64Array) -> None:
        """Copy the records of slots to others."""
        if self._stride:
            records = self._memory.reshape(self._slots, self._stride)
            records[targets] = records[slots]
        for column in self.columns:
            column.move_validity(slots, targets)


class FixedColumn:
    """Values of one type by slot number; writing or reading a value costs some nanoseconds.

    Whether values are null is kept from the first null on.
    """

    def __init__(self, data_type: pa.DataType, slots: int, memory: UInt8Array, place: int, stride: int) -> None:
        width = fixed_width(data_type)
        assert width is not None
        self._type = data_type
        self._width = width
        self._place = place
        self._stride = stride
        self._valid: UInt8Array | None = None
        self._memory = memory
        self._slots = slots
        self._values: Any = None
        if width in _WORDS and slots:
            self._values = np.ndarray((slots,), _WORDS[width], memory.data, place, (stride,))

    def put(self, slots: Int64Array, column: pa.Array, rows: Int64Array) -> None:
        """Write the values at some rows of a column into slots."""
        if pa.types.is_boolean(self._type):
            _scatter(self._values, slots, column.cast(pa.uint8()).fill_null(0).to_numpy(), rows)
        else:
            start = column.offset * self._width
            data = np.frombuffer(column.buffers()[1], dtype=np.uint8)[start : start + len(column) * self._width]
            if self._width in _WORDS:
                _scatter(self._values, slots, data.view(_WORDS[self._width]), rows)
            else:
                _scatter_bytes(self._memory, self._place, self._stride, self._width, slots, data, rows)
        if column.null_count and self._valid is None:
            self._valid = np.ones(self._slots, dtype=np.uint8)
        if self._valid is not None:
            valid = column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
            self._valid[slots] = valid[rows]

    def take(self, slots: Int64Array) -> pa.Array:
        """Return the values of slots."""
        if self._width in _WORDS:
            taken = np.empty(len(slots), dtype=_WORDS[self._width])
            _gather(self._values, slots, taken)
        else:
            taken = np.empty(len(slots) * self._width, dtype=np.uint8)
            _gather_bytes(self._memory, self._place, self._stride, self._width, slots, taken)
        mask = None
        if self._valid is not None:
            valid = self._valid[slots]
            if not valid.all():
                mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
        data = np.packbits(taken, bitorder="little") if pa.types.is_boolean(self._type) else taken
        return pa.Array.from_buffers(self._type, len(slots), [mask, pa.py_buffer(data)])

    @property
    def memory(self) -> tuple[UInt8Array, int, int]:
        """The memory of all records, where the column begins in a record, and how long a record is."""
        return self._memory, self._place, self._stride

    @property
    def valid(self) -> UInt8Array | None:
        """A byte for each slot that is 0 for null; None if no value ever was null."""
        return self._valid

    def move_validity(self, slots: Int64Array, targets: Int64Array) -> None:
        """Let slots be null where others are."""
        if self._valid is not None:
            self._valid[targets] = self._valid[slots]


def _alignment(width: int) -> int:
    """Return the largest word that values of a width can be cut into, so that each word is at its own multiple."""
    return next(word for word in (8, 4, 2, 1) if width % word == 0)


@kernel
def _scatter_bytes(
    memory: UInt8Array, place: int, stride: int, width: int, slots: Int64Array, values: UInt8Array, rows: Int64Array
) -> None:
    for index in range(slots.shape[0]):
        copy_bytes(memory, slots[index] * stride + place, values, rows[index] * width, width)


@kernel
def _gather_bytes(memory: UInt8Array, place: int, stride: int, width: int, slots: Int64Array, out: UInt8Array) -> None:
    for index in range(slots.shape[0]):
        copy_bytes(out, index * width, memory, slots[index] * stride + place, width)


@kernel
def _scatter(pool: Any, slots: Int64Array, values: Any, rows: Int64Array) -> None:
    for index in range(slots.shape[0]):
        pool[slots[index]] = values[rows[index]]


@kernel
def _gather(pool: Any, slots: Int64Array, out: Any) -> None:
    for index in range(slots.shape[0]):
        out[index] = pool[slots[index]]
