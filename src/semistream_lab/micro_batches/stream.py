"""A stream of keys that is cut into micro-batches by a trigger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.clock import ModelClock
from semistream_lab.micro_batches.task import LeftRows, MicroBatchTask


class KeySource(Protocol):
    """Draws the keys of a stream."""

    def draw(self, count: int) -> Int64Array:
        """Return the next keys."""


@dataclass(frozen=True)
class MicroBatch:
    """What one micro-batch did."""

    rows: int
    """The rows of the stream that came with it."""
    left: LeftRows
    waiting: int
    """The rows that wait after it."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.left.ended - self.left.began


class TriggeredStream:
    """Gives a task the rows of a steady stream, as Spark does: at a trigger, all that have come by then.

    The next micro-batch begins at the next tick of the trigger, or at once if the last one took longer than that.
    """

    def __init__(self, keys: KeySource, rate: float, trigger_seconds: float, clock: ModelClock) -> None:
        self._keys = keys
        self._rate = rate
        self._trigger_seconds = trigger_seconds
        self._clock = clock
        self._start = clock.now()
        self._taken = 0

    def batches(self, task: MicroBatchTask) -> Iterator[MicroBatch]:
        """Join one micro-batch after the other, without an end."""
        clock, tick = self._clock, 0
        while True:
            tick = max(tick + 1, int((clock.now() - self._start) / self._trigger_seconds))
            clock.sleep_until(self._start + tick * self._trigger_seconds)
            come = int((clock.now() - self._start) * self._rate + 1e-6)
            count, first = come - self._taken, self._taken
            self._taken = come
            events = self._start + np.arange(first, come, dtype=np.float64) / self._rate
            left = task.join(self._keys.draw(count), events)
            yield MicroBatch(count, left, len(task.waiting))


@dataclass(frozen=True)
class Latencies:
    """How long rows took, at some percentiles."""

    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, seconds: Float64Array) -> Latencies:
        """Return the percentiles of some rows."""
        p50, p99 = np.percentile(seconds, (50, 99))
        return cls(float(p50), float(p99), float(seconds.max()))
