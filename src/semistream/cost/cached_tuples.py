"""Which master tuples a cache that learns holds, and the reads for what it does not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.cost.key_shares import KeyShares
from semistream.cost.page_reads import PageReads, reads_by
from semistream.cost.poisson import mixed_poisson_at_least, poisson_at_least_by_part
from semistream.cost.root import where_rising_meets
from semistream.policies.caching import AboveRate, AboveThreshold
from semistream.policies.contract import Admission, PageChoice

_FIRST_STEP = 0.5
_STEP_GROWTH = 1.25
_FIRST_WINDOW = 1.5
"""How many queues of the stream have come when a partition is read first, one to two; chosen by measurements."""
_PARTS = 8
_STEADY_QUEUES = 1e5
_MOST_CACHED = 1 - 1e-9
"""A chance never becomes certainty, so that there is always a tuple to read for."""
_LEAST_FREQUENT_LOSS = 0.09
"""The part of a cache that overwrites its least frequent which newcomers hold in turn; measured, not derived."""


@dataclass(frozen=True)
class CachedState:
    """What the cache answers over a run, and the reads for what it does not."""

    share: float  # p_N
    tuples_per_read: float  # w_S
    """The tuples that leave the queue by one read."""
    rows_per_read: float  # d


@dataclass(frozen=True)
class LearningCache:
    """A cache that master tuples enter by their matches in a read, and leave when others need their place.

    A key that is not cached enters when more than a threshold of its tuples wait at a read of its partition; their
    number has Poisson's law, its mean being the key's share times the tuples of the stream since the last read. While
    the cache has room nothing leaves. Once it is full, overwriting at random lets each cached key stay for an
    exponential time, the same for all keys and such that the cache stays full; overwriting the least frequent leaves
    the most frequent keys that have entered.
    """

    shares: KeyShares
    bounds: Int64Array
    choice: PageChoice
    admission: AboveThreshold | AboveRate
    at_random: bool
    """A full cache overwrites at random, and not the least frequent."""
    capacity: int  # h_R
    slots: int  # h_S
    handover_slots: int = 0  # i_B

    def over(self, start: float, end: float) -> CachedState:
        """Return the mean from `start` to `end`, both counted in queues of tuples that left through the disk phase.

        With an infinite end it is the steady state.
        """
        if np.isinf(end):
            start, end = _STEADY_QUEUES, _STEADY_QUEUES * 1.0001
        cached = self._after_first_reads()
        ramp = np.zeros_like(cached)
        passed, step = _FIRST_STEP, _FIRST_STEP
        tuples = reads_made = rows_read = 0.0
        rows = np.diff(self.bounds).astype(np.float64)
        while True:
            missed, reads = self._reads(cached, ramp)
            border = start if passed < start else end
            step = min(step, border - passed)
            if passed >= start:
                step = min(step, (end - start) / _PARTS)
                tuples += step / missed
                reads_made += step / reads.tuples_per_read
                rows_read += step / reads.tuples_per_read * reads.mean(rows)
            passed += step
            if passed >= end * (1 - 1e-9):
                break
            cached, ramp = self._step(cached, missed, reads, step * self.slots / missed)
            step *= _STEP_GROWTH
        queue = end - start
        return CachedState(1 - queue / tuples, queue / reads_made, rows_read / reads_made)

    def _after_first_reads(self) -> Float64Array:
        """Return the chances when the tuples that filled the queue have left; what is asked for most is read first."""
        slots = np.full(len(self.shares.group_sizes), float(self.slots))
        means = self.shares.group_shares / self.shares.group_sizes * slots * _FIRST_WINDOW
        entered = mixed_poisson_at_least(_wanted(self.admission, 2 * slots, self.slots), means, np.zeros(len(slots)))
        held = np.cumsum(entered * self.shares.group_sizes)
        return np.where(held <= self.capacity, np.minimum(entered, _MOST_CACHED), 0.0)

    def _reads(self, cached: Float64Array, ramp: Float64Array) -> tuple[float, PageReads]:
        """Return the share of the stream that the cache misses, and the reads for it."""
        shares = self.shares
        missed = shares.missed_by_partition(self.bounds, cached)
        total = float(missed.sum())
        if shares.sorted:
            steady = shares.missed_by_partition(self.bounds, 1 - (1 - cached) * (1 - ramp))
            ramps = np.clip(1 - steady / np.maximum(missed, 1e-300), 0.0, 1.0)
        else:
            missing = shares.group_shares * (1 - cached)
            ramps = np.full(len(missed), float((missing * ramp).sum() / missing.sum()))
        # Tuples that were handed over before their key was cached still enter after its read: no ramp is left then.
        ramps *= max(0.0, 1.0 - 2.5 * self.handover_slots / self.slots)
        return total, reads_by(self.choice, missed / total, self.slots, ramps)

    def _step(
        self, cached: Float64Array, missed: float, reads: PageReads, tuples: float
    ) -> tuple[Float64Array, Float64Array]:
        """Return the chances of keys to be cached after `tuples` more of the stream, and how their misses ramp up."""
        shares = self.shares
        if shares.sorted:
            place = shares.partition_of_groups(self.bounds)
            between, spread = 1 / np.maximum(reads.rates[place], 1e-30), reads.spreads[place]
        else:
            between = np.full(len(cached), len(reads.rates) / reads.rates.sum())
            spread = np.full(len(cached), reads.mean(reads.spreads))
        wanted = _wanted(self.admission, between, self.slots)
        window = between / missed
        means = shares.group_shares / shares.group_sizes * window
        enters = mixed_poisson_at_least(wanted, means, spread)
        # From an overwriting to the next read it is a random part of a cycle; if cycles have no memory, a whole one.
        memoryless = np.minimum(spread, 1.0) ** 2
        first = (1 - memoryless) * poisson_at_least_by_part(wanted, means) + memoryless * enters
        rest = 0.5 * (1 + memoryless)
        # What is handed over is seen by a read only when it has passed the buffer.
        late = self.handover_slots / between
        outside = rest + late + (1 - first) / np.maximum(enters, 1e-12)

        def after(pace: Float64Array, leaving: float) -> Float64Array:
            limit = pace / (pace + leaving)
            kept: Float64Array = limit + (cached - limit) * np.exp(-pace - leaving)
            return kept

        def held(minus_log_leaving: float) -> float:
            return float((shares.group_sizes * after(pace, float(np.exp(-minus_log_leaving)))).sum())

        found = np.minimum(after(tuples / window * np.maximum(enters, 1e-12), 0.0), _MOST_CACHED)
        if float((shares.group_sizes * found).sum()) <= self.capacity:
            return found, rest * (1 - memoryless) / outside
        if self.at_random:
            pace = tuples / (window * outside)
            leaving = np.exp(-where_rising_meets(held, self.capacity, -25.0, 40.0, precision=1e-7))
            found = np.minimum(after(pace, float(leaving)), _MOST_CACHED)
        else:
            kept = np.cumsum(shares.group_sizes * found) <= (1 - _LEAST_FREQUENT_LOSS) * self.capacity
            found = np.where(kept, found, 0.0)
        return found, rest * (1 - memoryless) / outside


def _wanted(admission: Admission, between: Float64Array, slots: int) -> Float64Array:
    """Return how many tuples of a key must wait so that it enters."""
    if isinstance(admission, AboveRate):
        limit = np.maximum(1.0, admission.threshold * np.minimum(1.0, between / (2 * slots)))
        wanted: Float64Array = np.floor(limit) + 1
        return wanted
    assert isinstance(admission, AboveThreshold)
    return np.full(len(between), np.floor(admission.threshold) + 1)
