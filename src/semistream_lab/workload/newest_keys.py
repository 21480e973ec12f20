"""Keys that are asked for most while they are new."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.generator.settings import whole_number
from semistream.generator.stream_keys import RankedKeySource


class NewestKeys:
    """Draws keys by their age: rank 1 of `keys` is the newest key, and after `period_tuples` every key was the newest.

    So each key is hot for a while and then cools with the law of `keys`, and what was asked for most often is not what
    will be. Ages go around: the key that is the newest next is the oldest one.
    """

    def __init__(self, keys: RankedKeySource, period_tuples: int) -> None:
        self.key_count = keys.key_count
        self.stride = keys.stride
        self._keys = keys
        self._period_tuples = whole_number("period_tuples", period_tuples, minimum=1)
        self._drawn = 0

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""
        ages = self._keys.draw_ranks(count) - 1
        positions = np.arange(self._drawn, self._drawn + len(ages), dtype=np.int64)
        self._drawn += len(ages)
        newest = (positions * self.key_count) // self._period_tuples
        return self._keys.keys_of((newest - ages) % self.key_count + 1)

    def seek(self, position: int) -> None:
        """Let the next draw begin with the key at `position`, from 0 on."""
        self._keys.seek(position)
        self._drawn = position
