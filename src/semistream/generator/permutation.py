"""A seeded permutation that needs no table."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array, UInt64Array
from semistream.core.compile import kernel
from semistream.generator.settings import whole_number

_ROUNDS = 4


class SeededPermutation:
    """Maps 0..size-1 one to one onto itself in an order that `random` decides, for any size, in 64 bytes.

    Each round multiplies by an odd number and folds the high bits onto the low ones: both can be undone within the
    smallest power of two that holds `size`. A value that falls outside `size` is mapped again until it falls inside,
    which takes less than two tries on average.
    """

    def __init__(self, size: int, random: np.random.Generator) -> None:
        self.size = whole_number("size", size, minimum=1)
        bits = max(1, (self.size - 1).bit_length())
        self._mask = np.uint64((1 << bits) - 1)
        self._shift = np.uint64((bits + 1) // 2)
        self._factors: UInt64Array = random.integers(0, 2**63, size=_ROUNDS, dtype=np.uint64) | np.uint64(1)
        self._offsets: UInt64Array = random.integers(0, 2**63, size=_ROUNDS, dtype=np.uint64)

    def apply(self, values: Int64Array) -> None:
        """Replace each value by its image."""
        _permute(values, np.uint64(self.size), self._mask, self._shift, self._factors, self._offsets)


@kernel
def _permute(
    values: Int64Array,
    size: np.uint64,
    mask: np.uint64,
    shift: np.uint64,
    factors: UInt64Array,
    offsets: UInt64Array,
) -> None:
    for place in range(values.shape[0]):
        value = np.uint64(values[place])
        while True:
            for turn in range(factors.shape[0]):
                value = (value * factors[turn] + offsets[turn]) & mask
                value ^= value >> shift
            if value < size:
                break
        values[place] = np.int64(value)
