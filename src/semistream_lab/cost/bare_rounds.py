"""What a round of the loop takes beside its operations: the calls between its parts and its book-keeping."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from semistream.algorithms.hybridjoin import HYBRIDJOIN
from semistream.core.arrays import Int64Array
from semistream.core.budget import MemoryBudget
from semistream.core.clock import WallClock
from semistream.engine.assembly import Assembly
from semistream.engine.phases.stream_input import KeyInput
from semistream.engine.recipe import Recipe
from semistream.generator import Workload, ZipfKeys
from semistream.store.contract import MasterStore, PageSet
from semistream.store.memory import MemoryStore
from semistream.store.wrapping import WrappingStore
from semistream_lab.cost.request_times import Progress
from semistream_lab.workload.repeated_keys import RepeatedKeys

_ROWS = 64_000
_ROW_BYTES = 120
_MEMORY_BYTES = 400_000
"""So little that a read of one page serves a few tuples only."""
_KEYS = 1 << 18
_ROUNDS = 500
_REPEATS = 3


class BareRounds:
    """Rounds of a recipe's own loop that have next to nothing to do, on a small table in memory.

    A read brings one page for a few tuples, and its time is left out, so what is left is what every round takes
    whatever it does. With an `exponent` keys of the first page are frequent, so that a page pinned there answers tuples
    in nearly every round.
    """

    def __init__(self, recipe: Recipe, *, exponent: float = 0.0) -> None:
        small = {"read_bytes": 1, "parts": _ROWS, "pinned_share": 0.0, "cache_share": 0.01}
        parameters = {name: float(value) for name, value in small.items() if name in recipe.parameters}
        self._store = _TimedReads(MemoryStore.of_codes(_ROWS, row_bytes=_ROW_BYTES))
        clock = WallClock()
        budget = MemoryBudget(_MEMORY_BYTES)
        assembly = Assembly(recipe, self._store, budget, clock, accounting="papers", parameters=parameters)
        keys = RepeatedKeys.of(ZipfKeys(_ROWS, exponent, seed=0, ranks="sorted").draw(_KEYS))
        chunks = Workload(keys).chunks(assembly.sizes.chunk_rows)
        loop, _ = assembly.start(KeyInput(chunks, clock))
        self._stats = assembly.stats
        self._rounds = loop.rounds()
        self._seconds = 0.0
        self._made = 0
        while self._stats.read_hits < 2 * assembly.sizes.waiting_slots:
            next(self._rounds)
        self._tuples_before = self._stats.tuples_out
        self._store.seconds = 0.0

    def make_one(self) -> None:
        """Make a round and add its time."""
        began = time.perf_counter()
        next(self._rounds)
        self._seconds += time.perf_counter() - began
        self._made += 1

    @property
    def seconds_per_round(self) -> float:
        """The time of a round without that of its read."""
        return (self._seconds - self._store.seconds) / max(1, self._made)

    @property
    def tuples_per_round(self) -> float:
        """The tuples that leave in a round."""
        return (self._stats.tuples_out - self._tuples_before) / max(1, self._made)


def measure_round(
    recipe: Recipe = HYBRIDJOIN, *, rounds: int = _ROUNDS, repeats: int = _REPEATS, progress: Progress | None = None
) -> float:
    """Return what a round of a recipe takes beside its operations: the median of some repeats."""
    seconds = []
    for repeat in range(repeats):
        if progress is not None:
            progress("Measuring rounds", repeat, repeats)
        bare = BareRounds(recipe)
        for _ in range(rounds):
            bare.make_one()
        seconds.append(bare.seconds_per_round)
    return median(seconds)


class _TimedReads(WrappingStore):
    """Adds up the time of reads."""

    def __init__(self, inside: MasterStore) -> None:
        super().__init__(inside)
        self.seconds = 0.0

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Read ranges of pages and note the time."""
        began = time.perf_counter()
        pages = self.inside.read(np.asarray(first_pages), np.asarray(last_pages))
        self.seconds += time.perf_counter() - began
        return pages
