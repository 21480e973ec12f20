"""Measures one algorithm on a generated stream of keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass

import numpy as np

from semistream.core.budget import MemoryBudget
from semistream.core.clock import Clock, ModelClock, WallClock
from semistream.core.costs import CostProfile, Operations
from semistream.core.stats import JoinStats
from semistream.engine.assembly import Assembly
from semistream.engine.phases.stream_input import KeyInput
from semistream.engine.recipe import Recipe
from semistream.generator import Workload
from semistream.store.contract import MasterStore

_WARM_UP_QUEUES = 3.0
_ENOUGH_QUEUES = 10
_PARTS = 10
_ENOUGH_TUPLES = 10_000
MAX_TUPLES = 400_000_000
"""A measurement ends here even if hardly any tuple passes the disk phase."""
WITHOUT_A_QUEUE = ("inlj", "oracle")
"""Algorithms that answer tuples as they come."""


@dataclass(frozen=True)
class Measurement:
    """What one algorithm did after it had warmed up."""

    stats: JoinStats
    seconds: float
    waiting_slots: int
    warm_up_tuples: int
    wall_seconds: float
    peak_memory_bytes: int = 0
    """The most bytes of the budget that were held at one time."""
    fills_a_queue: bool = True
    """Tuples wait until the queue is full; otherwise they are answered as they come."""
    operations: Operations | None = None
    """What was done, on the model clock."""
    part_rates: tuple[float, ...] = ()
    """The service rate in each of up to ten equal parts of the measured time."""
    cache_tuples: int = 0
    """How many master tuples the cache may hold."""
    pages_per_read: int = 0

    @property
    def service_rate(self) -> float:
        """Stream tuples joined per second."""
        return self.stats.tuples_out / self.seconds if self.seconds > 0 else float("inf")

    @property
    def is_long_enough(self) -> bool:
        """Whether the disk phase served ten times what can wait; shorter runs are noise."""
        if not self.fills_a_queue:
            return self.stats.tuples_out >= _ENOUGH_TUPLES
        return self.stats.read_hits + self.stats.absent >= _ENOUGH_QUEUES * self.waiting_slots


def measure(
    recipe: Recipe,
    store: MasterStore,
    workload: Workload,
    *,
    memory: int | str,
    tuples: int,
    queues: float = 0,
    profile: CostProfile | None = None,
    accounting: str = "real",
    seed: int = 0,
    seconds: float | None = None,
    parameters: Mapping[str, float] | None = None,
    max_tuples: int = MAX_TUPLES,
    whole_scans: bool = False,
    partitions: str = "aligned",
    stream_row_bytes: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Join until `tuples` have left after the warm-up, or for `seconds`; on the model clock if a profile is given.

    The warm-up fills the queue and lets three times its size leave through the disk phase. With `queues` the
    measurement goes on until so many times the queue's size has left through the disk phase, or `max_tuples` have
    left in all. With `whole_scans`, for algorithms that read the table in its order, it then goes on to the place in
    the table where it began. `partitions` is what a read for a key brings, as in `Assembly`, and `stream_row_bytes`
    what the papers' accounting takes for a stream tuple's size, 0 for their usual one.
    """
    clock: Clock = WallClock() if profile is None else ModelClock(profile)
    assembly = Assembly(
        recipe,
        store,
        MemoryBudget(memory),
        clock,
        accounting=accounting,
        stream_row_bytes=stream_row_bytes,
        seed=seed,
        parameters=parameters,
        partitions=partitions,
    )
    chunks = workload.chunks(assembly.sizes.chunk_rows)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    stats = assembly.stats
    began = time.perf_counter()
    rounds = loop.rounds()
    fills_a_queue = recipe.name not in WITHOUT_A_QUEUE
    warm = _WARM_UP_QUEUES * assembly.sizes.waiting_slots if fills_a_queue else 0
    limit = 20 * warm
    try:
        for _ in rounds:
            if _left_by_disk(stats) >= warm or stats.tuples_out >= limit:
                break
        before, started = copy(stats), clock.now()
        operations = copy(clock.model.operations) if clock.model is not None else None
        min_left = min(queues * assembly.sizes.waiting_slots, max_tuples) if fills_a_queue else 0
        moments = [(0, 0.0)]
        scan = max(1, assembly.reader.page_group_count) if whole_scans else 1
        for _ in rounds:
            done = stats.tuples_out - before.tuples_out
            moments.append((done, clock.now() - started))
            if progress is not None:
                progress(done, tuples)
            if seconds is not None:
                if clock.now() - started >= seconds:
                    break
            elif (
                done >= tuples
                and (done >= max_tuples or _left_by_disk(stats) - _left_by_disk(before) >= min_left)
                and (stats.read_requests - before.read_requests) % scan == 0
            ):
                break
    finally:
        loop.close()
        rounds.close()
    ended = clock.now()
    return Measurement(
        stats.since(before),
        ended - started,
        assembly.sizes.waiting_slots,
        before.tuples_out,
        time.perf_counter() - began,
        peak_memory_bytes=assembly.budget.used_bytes,
        fills_a_queue=fills_a_queue,
        operations=clock.model.operations.since(operations) if clock.model is not None and operations else None,
        part_rates=_part_rates(moments),
        cache_tuples=assembly.sizes.cache_tuples,
        pages_per_read=assembly.sizes.pages_per_read,
    )


def _left_by_disk(stats: JoinStats) -> int:
    return stats.read_hits + stats.absent


def _part_rates(moments: list[tuple[int, float]]) -> tuple[float, ...]:
    """Return the rates in equal parts of the time, from the tuples that had left at each moment."""
    done, at = np.array(moments, dtype=np.float64).T
    edges = np.unique(np.searchsorted(at, np.linspace(0, at[-1], _PARTS + 1)))
    spans = np.diff(at[edges])
    return tuple((np.diff(done[edges])[spans > 0] / spans[spans > 0]).tolist())
