"""Measures how far a join is from the best possible: its cache from Belady's MIN, its reads from the fewest."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.clock import ModelClock
from semistream.core.costs import CostProfile
from semistream.core.errors import InvalidSettingError
from semistream.core.stats import JoinStats
from semistream.engine.assembly import Assembly
from semistream.engine.loop import JoinLoop
from semistream.engine.phases.stream_input import KeyInput
from semistream.generator import Workload, ZipfKeys
from semistream.generator.stream_keys import KeySource
from semistream_lab.caching.belady_min import min_hits
from semistream_lab.caching.simulated import SIMULATED
from semistream_lab.cost.read_bounds import (
    disk_seconds_on_schedule,
    tuples_per_read_at_best,
    tuples_per_read_on_schedule,
)
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.point import Point, Row, Scalar
from semistream_lab.workload.drift import DriftingKeys
from semistream_lab.workload.newest_keys import NewestKeys

_WARM_TUPLES, _MEASURED_TUPLES = 30.0, 15.0
"""How many tuples come before the measurement and in it, for each row of the master table."""
_TURN = {"shuffled": 0, "sorted": 0, "jumping": 4, "drifting": 4, "newest": 20}
"""The streams, and how many tuples for each row it takes until other keys are hot; in the first two the same keys stay
hot, spread over the table or side by side."""


def run(point: Point) -> Row:
    """Measure the algorithm on the stream that the option `stream` names, after a long warm-up."""
    stream = str(dict(point.options).get("stream", "shuffled"))
    ranks: Literal["sorted", "shuffled"] = "sorted" if stream == "sorted" else "shuffled"
    keys = ZipfKeys(point.master_rows, point.exponent, seed=point.seed, ranks=ranks)
    observed = _observe(point, _RecordedKeys(_stream(stream, keys)))
    by_key = np.empty(point.master_rows)
    by_key[keys.keys_of(np.arange(1, point.master_rows + 1)) - 1] = keys.probabilities()
    row: dict[str, Scalar] = {
        "tuples": observed.stats.tuples_out,
        "service_rate": observed.stats.tuples_out / observed.seconds,
        "cache_tuples": observed.cache_tuples,
        "waiting_slots": observed.slots,
        "hit_share": observed.hit_share,
        **_cache_bounds(point, observed),
    }
    if not _TURN[stream]:
        row["static_share"] = float(np.sort(by_key)[::-1][: observed.cache_tuples].sum())
        row.update(_read_bounds(observed, by_key, rates.costs_of(point)))
    return row


class _RecordedKeys:
    """Gives the keys of another source, and remembers them."""

    def __init__(self, keys: KeySource) -> None:
        self._keys = keys
        self.drawn: list[Int64Array] = []

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""
        keys = self._keys.draw(count)
        self.drawn.append(keys - 1)
        return keys


@dataclass
class _Observed:
    """What a join has done in the measurement."""

    keys: Int64Array
    """All keys, from 0 on, that the cache was asked for since the join began."""
    first: int
    """Which of them is the first of the measurement."""
    stats: JoinStats
    seconds: float
    bounds: Int64Array
    """The first row of each page group, and at the end the number of rows."""
    pages_per_read: int
    """The pages of a page group."""
    max_run: int
    capacities: list[int] = field(default_factory=list)
    """How many rows the cache could hold in each round."""
    queue_sizes: list[int] = field(default_factory=list)
    """How many tuples could wait in each round."""
    cached: list[Int64Array] = field(default_factory=list)
    """What was cached at some moments."""

    @property
    def cache_tuples(self) -> int:
        """The rows that the cache could hold, in the mean."""
        return round(float(np.mean(self.capacities)))

    @property
    def slots(self) -> float:
        """The tuples that could wait, in the mean."""
        return float(np.mean(self.queue_sizes))

    @property
    def hit_share(self) -> float:
        """The share of the tuples that the cache answered."""
        return self.stats.cache_hits / self.stats.tuples_in


def _stream(name: str, keys: ZipfKeys) -> KeySource:
    if name not in _TURN:
        raise InvalidSettingError(f"There is no stream {name!r}: choose from {', '.join(_TURN)}.")
    period = _TURN[name] * keys.key_count
    match name:
        case "jumping":
            return DriftingKeys(keys, period)
        case "drifting":
            return DriftingKeys(keys, period, drift_share=1.0)
        case "newest":
            return NewestKeys(keys, period)
        case _:
            return keys


def _observe(point: Point, keys: _RecordedKeys) -> _Observed:
    clock = ModelClock(rates.costs_of(point))
    assembly = rates.assembly_of(point, clock)
    chunks = Workload(keys).chunks(assembly.sizes.chunk_rows)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    stats, rounds = assembly.stats, loop.rounds()
    warm, measured = (round(part * point.master_rows) for part in (_WARM_TUPLES, _MEASURED_TUPLES))
    try:
        for _ in rounds:
            if stats.tuples_in >= warm:
                break
        before, began = copy(stats), clock.now()
        observed = _Observed(
            keys=np.empty(0, dtype=np.int64),
            first=before.tuples_in,
            stats=stats,
            seconds=0.0,
            bounds=_bounds(assembly),
            pages_per_read=assembly.sizes.pages_per_read,
            max_run=assembly.sizes.run_page_groups,
        )
        _look(assembly, loop, observed, snapshot=True)
        next_look = before.tuples_in + measured // 8
        for _ in rounds:
            _look(assembly, loop, observed, snapshot=stats.tuples_in >= next_look)
            if stats.tuples_in >= next_look:
                next_look += measured // 8
            if stats.tuples_in >= before.tuples_in + measured:
                break
        observed.stats, observed.seconds = stats.since(before), clock.now() - began
    finally:
        loop.close()
        rounds.close()
    observed.keys = np.concatenate(keys.drawn)[: before.tuples_in + observed.stats.tuples_in]
    return observed


def _look(assembly: Assembly, loop: JoinLoop, observed: _Observed, *, snapshot: bool) -> None:
    cache = assembly.cache
    observed.capacities.append(cache.capacity if cache is not None else 0)
    observed.queue_sizes.append(loop.waiting.capacity)
    if snapshot and cache is not None:
        rows = [rows.codes - 1 for rows in cache.hottest(cache.count)]
        observed.cached.append(np.concatenate(rows) if rows else np.empty(0, dtype=np.int64))


def _bounds(assembly: Assembly) -> Int64Array:
    groups, rows = (
        assembly.reader.page_group_count,
        assembly.sizes.pages_per_read * (rates.PAGE_BYTES // rates.ROW_BYTES),
    )
    return np.arange(groups + 1, dtype=np.int64) * rows


def _cache_bounds(point: Point, observed: _Observed) -> dict[str, Scalar]:
    """Return what caches of the same number of rows would have answered of the same requests."""
    if not observed.cache_tuples:
        return {}
    requests = len(observed.keys) - observed.first
    best = min_hits(observed.keys[observed.first :], point.master_rows, max(observed.capacities))
    row: dict[str, Scalar] = {"min_share": best / requests}
    if not point.option("rivals", 1):
        return row
    delay = round(observed.slots / max(1e-9, 1 - observed.hit_share))
    row["delay"] = delay
    for name, hits in SIMULATED.items():
        answered = hits(observed.keys, point.master_rows, observed.cache_tuples, delay=delay, first=observed.first)
        row[f"{name}_share"] = answered / requests
    at_once = SIMULATED["lru"](observed.keys, point.master_rows, observed.cache_tuples, first=observed.first)
    row["lru_at_once_share"] = at_once / requests
    return row


def _read_bounds(observed: _Observed, by_key: Float64Array, costs: CostProfile) -> dict[str, Scalar]:
    """Return what reads have answered, and the most that any reads could with that queue and that cache."""
    stats, slots = observed.stats, observed.slots
    on_schedule, at_best, seconds = [], [], []
    page_group_reads = stats.page_reads / observed.pages_per_read
    page_group_bytes = stats.bytes_read / page_group_reads
    for cached in observed.cached or [np.empty(0, dtype=np.int64)]:
        missed = by_key.copy()
        missed[cached] = 0.0
        shares = np.add.reduceat(missed, observed.bounds[:-1]) / missed.sum()
        on_schedule.append(tuples_per_read_on_schedule(shares, slots))
        at_best.append(tuples_per_read_at_best(shares, slots))
        seconds.append(
            disk_seconds_on_schedule(
                shares,
                slots,
                request_seconds=costs.seek_seconds,
                page_group_seconds=page_group_bytes / costs.bytes_per_second,
                max_page_groups=max(1, observed.max_run),
            )
        )
    read = stats.read_hits + stats.absent
    disk = stats.read_requests * costs.seek_seconds + stats.bytes_read / costs.bytes_per_second
    return {
        "tuples_per_read": read / page_group_reads,
        "tuples_per_request": read / stats.read_requests,
        "on_schedule": float(np.mean(on_schedule)),
        "at_best": float(np.mean(at_best)),
        "disk_seconds_per_tuple": disk / read,
        "disk_seconds_on_schedule": float(np.mean(seconds)),
    }
