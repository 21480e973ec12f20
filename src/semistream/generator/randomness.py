"""Seeded random numbers, apart for each purpose."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.generator.settings import whole_number

_PERIOD = 1 << 128


def random_for(purpose: str, seed: int, *place: int) -> np.random.Generator:
    """Return the random numbers that `seed` gives for `purpose`, and for the `place` in it if one is given.

    Two purposes with one seed do not share numbers, so that keys and arrivals with the same seed stay independent.
    """
    return np.random.Generator(_bits_for(purpose, seed, *place))


class UniformNumbers:
    """An endless sequence of random numbers from [0, 1) that can be entered at any position.

    Each number takes one step of the generator, so moving to a position costs the same however far away it is.
    """

    def __init__(self, purpose: str, seed: int) -> None:
        self._bits = _bits_for(purpose, seed)
        self._random = np.random.Generator(self._bits)
        self._position = 0

    def take(self, count: int) -> Float64Array:
        """Return the next `count` numbers."""
        self._position += count
        return self._random.random(count)

    def fill(self, numbers: Float64Array) -> None:
        """Overwrite `numbers` by the next ones."""
        self._position += len(numbers)
        self._random.random(out=numbers)

    def seek(self, position: int) -> None:
        """Go to the number at `position`, from 0 on; a few microseconds."""
        position = whole_number("position", position, minimum=0)
        self._bits.advance((position - self._position) % _PERIOD)
        self._position = position


def _bits_for(purpose: str, seed: int, *place: int) -> np.random.PCG64:
    return np.random.PCG64([whole_number("seed", seed, minimum=0), crc32(purpose.encode()), *place])
