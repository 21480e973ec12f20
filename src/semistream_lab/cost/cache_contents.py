"""Which master tuples a cache that learns holds, and the reads for what it does not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.policies.caching import AboveRate, AboveThreshold
from semistream.policies.contract import Admission, PageChoice
from semistream_lab.cost.cache_turnover import MAX_CACHED, cached_after, entered_by
from semistream_lab.cost.key_shares import KeyShares
from semistream_lab.cost.read_frequencies import PageReads, reads_by

_FIRST_STEP = 0.5
_STEP_GROWTH = 1.25
_FIRST_WINDOW = 1.5
"""How many queues of the stream have come when a page group is read first, one to two; chosen by measurements."""
_PARTS = 8
_STEADY_QUEUES = 1e5


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

    A key that is not cached enters when more than a threshold of its tuples wait at a read of its page group; their
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
        passed, step = _FIRST_STEP, _FIRST_STEP
        tuples = reads_made = rows_read = 0.0
        rows = np.diff(self.bounds).astype(np.float64)
        missed, reads = self._reads(cached, np.zeros_like(cached))
        while passed < end * (1 - 1e-9):
            border = start if passed < start * (1 - 1e-9) else end
            step = min(step, border - passed)
            if passed >= start * (1 - 1e-9):
                step = min(step, (end - start) / _PARTS)
            # The step is made twice, the second time with what the first says of its end: Heun's rule.
            ahead, ramp = self._step(cached, missed, reads, step * self.slots / missed)
            now_missed, now_reads = self._reads(ahead, ramp)
            halfway = 0.5 * (missed + now_missed)
            cached, ramp = self._step(cached, halfway, reads.mixed(now_reads), step * self.slots / halfway)
            now_missed, now_reads = self._reads(cached, ramp)
            if passed >= start * (1 - 1e-9):
                # The mean of both ends of a step: with one end alone all that is learned would come late.
                for part_missed, part in ((missed, reads), (now_missed, now_reads)):
                    made = 0.5 * step / part.tuples_per_read
                    tuples += 0.5 * step / part_missed
                    reads_made += made
                    rows_read += made * part.mean(rows)
            missed, reads = now_missed, now_reads
            passed += step
            step *= _STEP_GROWTH
        queue = end - start
        return CachedState(1 - queue / tuples, queue / reads_made, rows_read / reads_made)

    def _after_first_reads(self) -> Float64Array:
        """Return the chances when the tuples that filled the queue have left; what is asked for most is read first."""
        slots = np.full(len(self.shares.group_sizes), float(self.slots))
        means = self.shares.group_shares / self.shares.group_sizes * slots * _FIRST_WINDOW
        entered = entered_by(_wanted(self.admission, 2 * slots, self.slots), means)
        held = np.cumsum(entered * self.shares.group_sizes)
        return np.where(held <= self.capacity, np.minimum(entered, MAX_CACHED), 0.0)

    def _reads(self, cached: Float64Array, ramp: Float64Array) -> tuple[float, PageReads]:
        """Return the share of the stream that the cache misses, and the reads for it."""
        shares = self.shares
        missed = shares.missed_by_page_group(self.bounds, cached)
        total = float(missed.sum())
        if shares.sorted:
            steady = shares.missed_by_page_group(self.bounds, 1 - (1 - cached) * (1 - ramp))
            ramps = np.clip(1 - steady / np.maximum(missed, 1e-300), 0.0, 1.0)
        else:
            missing = shares.group_shares * (1 - cached)
            ramps = np.full(len(missed), float((missing * ramp).sum() / missing.sum()))
        # Tuples that were handed over before their key was cached still enter after its read. By a part δ of a cycle
        # late, what grows evenly waits for 1/3 + δ(1 − δ) of it.
        late = min(0.5, self.handover_slots / (2 * self.slots))
        ramps *= max(0.0, 1.0 - 6.0 * late * (1.0 - late))
        return total, reads_by(self.choice, missed / total, self.slots, ramps)

    def _step(
        self, cached: Float64Array, missed: float, reads: PageReads, tuples: float
    ) -> tuple[Float64Array, Float64Array]:
        """Return the chances of keys to be cached after `tuples` more of the stream, and how their misses ramp up."""
        shares = self.shares
        if shares.sorted:
            reads = reads.at(shares.page_group_of_groups(self.bounds))
            between = 1 / np.maximum(reads.rates, 1e-30)
            free, max_times = reads.free, reads.max_times
            free_part, memoryless = reads.variation()
        else:
            between = np.full(len(cached), len(reads.rates) / reads.rates.sum())
            free, max_times, free_part, memoryless = (
                np.full(len(cached), reads.mean(values)) for values in (reads.free, reads.max_times, *reads.variation())
            )
        return cached_after(
            shares.group_sizes,
            shares.group_shares / shares.group_sizes,
            cached,
            _wanted(self.admission, between, self.slots),
            between,
            free,
            max_times,
            free_part,
            memoryless,
            float(missed),
            float(tuples),
            float(self.handover_slots),
            float(self.capacity),
            self.at_random,
        )


def _wanted(admission: Admission, between: Float64Array, slots: int) -> Float64Array:
    """Return how many tuples of a key must wait so that it enters."""
    if isinstance(admission, AboveRate):
        limit = np.maximum(1.0, admission.threshold * np.minimum(1.0, between / (2 * slots)))
        wanted: Float64Array = np.floor(limit) + 1
        return wanted
    assert isinstance(admission, AboveThreshold)
    return np.full(len(between), np.floor(admission.threshold) + 1)
