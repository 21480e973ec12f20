"""Measures how long tuples wait, and how many queue up before the join, while they arrive at a given rate."""

from __future__ import annotations

from copy import copy

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.clock import ModelClock
from semistream.core.errors import InvalidSettingError
from semistream.engine.assembly import Assembly
from semistream.engine.phases.stream_input import KeyInput
from semistream.generator import BurstyArrivals, GeneratedArrivals, IntermittentArrivals, PoissonArrivals, Workload
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.point import Point, Row

_STEP_SECONDS = 0.1
"""The step of the bursty generator, which the papers do not print."""
_CHUNK_TUPLES = 4096
_BLOCK_TUPLES = 1 << 18


def run(point: Point) -> Row:
    """Measure at an arrival rate; the option `arrivals` is poisson (the usual), bursty or intermittent.

    Warm-up and measurement last as many seconds as the options `warm_up` and `seconds` say, and with the option
    `rounds` at least so many times what a full queue takes to arrive: a tuple of MESHJOIN stays for half of that.
    Intermittent streams are measured in their first silence instead. With the option `tick_tuples` tuples are handed
    over in ticks of so many on average: an algorithm that waits for a part of its queue need not be woken by each.
    Of the stay of a tuple `processing_seconds` are those in which the join works, and does not wait for the stream.
    """
    if point.clock != "model":
        raise InvalidSettingError("Waiting at an arrival rate is measured on the model clock: choose --clock model.")
    clock = ModelClock(rates.costs_of(point))
    assembly = rates.assembly_of(point, clock)
    if dict(point.options).get("arrivals") == "intermittent":
        return _in_silence(point, assembly, clock)
    return _in_flow(point, assembly, clock)


def arrivals_of(point: Point) -> GeneratedArrivals:
    """Return when the tuples of a point arrive."""
    kind = dict(point.options).get("arrivals", "poisson")
    if kind == "intermittent":
        return IntermittentArrivals(point.arrival_rate, point.option("on_seconds"), point.option("off_seconds"))
    if kind == "bursty":
        return BurstyArrivals(_STEP_SECONDS, seed=point.seed, mean_rate=point.arrival_rate)
    return PoissonArrivals(point.arrival_rate, seed=point.seed)


class Ticks:
    """Hands tuples over only at the end of the tick in which they arrive."""

    def __init__(self, inside: GeneratedArrivals, tick_seconds: float) -> None:
        self._inside = inside
        self._tick_seconds = tick_seconds

    def take(self, count: int) -> Float64Array:
        """Return the seconds at which the next `count` tuples are handed over."""
        moments = self._inside.take(count)
        return np.ceil(moments / self._tick_seconds) * self._tick_seconds if self._tick_seconds else moments


def _in_flow(point: Point, assembly: Assembly, clock: ModelClock) -> Row:
    slots, stats = assembly.sizes.waiting_slots, assembly.stats
    tick_seconds = point.option("tick_tuples") / point.arrival_rate
    chunks = Workload(rates.workload(point).keys, Ticks(arrivals_of(point), tick_seconds)).chunks(_CHUNK_TUPLES)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    rounds = loop.rounds()
    full_seconds = point.option("rounds") * slots / point.arrival_rate
    warm_up = max(point.option("warm_up", 1200), full_seconds)
    seconds = max(point.option("seconds", 1200), full_seconds)
    moments = _moments_until(arrivals_of(point), warm_up + 2 * seconds)
    max_backlog = 0
    try:
        for _ in rounds:
            if clock.now() >= warm_up:
                break
        before, started, work = copy(stats), clock.now(), copy(clock.operations)
        for _ in rounds:
            arrived = int(np.searchsorted(moments, clock.now(), side="right"))
            max_backlog = max(max_backlog, arrived - stats.tuples_in)
            if clock.now() - started >= seconds:
                break
    finally:
        loop.close()
        rounds.close()
    ended, done = clock.now(), stats.since(before)
    passed, busy = ended - started, clock.costs.seconds(clock.operations.since(work))
    reads = max(1, done.read_requests)
    return {
        "tuples": done.tuples_out,
        "seconds": passed,
        "service_rate": done.tuples_out / passed,
        "mean_wait_seconds": done.mean_wait_seconds,
        "max_wait_seconds": stats.max_wait_seconds,
        "processing_seconds": done.mean_wait_seconds * busy / passed,
        "busy_share": busy / passed,
        "idle_seconds_per_read": (passed - busy) / reads,
        "tuples_per_read": done.tuples_out / reads,
        "taken_per_read": done.tuples_in / reads,
        "read_requests": done.read_requests,
        "waiting_tuples": loop.waiting.count,
        "waiting_slots": slots,
        "max_backlog_tuples": max_backlog,
    }


def _moments_until(arrivals: GeneratedArrivals, seconds: float) -> Float64Array:
    """Return when the tuples of a stream arrive, as far as some moment."""
    parts = [arrivals.take(_BLOCK_TUPLES)]
    while parts[-1][-1] < seconds:
        parts.append(arrivals.take(_BLOCK_TUPLES))
    return np.concatenate(parts)


def _in_silence(point: Point, assembly: Assembly, clock: ModelClock) -> Row:
    """Measure what still waits when the join has nothing left to do in the first silence, or when that ends."""
    chunks = Workload(rates.workload(point).keys, arrivals_of(point)).chunks(_CHUNK_TUPLES)
    loop, _ = assembly.start(KeyInput(chunks, clock))
    rounds = loop.rounds()
    silent_from = point.option("on_seconds")
    silent_until = silent_from + point.option("off_seconds")
    waiting_then: int | None = None
    try:
        for _ in rounds:
            if clock.now() >= silent_from and waiting_then is None:
                waiting_then = loop.waiting.count
            if clock.now() >= silent_until or (loop.pausing and waiting_then is not None):
                break
    finally:
        loop.close()
        rounds.close()
    stats = assembly.stats
    return {
        "tuples": stats.tuples_out,
        "arrived": stats.tuples_in,
        "waiting_at_silence": waiting_then,
        "left_waiting": loop.waiting.count,
        "seconds_into_silence": min(clock.now(), silent_until) - silent_from,
        "silence_seconds": silent_until - silent_from,
        "waiting_slots": assembly.sizes.waiting_slots,
    }
