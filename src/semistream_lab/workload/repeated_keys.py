"""The keys of recorded data as a stream that never ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.generator.settings import whole_number


class RepeatedKeys:
    """Gives the keys of recorded data in their order, and begins again whenever they end.

    `open_keys` is called at the start of each round and returns the keys of the data in arrays of any size, so that no
    more than one of them is in memory.
    """

    def __init__(self, open_keys: Callable[[], Iterable[Int64Array]]) -> None:
        self._open_keys = open_keys
        self._arrays: Iterator[Int64Array] = iter(())
        self._rest = np.empty(0, dtype=np.int64)

    @classmethod
    def of(cls, keys: Int64Array) -> RepeatedKeys:
        """Return a stream of keys that are in memory."""
        return cls(lambda: [keys])

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""
        drawn = np.empty(whole_number("count", count, minimum=0), dtype=np.int64)
        done = 0
        while done < len(drawn):
            if not len(self._rest):
                self._rest = self._next_array()
            part = self._rest[: len(drawn) - done]
            drawn[done : done + len(part)] = part
            self._rest = self._rest[len(part) :]
            done += len(part)
        return drawn

    def _next_array(self) -> Int64Array:
        for arrays in (self._arrays, iter(self._open_keys())):
            self._arrays = arrays
            for keys in arrays:
                if len(keys):
                    return keys
        raise InvalidSettingError("Data without rows has no keys to draw: give data that has some.")
