"""A hash table from key codes to slots, in numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel

_EMPTY = -1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class CodeTable:
    """Maps up to `capacity` codes to slot numbers: open addressing, at most half full, no tombstones.

    A look-up costs about 10 ns; memory is 24 to 48 bytes for each code of the capacity.
    """

    def __init__(self, capacity: int) -> None:
        self._bits = max(3, (2 * capacity - 1).bit_length())
        self._codes = np.zeros(1 << self._bits, dtype=np.int64)
        self._slots = np.full(1 << self._bits, _EMPTY, dtype=np.int32)

    @staticmethod
    def bytes_for(capacity: int) -> int:
        """Return the memory that a table of this capacity takes."""
        return 12 << max(3, (2 * capacity - 1).bit_length())

    @property
    def size_bytes(self) -> int:
        """The memory of the arrays."""
        return self._codes.nbytes + self._slots.nbytes

    @property
    def parts(self) -> tuple[Int64Array, Int32Array, int]:
        """The codes, their slots and the shift of the hash, for kernels that do several things with a code at once."""
        return self._codes, self._slots, 64 - self._bits

    def find(self, codes: Int64Array) -> Int32Array:
        """Return the slot of each code, or -1."""
        slots = np.empty(len(codes), dtype=np.int32)
        _find(*self.parts, codes, slots)
        return slots

    def find_new(self, codes: Int64Array) -> Int64Array:
        """Return the places of the codes that are not in the table."""
        places = np.empty(len(codes), dtype=np.int64)
        return places[: _find_new(*self.parts, codes, places)]

    def insert(self, codes: Int64Array, slots: Int64Array) -> None:
        """Add codes that are not in the table."""
        _insert(*self.parts, codes, slots)

    def remove(self, codes: Int64Array) -> None:
        """Remove codes that are in the table."""
        _remove(*self.parts, codes)


@kernel
def _home(code: Any, shift: int) -> Any:
    return np.int64((np.uint64(code) * _FACTOR) >> np.uint64(shift))


@kernel
def find_slot(table: Int64Array, table_slots: Int32Array, shift: int, code: Any) -> Any:
    """Return the slot of a code, or -1; for kernels, with the parts of a table."""
    mask = table.shape[0] - 1
    place = _home(code, shift)
    while table_slots[place] != _EMPTY and table[place] != code:
        place = (place + 1) & mask
    return table_slots[place]


@kernel
def insert_code(table: Int64Array, table_slots: Int32Array, shift: int, code: Any, slot: Any) -> None:
    """Add a code that is not in the table."""
    mask = table.shape[0] - 1
    place = _home(code, shift)
    while table_slots[place] != _EMPTY:
        place = (place + 1) & mask
    table[place] = code
    table_slots[place] = slot


@kernel
def remove_code(table: Int64Array, table_slots: Int32Array, shift: int, code: Any) -> None:
    """Remove a code that is in the table."""
    mask = table.shape[0] - 1
    place = _home(code, shift)
    while table[place] != code or table_slots[place] == _EMPTY:
        place = (place + 1) & mask
    # Move later entries of the cluster back, so that no look-up ends too early.
    hole = place
    while True:
        place = (place + 1) & mask
        if table_slots[place] == _EMPTY:
            break
        distance = (place - _home(table[place], shift)) & mask
        if distance >= ((place - hole) & mask):
            table[hole] = table[place]
            table_slots[hole] = table_slots[place]
            hole = place
    table_slots[hole] = _EMPTY


@kernel
def _find(table: Int64Array, table_slots: Int32Array, shift: int, codes: Int64Array, slots: Int32Array) -> None:
    for index in range(codes.shape[0]):
        slots[index] = find_slot(table, table_slots, shift, codes[index])


@kernel
def _find_new(table: Int64Array, table_slots: Int32Array, shift: int, codes: Int64Array, places: Int64Array) -> int:
    count = 0
    for index in range(codes.shape[0]):
        if find_slot(table, table_slots, shift, codes[index]) < 0:
            places[count] = index
            count += 1
    return count


@kernel
def _insert(table: Int64Array, table_slots: Int32Array, shift: int, codes: Int64Array, slots: Int64Array) -> None:
    for index in range(codes.shape[0]):
        insert_code(table, table_slots, shift, codes[index], slots[index])


@kernel
def _remove(table: Int64Array, table_slots: Int32Array, shift: int, codes: Int64Array) -> None:
    for index in range(codes.shape[0]):
        remove_code(table, table_slots, shift, codes[index])
