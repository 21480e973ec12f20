"""Counts how often keys are asked for, in a fixed number of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.compile import kernel

_ROWS = 4


class FrequencySketch:
    """A count-min sketch of 8-bit counters: an estimate is never below the count since the last ageing, up to 255.

    Only the smallest of a key's four counters grow when it is counted, which keeps estimates close where keys share
    counters. `age` halves all of them, so that the past fades. Costs about 20 ns a key and 4 bytes for each of
    `keys` keys that are to be told apart.
    """

    def __init__(self, keys: int) -> None:
        self._bits = max(6, (max(1, keys) - 1).bit_length())
        self._counters = np.zeros((_ROWS, 1 << self._bits), dtype=np.uint8)

    @staticmethod
    def bytes_for(keys: int) -> int:
        """Return the memory for so many keys."""
        return _ROWS << max(6, (max(1, keys) - 1).bit_length())

    def add(self, codes: Int64Array, counts: Int32Array) -> Int32Array:
        """Count codes, each so many times, and return the estimate of each afterwards."""
        estimates = np.empty(len(codes), dtype=np.int32)
        _add(self._counters, 64 - self._bits, codes, counts, estimates)
        return estimates

    def estimate(self, codes: Int64Array) -> Int32Array:
        """Return about how often each code was counted."""
        return self.add(codes, np.zeros(len(codes), dtype=np.int32))

    def resize(self, keys: int) -> None:
        """Tell another number of keys apart from now on; estimates never fall."""
        wanted = max(6, (max(1, keys) - 1).bit_length())
        while self._bits < wanted:
            self._counters = np.repeat(self._counters, 2, axis=1)
            self._bits += 1
        while self._bits > wanted:
            self._counters = np.maximum(self._counters[:, ::2], self._counters[:, 1::2])
            self._bits -= 1

    def age(self, halvings: int) -> None:
        """Halve all counts so often."""
        if halvings:
            self._counters >>= min(8, halvings)


@kernel
def _place(code: Any, row: Any, shift: Any) -> Any:
    mixed = np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9) + np.uint64(2) * np.uint64(row) * np.uint64(0x94D049BB133111EB)
    return np.int64(mixed >> np.uint64(shift))


@kernel
def _add(counters: UInt8Array, shift: int, codes: Int64Array, counts: Int32Array, estimates: Int32Array) -> None:
    for index in range(codes.shape[0]):
        smallest = np.int64(255)
        for row in range(4):
            count = np.int64(counters[row, _place(codes[index], row, shift)])
            if count < smallest:
                smallest = count
        raised = min(255, smallest + counts[index])
        for row in range(4):
            place = _place(codes[index], row, shift)
            if counters[row, place] < raised:
                counters[row, place] = raised
        estimates[index] = raised
