"""The stream of a bench: drawn before the clock starts if real time is measured."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.generator import AbsentKeys, KeySource, ZipfKeys
from semistream_lab.cli.bench_plan import BenchPlan
from semistream_lab.cli.bench_tables import key_stride

_MAX_DRAWN = 1 << 25
_DRAWN_AT_ONCE = 1 << 20
_BYTES_A_TUPLE_IN_A_JOIN = 3
"""A waiting tuple takes 12 bytes, and about four times what can wait leaves before a measurement starts."""


class ChosenKeys:
    """Gives keys of an existing table: the n-th smallest key in place of the number n."""

    def __init__(self, numbers: KeySource, keys: Int64Array) -> None:
        self._numbers = numbers
        self._keys = keys

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""
        return self._keys[self._numbers.draw(count) - 1]


class DrawnKeys:
    """Gives keys that are in memory already, and starts again at their end; a draw costs next to nothing."""

    def __init__(self, keys: Int64Array) -> None:
        self._keys = keys
        self._next = 0

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys; the array must not be changed."""
        end = self._next + count
        if end <= len(self._keys):
            start, self._next = self._next, end
            return self._keys[start:end]
        places = np.arange(self._next, end) % len(self._keys)
        self._next = end % len(self._keys)
        return self._keys[places]


def key_source(plan: BenchPlan, table_keys: Int64Array | None) -> KeySource:
    """Return the keys that the plan wants, drawn as they are asked for; the same from call to call."""
    if table_keys is not None:
        return ChosenKeys(ZipfKeys(len(table_keys), plan.zipf, seed=plan.seed, ranks=plan.ranks.value), table_keys)
    stride = key_stride(plan)
    keys = ZipfKeys(plan.master_rows, plan.zipf, seed=plan.seed, ranks=plan.ranks.value, stride=stride)
    return AbsentKeys(keys, plan.absent, plan.seed) if plan.absent else keys


def draw_all(plan: BenchPlan, source: KeySource) -> Int64Array:
    """Return enough keys for the warm-up and the measurement, but at most 256 MiB of them."""
    wanted = _MAX_DRAWN
    if plan.tuples is not None:
        wanted = min(_MAX_DRAWN, plan.tuples + plan.memory_bytes // _BYTES_A_TUPLE_IN_A_JOIN)
    keys = np.empty(wanted, dtype=np.int64)
    for start in range(0, wanted, _DRAWN_AT_ONCE):
        part = keys[start : start + _DRAWN_AT_ONCE]
        part[:] = source.draw(len(part))
    return keys
