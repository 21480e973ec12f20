"""What the parts of the join loop cost the processor, per tuple: c_H, c_O, c_E, c_S, c_A, c_F and c_AI."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.reading.matching import match
from semistream.engine.reading.page_groups import PageGroups
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.caching.frequency_sketch import FrequencySketch
from semistream.store.contract import MasterStore
from semistream_lab.cost.request_times import Progress

_TUPLES = 1 << 16
_REPEATS = 7
_READ_BYTES = 100_000
_SAMPLED_PAGES = 256
_SHORTEST_SECONDS = 1e-12


@dataclass(frozen=True)
class ProcessorCosts:
    """Seconds per tuple of each operation, under the names that a cost profile has for them."""

    probe_seconds: float
    """A look-up in the cache."""
    output_seconds: float
    """A match in pages that were read, and a copy of the row."""
    remove_seconds: float
    """A waiting tuple taken out when its page group was read."""
    take_seconds: float
    """An arriving tuple's page group found by the sparse index."""
    append_seconds: float
    """A tuple put to those that wait."""
    frequency_seconds: float
    """A key counted by the sketch that decides who enters the cache."""
    hand_over_seconds: float
    """A tuple copied from one phase to the other."""


def measure_processor(
    store: MasterStore,
    *,
    tuples: int = _TUPLES,
    repeats: int = _REPEATS,
    seed: int = 0,
    progress: Progress | None = None,
) -> ProcessorCosts:
    """Time the engine's own parts on keys of the store and return the medians of repeats.

    Every part is run once before it is timed, so that no compiler is. Each repeat runs all parts, so that a disturbance
    of the machine does not fall on one of them alone.
    """
    parts = _Parts(store, tuples, np.random.default_rng(seed))
    steps: dict[str, Callable[[], object]] = {
        "take_seconds": parts.take,
        "probe_seconds": parts.probe,
        "hand_over_seconds": parts.hand_over,
        "append_seconds": parts.append,
        "remove_seconds": parts.remove,
        "output_seconds": parts.output,
        "frequency_seconds": parts.count,
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(repeats + 1):
        if progress is not None:
            progress("Measuring the processor", repeat, repeats + 1)
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            seconds = (time.perf_counter() - began) / tuples
            if repeat:
                times[name].append(max(_SHORTEST_SECONDS, seconds))
    return ProcessorCosts(**{name: median(samples) for name, samples in times.items()})


class _Parts:
    """The parts of a loop, ready to be timed; to be called in the order of the methods."""

    def __init__(self, store: MasterStore, tuples: int, random: np.random.Generator) -> None:
        if not store.page_count:
            raise InvalidSettingError("A master table without rows has no keys to time: give one that has rows.")
        page_bytes = store.size_bytes / store.page_count
        self._page_group_map = PageGroups(store, max(1, round(_READ_BYTES / page_bytes)))
        self._codes = random.choice(_sampled_codes(store, random), tuples)
        self._references = np.arange(tuples, dtype=np.int64)
        self._page_groups = self._page_group_map.locate(self._codes)
        self._misses = np.flatnonzero(random.random(tuples) < 0.5)
        self._waiting = WaitingTuples(self._page_group_map.count, tuples)
        self._cache = TupleCache(tuples, None, None)
        cached = np.unique(random.integers(-(2**62), 2**62, tuples))
        self._cache.admit(cached, np.ones(len(cached), dtype=np.int32), None, absent=False)
        self._asked = np.where(random.random(tuples) < 0.5, random.choice(cached, tuples), self._codes)
        self._sketch = FrequencySketch(4 * tuples)
        self._once = np.ones(tuples, dtype=np.int32)
        first, last = self._page_group_map.pages_of(np.zeros(1, dtype=np.int64))
        self._pages = store.read(first, last)
        self._columns = tuple(name for name in store.schema.names if name not in store.key)
        self._present = random.choice(self._pages.codes, tuples)
        # As many answers as a read brings, so that rows and results stay in the processor's cache as they do in a join.
        self._cuts = range(0, tuples, max(1, len(self._pages.codes)))

    def take(self) -> None:
        self._page_group_map.locate(self._codes)

    def probe(self) -> None:
        self._cache.find(self._asked)

    def hand_over(self) -> None:
        # Half of the tuples are copied twice: the time is divided by all of them.
        for _ in range(2):
            self._codes[self._misses], self._page_groups[self._misses], self._references[self._misses]

    def append(self) -> None:
        self._waiting.add(self._codes, self._page_groups, self._references)

    def remove(self) -> None:
        self._waiting.drain(self._waiting.in_order_of_age())

    def output(self) -> None:
        step = self._cuts.step
        for start in self._cuts:
            codes = self._present[start : start + step]
            rows, _ = match(self._pages.codes, self._pages.bounds, codes, np.array([0, len(codes)]))
            if self._columns:
                self._pages.take(rows, self._columns)

    def count(self) -> None:
        self._sketch.add(self._codes, self._once)


def _sampled_codes(store: MasterStore, random: np.random.Generator) -> Int64Array:
    pages = np.unique(random.integers(0, store.page_count, _SAMPLED_PAGES))
    return store.read(pages, pages).codes
