"""Measures one algorithm on a generated stream of keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass

from semistream.algorithms.assembly import Assembly
from semistream.algorithms.recipe import Recipe
from semistream.core.budget import MemoryBudget
from semistream.core.clock import Clock, ModelClock, WallClock
from semistream.core.costs import CostProfile
from semistream.core.stats import JoinStats
from semistream.engine.stream_input import KeyInput
from semistream.store.contract import MasterStore
from semistream.workload import Workload

_WARM_UP_QUEUES = 3.0
_ENOUGH_QUEUES = 10
_ENOUGH_TUPLES = 10_000
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
    profile: CostProfile | None = None,
    accounting: str = "real",
    seed: int = 0,
    seconds: float | None = None,
    parameters: Mapping[str, float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Join until `tuples` have left after the warm-up, or for `seconds`; on the model clock if a profile is given.

    The warm-up fills the queue and lets three times its size leave through the disk phase.
    """
    clock: Clock = WallClock() if profile is None else ModelClock(profile)
    assembly = Assembly(
        recipe, store, MemoryBudget(memory), clock, accounting=accounting, seed=seed, parameters=parameters
    )
    chunks = workload.chunks(assembly.chunk_rows)
    loop, _ = assembly.start(lambda reader: KeyInput(chunks, reader.locate, clock))
    stats = assembly.stats
    began = time.perf_counter()
    rounds = loop.rounds()
    fills_a_queue = recipe.name not in WITHOUT_A_QUEUE
    warm = _WARM_UP_QUEUES * assembly.sizes.waiting_slots if fills_a_queue else 0
    limit = 20 * warm
    try:
        for _ in rounds:
            if stats.read_hits + stats.absent >= warm or stats.tuples_out >= limit:
                break
        before, started = copy(stats), clock.now()
        for _ in rounds:
            done = stats.tuples_out - before.tuples_out
            if progress is not None:
                progress(done, tuples)
            if (done >= tuples and seconds is None) or (seconds is not None and clock.now() - started >= seconds):
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
        peak_memory_bytes=assembly.budget.peak_bytes,
        fills_a_queue=fills_a_queue,
    )
