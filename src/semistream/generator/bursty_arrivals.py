"""Arrivals in bursts that look alike from near and from far."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.generator.arrival_times import GeneratedArrivals, positions
from semistream.generator.randomness import random_for
from semistream.generator.settings import positive_number, whole_number

_MAX_SOURCES = 16
_MIN_WINDOW_STEPS = 1 << 14
_SLOWEST_SWITCHES_PER_WINDOW = 16
_DRAWN_BEYOND_MEAN = 64


class BurstyArrivals(GeneratedArrivals):
    """The bursty, self-similar stream of the HYBRIDJOIN paper: the sum of on/off sources of very different pace.

    Source i, from 1 to `sources`, has bandwidth 2^i: that many tuples a step while it is on. At each step every source
    that is due is switched, and is due again after random × step × its bandwidth, so the widest sources are the slowest
    to change. A step's tuples are spread evenly over it. On average half of the bandwidth is on: 1,023 tuples a step
    for ten sources. With `mean_rate` the bandwidths are scaled so that so many tuples arrive a second on average.

    Time is cut into windows of at least 16,384 steps, and of 16 times the longest interval of the slowest source. Every
    second window mirrors the one before: a source is on where it was off. So both together have exactly the mean number
    of tuples, the windows of a position are known without those before them, and a window alone still follows the law.

    Deviations from the printed pseudo-code: each source has its own flag, the first source takes part, all sources that
    are due at a step are switched instead of one, a source that is due twice by then is switched twice, and the sources
    begin each window in their steady state instead of off and due, with every second window a mirror of the first.
    """

    def __init__(self, step_seconds: float, seed: int, sources: int = 10, *, mean_rate: float | None = None) -> None:
        self._step_seconds = positive_number("step_seconds", step_seconds)
        if whole_number("sources", sources, minimum=1) > _MAX_SOURCES:
            raise InvalidSettingError(f"sources must be at most {_MAX_SOURCES}, but {sources} was given.")
        self._bandwidths = [2**number for number in range(1, sources + 1)]
        self._full_bandwidth = sum(self._bandwidths)
        natural_rate = self._full_bandwidth / 2 / self._step_seconds
        super().__init__(natural_rate if mean_rate is None else positive_number("mean_rate", mean_rate))
        self._scale = self.mean_rate / natural_rate
        self._window_steps = max(_MIN_WINDOW_STEPS, self._bandwidths[-1] * _SLOWEST_SWITCHES_PER_WINDOW)
        self._pair_tuples = self._window_steps * self._full_bandwidth
        self._seed = whole_number("seed", seed, minimum=0)
        self._pair = -1
        self._pair_bandwidth: Int64Array = np.empty(0, dtype=np.int64)
        self._pair_before: Int64Array = np.empty(0, dtype=np.int64)

    def _moments(self, first: int, count: int) -> Float64Array:
        wanted: Float64Array = positions(first, count) / self._scale
        pairs = np.floor(wanted / self._pair_tuples)
        pair_begins = np.flatnonzero(np.diff(pairs, prepend=-1.0))
        for begin, end in pairwise([*pair_begins.tolist(), count]):
            wanted[begin:end] = self._moments_of_pair(int(pairs[begin]), wanted[begin:end])
        return wanted

    def _moments_of_pair(self, pair: int, wanted: Float64Array) -> Float64Array:
        self._load_pair(pair)
        wanted = np.maximum(wanted - float(pair) * self._pair_tuples, 0.0)
        steps = np.searchsorted(self._pair_before, wanted, side="right") - 1
        into_step = (wanted - self._pair_before[steps]) / self._pair_bandwidth[steps]
        moments: Float64Array = (float(pair) * 2 * self._window_steps + steps + into_step) * self._step_seconds
        return moments

    def _load_pair(self, pair: int) -> None:
        """Compute the bandwidth of each step of two windows, and the tuples of the pair before each step."""
        if pair == self._pair:
            return
        random = random_for("bursty arrivals", self._seed, pair)
        window = np.zeros(self._window_steps, dtype=np.int64)
        for bandwidth in self._bandwidths:
            window += bandwidth * _is_on(random, bandwidth, self._window_steps)
        self._pair_bandwidth = np.concatenate([window, self._full_bandwidth - window])
        self._pair_before = np.cumsum(self._pair_bandwidth) - self._pair_bandwidth
        self._pair = pair


def _is_on(random: np.random.Generator, bandwidth: int, steps: int) -> Int64Array:
    """Return for each step whether a source is on (1) or off (0), beginning in its steady state."""
    was_on = int(random.integers(2))
    # What is left of an interval of uniform length, looked at from a moment that knows nothing of it.
    due = bandwidth * (1 - np.sqrt(random.random()))
    switches = np.zeros(steps, dtype=np.int64)
    while due < steps:
        count = int(2 * (steps - due) / bandwidth) + _DRAWN_BEYOND_MEAN
        dues = due + np.append(0.0, np.cumsum(random.random(count) * bandwidth))
        due = float(dues[-1])
        due_steps = np.ceil(dues[:-1]).astype(np.int64)
        switches += np.bincount(due_steps[due_steps < steps], minlength=steps)
    return (np.cumsum(switches) + was_on) & 1
