"""Remembers what a cache has overwritten, to tell what a cache of twice the size would have answered."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream.engine.code_table import CodeTable

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
        new = codes[_sampled(codes)]
        new = new[self._table.find(new) < 0][-self._places :]
        if not len(new):
            return
        places = (self._next + np.arange(len(new))) % self._places
        self._table.remove(self._ring[places[places < self._count]])
        self._ring[places] = new
        self._table.insert(new, places)
        self._count = min(self._places, self._count + len(new))
        self._next = (self._next + len(new)) % self._places

    def asked_for(self, codes: Int64Array, counts: Int32Array) -> int:
        """Estimate how many of some tuples, `counts` for each code, asked for codes that were overwritten."""
        places = _sampled(codes)
        known = self._table.find(codes[places]) >= 0
        return int(counts[places[known]].sum()) * self.SAMPLED

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        used = self._ring[: self._count]
        assert np.array_equal(np.sort(self._table.find(used)), np.arange(self._count))


def _sampled(codes: Int64Array) -> Int64Array:
    """Return the places of the codes that are followed."""
    places = np.empty(len(codes), dtype=np.int64)
    return places[: _find_sampled(codes, places)]


@kernel
def _find_sampled(codes: Int64Array, places: Int64Array) -> int:
    count = 0
    for index in range(codes.shape[0]):
        if (np.uint64(codes[index]) * _FACTOR) >> np.uint64(64 - _SAMPLE_BITS) == 0:
            places[count] = index
            count += 1
    return count
