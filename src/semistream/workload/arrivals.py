"""When the tuples of a stream arrive."""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import Protocol

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.workload.randomness import random_for
from semistream.workload.settings import number_from, positive_number, whole_number


class ArrivalSource(Protocol):
    """Gives the arrival times of a stream's tuples, in seconds since the stream began.

    Times must never fall, and must be the same however the takes are cut. A source that ends must give fewer times than
    asked for when it does, and none from then on. Not safe to call from two threads at once.
    """

    def take(self, count: int) -> Float64Array:
        """Return the arrival seconds of the next `count` tuples."""


class ConstantArrivals:
    """Tuples that arrive at equal distances, `rate` a second, the first one at once."""

    def __init__(self, rate: float) -> None:
        self._rate = positive_number("rate", rate)
        self._taken = 0

    def take(self, count: int) -> Float64Array:
        """Return the arrival seconds of the next `count` tuples."""
        numbers = _next_numbers(self._taken, count)
        self._taken += len(numbers)
        return numbers / self._rate


class PoissonArrivals:
    """Tuples that arrive independently of each other, `rate` a second on average."""

    def __init__(self, rate: float, seed: int) -> None:
        self._rate = positive_number("rate", rate)
        self._random = random_for("poisson arrivals", seed)
        self._last_seconds = 0.0

    def take(self, count: int) -> Float64Array:
        """Return the arrival seconds of the next `count` tuples."""
        gaps = self._random.standard_exponential(whole_number("count", count, least=0)) / self._rate
        if len(gaps) == 0:
            return gaps
        gaps[0] += self._last_seconds
        moments: Float64Array = np.cumsum(gaps)
        self._last_seconds = float(moments[-1])
        return moments


class IntermittentArrivals:
    """Tuples that arrive at equal distances for `on_seconds` and then not at all for `off_seconds`, again and again.

    While the stream is on, `rate` tuples arrive a second; the mean over all time is lower.
    """

    def __init__(self, rate: float, on_seconds: float, off_seconds: float) -> None:
        self._rate = positive_number("rate", rate)
        self._on_seconds = positive_number("on_seconds", on_seconds)
        self._off_seconds = number_from("off_seconds", off_seconds, least=0)
        self._taken = 0

    def take(self, count: int) -> Float64Array:
        """Return the arrival seconds of the next `count` tuples."""
        numbers = _next_numbers(self._taken, count)
        self._taken += len(numbers)
        busy_seconds = numbers / self._rate
        rounds = np.floor(busy_seconds / self._on_seconds)
        since_start = np.maximum(busy_seconds - rounds * self._on_seconds, 0.0)
        return rounds * (self._on_seconds + self._off_seconds) + since_start


class BurstyArrivals:
    """The bursty, self-similar stream of the HYBRIDJOIN paper: the sum of on/off sources of very different pace.

    Source i, from 1 to `sources`, has bandwidth 2^i: that many tuples a step while it is on. The sources wait in a
    priority queue by the time at which they are due. At each step every source that is due is switched, and is due
    again after random × step × its bandwidth, so the widest sources are the slowest to change. All are off and due at
    first. A step's tuples are spread evenly over it. On average half of the bandwidth is on: 1,023 tuples a step for
    ten sources. With `mean_rate` the bandwidths are scaled so that so many tuples arrive a second on average.

    Deviations from the printed pseudo-code: each source has its own flag, the first source takes part, all sources that
    are due at a step are switched instead of one, and a source that is due twice by then is switched twice.
    """

    def __init__(self, step_seconds: float, seed: int, sources: int = 10, *, mean_rate: float | None = None) -> None:
        self._step_seconds = positive_number("step_seconds", step_seconds)
        self._bandwidths = [2**number for number in range(1, whole_number("sources", sources, least=1) + 1)]
        mean_bandwidth = sum(self._bandwidths) / 2
        self.mean_rate = (
            mean_bandwidth / self._step_seconds if mean_rate is None else positive_number("mean_rate", mean_rate)
        )
        self._scale = 1.0 if mean_rate is None else self.mean_rate * self._step_seconds / mean_bandwidth
        self._random = random_for("bursty arrivals", seed)
        self._due = [(0.0, source) for source in range(len(self._bandwidths))]
        heapify(self._due)
        self._is_on = [False] * len(self._bandwidths)
        self._bandwidth = 0
        self._step = 0
        self._emitted = 0
        self._taken = 0

    def take(self, count: int) -> Float64Array:
        """Return the arrival seconds of the next `count` tuples; costs Python time only for each switch of a source."""
        numbers = _next_numbers(self._taken, count)
        if len(numbers) == 0:
            return numbers
        self._taken += len(numbers)
        wanted = numbers / self._scale
        steps, bandwidths, emitted = self._stretches_until(float(wanted[-1]))
        tuples_before = np.append(np.searchsorted(wanted, emitted), len(wanted))
        stretch = np.repeat(np.arange(len(steps)), np.diff(tuples_before))
        inside = (wanted - emitted[stretch]) / bandwidths[stretch]
        return (steps[stretch] + inside) * self._step_seconds

    def _stretches_until(self, wanted: float) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return first step, bandwidth and tuples emitted before, of each stretch with a constant bandwidth above 0.

        The last stretch is the one that emits tuple number `wanted`; the next call begins with it.
        """
        stretches: list[tuple[int, int, int]] = []
        while True:
            first_step, bandwidth, emitted = self._step, self._bandwidth, self._emitted
            next_step = max(first_step, int(np.ceil(self._due[0][0])))
            if bandwidth:
                stretches.append((first_step, bandwidth, emitted))
                if emitted + bandwidth * (next_step - first_step) > wanted:
                    break
            self._step = next_step
            self._emitted += bandwidth * (next_step - first_step)
            self._switch_sources_due()
        steps, bandwidths, before = np.array(stretches, dtype=np.float64).T
        return steps, bandwidths, before

    def _switch_sources_due(self) -> None:
        while self._due[0][0] <= self._step:
            due_step, source = self._due[0]
            bandwidth = self._bandwidths[source]
            self._is_on[source] = not self._is_on[source]
            self._bandwidth += bandwidth if self._is_on[source] else -bandwidth
            heapreplace(self._due, (due_step + self._random.random() * bandwidth, source))


def _next_numbers(first: int, count: int) -> Float64Array:
    return np.arange(first, first + whole_number("count", count, least=0), dtype=np.float64)
