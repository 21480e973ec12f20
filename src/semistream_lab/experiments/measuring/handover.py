"""Measures the buffer between two phases that run side by side: how full it is, and how long tuples stay in it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from semistream.core.clock import ModelClock
from semistream.core.errors import InvalidSettingError
from semistream.engine.assembly import Assembly
from semistream.engine.loop import JoinLoop
from semistream.engine.phases.handover import Handover
from semistream.engine.phases.stream_input import KeyInput
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.point import Point, Row

_WARM_UP_QUEUES = 3.0


@dataclass
class _Samples:
    """The state after each round."""

    seconds: list[float] = field(default_factory=list)
    handed_over: list[int] = field(default_factory=list)
    """The tuples in the buffer."""
    waiting: list[int] = field(default_factory=list)
    entered: list[int] = field(default_factory=list)
    """The tuples that have ever left the buffer."""


def run(point: Point) -> Row:
    """Measure a point on the model clock."""
    clock = ModelClock(rates.costs_of(point))
    assembly = rates.assembly_of(point, clock)
    chunks = rates.workload(point).chunks(assembly.sizes.chunk_rows)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    handover = loop.handover
    if handover is None:
        raise InvalidSettingError(f"{point.algorithm} has no buffer between its phases: choose p- or op-cachejoin.")
    samples = _sampled(loop, handover, assembly, clock, point.queues)
    return {"waiting_slots": assembly.sizes.waiting_slots, **_row(samples, handover.slots)}


def _sampled(loop: JoinLoop, handover: Handover, assembly: Assembly, clock: ModelClock, queues: float) -> _Samples:
    samples, slots = _Samples(), assembly.sizes.waiting_slots
    warm, end = _WARM_UP_QUEUES * slots, (_WARM_UP_QUEUES + queues) * slots
    rounds = loop.rounds()
    try:
        for _ in rounds:
            left = assembly.stats.read_hits + assembly.stats.absent
            if left < warm:
                continue
            samples.seconds.append(clock.now())
            samples.handed_over.append(handover.held_count)
            samples.waiting.append(loop.waiting.count)
            samples.entered.append(loop.waiting.entered)
            if left >= end:
                break
    finally:
        loop.close()
        rounds.close()
    return samples


def _row(samples: _Samples, slots: int) -> Row:
    """Weigh rounds by their seconds; a round begins with tuples leaving the buffer and ends with others entering it."""
    spans = np.diff(samples.seconds)
    after = np.array(samples.handed_over[1:], dtype=np.float64)
    moved = np.diff(samples.entered)
    before = np.array(samples.handed_over[:-1], dtype=np.float64) - moved
    whole = float(spans.sum())
    flow = float(moved.sum()) / whole
    mean = float(((before + after) / 2 * spans).sum()) / whole
    waiting = float((np.array(samples.waiting[1:]) * spans).sum()) / whole
    return {
        "rounds": len(spans),
        "handover_slots": slots,
        "full_share": float(spans[after >= slots].sum()) / whole,
        "empty_share": float(spans[before <= 0].sum()) / whole,
        "mean_fill": mean / slots,
        "handover_wait_seconds": mean / flow,
        "queue_wait_seconds": waiting / flow,
        "handover_wait_share": mean / (mean + waiting),
    }
