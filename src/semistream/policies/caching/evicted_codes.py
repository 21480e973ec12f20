"""Remembers what a cache has overwritten, to tell what a cache of twice the size would have answered."""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.code_table import CodeTable, find_slot, insert_code, remove_code
from semistream.core.compile import kernel

_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_SAMPLE_BITS = 4


class EvictedCodes:
    """A sample of the codes that were overwritten last, standing for as many of them as the cache has entries.

    One code in sixteen is followed, chosen by its hash, so that the estimate costs next to nothing. A tuple whose code
    is among them would have been a hit in a cache of twice the size.
    """

    SAMPLED = 1 << _SAMPLE_BITS

    def __init__(self, capacity: int) -> None:
        self._places = max(1, capacity // self.SAMPLED)
        self._ring = np.zeros(self._places, dtype=np.int64)
        self._table = CodeTable(self._places)
        self._count = 0
        self._next = 0

    @staticmethod
    def bytes_for(capacity: int) -> int:
        """Return the memory for a cache of this capacity."""
        places = max(1, capacity // EvictedCodes.SAMPLED)
        return CodeTable.bytes_for(places) + 8 * places

    def add(self, codes: Int64Array) -> None:
        """Remember codes that have been overwritten, each of them once."""
        self._count, self._next = _remember(*self._table.parts, self._ring, self._count, self._next, codes)

    def asked_for(self, codes: Int64Array, counts: Int32Array) -> int:
        """Estimate how many of some tuples, `counts` for each code, asked for codes that were overwritten."""
        return _count_known(*self._table.parts, codes, counts) * self.SAMPLED

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        used = self._ring[: self._count]
        assert np.array_equal(np.sort(self._table.find(used)), np.arange(self._count))


@kernel
def _is_sampled(code: Any) -> Any:
    return (np.uint64(code) * _FACTOR) >> np.uint64(64 - _SAMPLE_BITS) == 0


@kernel
def _remember(
    table: Int64Array,
    table_slots: Int32Array,
    shift: int,
    ring: Int64Array,
    count: int,
    place: int,
    codes: Int64Array,
) -> tuple[int, int]:
    """Put sampled codes into the ring, over the oldest ones; return its count, and the place that comes next."""
    for index in range(codes.shape[0]):
        code = codes[index]
        if not _is_sampled(code) or find_slot(table, table_slots, shift, code) >= 0:
            continue
        if count == ring.shape[0]:
            remove_code(table, table_slots, shift, ring[place])
        else:
            count += 1
        ring[place] = code
        insert_code(table, table_slots, shift, code, place)
        place = (place + 1) % ring.shape[0]
    return count, place


@kernel
def _count_known(table: Int64Array, table_slots: Int32Array, shift: int, codes: Int64Array, counts: Int32Array) -> int:
    known = 0
    for index in range(codes.shape[0]):
        if _is_sampled(codes[index]) and find_slot(table, table_slots, shift, codes[index]) >= 0:
            known += counts[index]
    return known
