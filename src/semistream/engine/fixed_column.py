"""One column of fixed width in slots that are reused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.core.memory_copy import copy_bytes

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def fixed_width(data_type: pa.DataType) -> int | None:
    """Return the bytes of a value if all values of the type take as many, else None."""
    if pa.types.is_boolean(data_type):
        return 1
    if pa.types.is_dictionary(data_type) or pa.types.is_nested(data_type) or pa.types.is_null(data_type):
        return None
    try:
        return int(data_type.bit_width // 8) or None
    except ValueError:
        return None


class FixedColumn:
    """Values of one type by slot number; writing or reading a value costs some nanoseconds.

    Whether values are null is kept from the first null on.
    """

    def __init__(self, data_type: pa.DataType, slots: int) -> None:
        width = fixed_width(data_type)
        assert width is not None
        self._type = data_type
        self._width = width
        self._slots = slots
        self._values = _words(np.empty(slots * width, dtype=np.uint8), width)
        self._valid: UInt8Array | None = None

    def put(self, slots: Int64Array, column: pa.Array, rows: Int64Array) -> None:
        """Write the values at some rows of a column into slots."""
        if pa.types.is_boolean(self._type):
            values = column.cast(pa.uint8()).fill_null(0).to_numpy()
        else:
            start = column.offset * self._width
            data = np.frombuffer(column.buffers()[1], dtype=np.uint8)[start : start + len(column) * self._width]
            values = _words(data, self._width)
        if self._width in _WORDS:
            _scatter(self._values, slots, values, rows)
        else:
            _scatter_bytes(self._values, self._width, slots, values, rows)
        if column.null_count and self._valid is None:
            self._valid = np.ones(self._slots, dtype=np.uint8)
        if self._valid is not None:
            valid = column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
            self._valid[slots] = valid[rows]

    def take(self, slots: Int64Array) -> pa.Array:
        """Return the values of slots."""
        if self._width in _WORDS:
            taken = np.empty(len(slots), dtype=self._values.dtype)
            _gather(self._values, slots, taken)
        else:
            taken = np.empty(len(slots) * self._width, dtype=np.uint8)
            _gather_bytes(self._values, self._width, slots, taken)
        mask = None
        if self._valid is not None:
            valid = self._valid[slots]
            if not valid.all():
                mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
        data = np.packbits(taken, bitorder="little") if pa.types.is_boolean(self._type) else taken
        return pa.Array.from_buffers(self._type, len(slots), [mask, pa.py_buffer(data)])

    def renumber(self, kept: Int64Array) -> None:
        """Keep only these slots, numbered in this order."""
        per_slot = 1 if self._width in _WORDS else self._width
        self._values = self._values.reshape(-1, per_slot)[kept].reshape(-1)
        self._slots = len(kept)
        if self._valid is not None:
            self._valid = self._valid[kept]


def _words(data: UInt8Array, width: int) -> Any:
    """View bytes as one word a value where there is a word of that width."""
    return data.view(_WORDS[width]) if width in _WORDS else data


@kernel
def _scatter_bytes(pool: UInt8Array, width: int, slots: Int64Array, values: UInt8Array, rows: Int64Array) -> None:
    for index in range(slots.shape[0]):
        copy_bytes(pool, slots[index] * width, values, rows[index] * width, width)


@kernel
def _gather_bytes(pool: UInt8Array, width: int, slots: Int64Array, out: UInt8Array) -> None:
    for index in range(slots.shape[0]):
        copy_bytes(out, index * width, pool, slots[index] * width, width)


@kernel
def _scatter(pool: Any, slots: Int64Array, values: Any, rows: Int64Array) -> None:
    for index in range(slots.shape[0]):
        pool[slots[index]] = values[rows[index]]


@kernel
def _gather(pool: Any, slots: Int64Array, out: Any) -> None:
    for index in range(slots.shape[0]):
        out[index] = pool[slots[index]]
