"""Which cached tuples make room."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel
from semistream.policies.contract import Replacement


class RandomOverwrite(Replacement):
    """Overwrites entries at random."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def victims(self, count: int, frequencies: Int32Array) -> Int64Array:
        """Return different random slots."""
        slots = len(frequencies)
        if count * 8 > slots:
            return self._random.permutation(slots)[:count].astype(np.int64)
        chosen = np.unique(self._random.integers(0, slots, count))
        while len(chosen) < count:
            more = self._random.integers(0, slots, count - len(chosen))
            chosen = np.unique(np.concatenate([chosen, more]))
        return chosen


class LeastFrequentOverwrite(Replacement):
    """Overwrites the entries that were used least.

    A scan of all frequencies yields a supply of victims; slots that were used since the scan are passed over, and the
    next scan comes when the supply is used up. So a victim costs a constant on average, not a scan.
    """

    def __init__(self) -> None:
        self._supply = np.empty(0, dtype=np.int64)
        self._seen = np.empty(0, dtype=np.int32)
        self._slots = 0

    def renumbered(self) -> None:
        """Look at all frequencies again."""
        self._supply, self._seen = self._supply[:0], self._seen[:0]

    def victims(self, count: int, frequencies: Int32Array) -> Int64Array:
        """Return the least used slots."""
        if len(frequencies) < self._slots:
            self.renumbered()
        self._slots = len(frequencies)
        chosen = self._from_supply(count, frequencies)
        if len(chosen) < count:
            self._scan(count, frequencies)
            again = np.ones(len(frequencies), dtype=np.bool_)
            again[chosen] = False
            again = again[self._supply]
            self._supply, self._seen = self._supply[again], self._seen[again]
            chosen = np.concatenate([chosen, self._from_supply(count - len(chosen), frequencies)])
        return chosen

    def _scan(self, wanted: int, frequencies: Int32Array) -> None:
        batch = min(len(frequencies), max(4 * wanted, len(frequencies) // 32))
        lowest = np.argpartition(frequencies, batch - 1)[:batch]
        self._supply = lowest[np.argsort(frequencies[lowest], kind="stable")].astype(np.int64)
        self._seen = frequencies[self._supply]

    def _from_supply(self, count: int, frequencies: Int32Array) -> Int64Array:
        chosen = np.empty(count, dtype=np.int64)
        taken, after = _take_unused(self._supply, self._seen, frequencies, chosen)
        self._supply, self._seen = self._supply[after:], self._seen[after:]
        return chosen[:taken]


class LessUsedOverwrite(LeastFrequentOverwrite):
    """Overwrites the entries that were used least, but only by what is worth more."""

    keeps_better = True

    def floor(self, frequencies: Int32Array) -> int:
        """Return the least count of use, as of the last scan or of those that were not used since."""
        if len(frequencies) != self._slots or not len(self._supply):
            self._slots = len(frequencies)
            self._scan(1, frequencies)
        return int(self._seen[0])

    def spared(self, slots: Int64Array, frequencies: Int32Array) -> None:
        """Let them be the next victims: else the least use would be taken for that of the entries behind them."""
        self._supply = np.concatenate([slots, self._supply])
        self._seen = np.concatenate([frequencies[slots], self._seen])


@kernel
def _take_unused(supply: Int64Array, seen: Int32Array, frequencies: Int32Array, chosen: Int64Array) -> tuple[int, int]:
    """Choose slots of the supply whose frequency is still the one seen; return both counts: chosen, looked at."""
    taken = 0
    for index in range(supply.shape[0]):
        if taken == chosen.shape[0]:
            return taken, index
        if frequencies[supply[index]] == seen[index]:
            chosen[taken] = supply[index]
            taken += 1
    return taken, supply.shape[0]
