"""How often each page group is read in steady state, by the page choice; derived in docs/algorithms/cost_models.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.compile import kernel
from semistream.core.errors import InvalidSettingError
from semistream.policies.contract import PageChoice
from semistream.policies.page_choice import AtPosition, DueFrequent, OldestAndYoungest, OldestWaiting
from semistream_lab.cost.burst_cycle import settle_cycle
from semistream_lab.cost.read_cycles import at_position, due_frequent, oldest_and_youngest, oldest_first

GIANT_SHARE = 0.15
"""From this share of the waiting tuples on, one page group's reads are treated as bursts."""
_GROUP_GROWTH = 1.03


@dataclass(frozen=True)
class PageReads:
    """The reads of each page group for one tuple that enters the queue."""

    rates: Float64Array
    free: Float64Array
    """The time from read to read has a fixed part and one that is exponential, of this mean."""
    max_times: Float64Array
    """After so many times its mean the exponential part ends at the latest."""

    def variation(self) -> tuple[Float64Array, Float64Array]:
        """Return the mean of the part that varies, as it ends, and how much reads come by chance.

        The first is a part of the time from read to read, the second its variance as a part of its mean squared.
        """
        return _variation(self.rates, self.free, self.max_times)

    @property
    def tuples_per_read(self) -> float:
        """The tuples that leave the queue by one read: w_S."""
        return 1.0 / float(self.rates.sum())

    def mixed(self, other: PageReads) -> PageReads:
        """Return the mean of two states."""
        pairs = ((self.rates, other.rates), (self.free, other.free), (self.max_times, other.max_times))
        return PageReads(*(0.5 * (mine + its) for mine, its in pairs))

    def at(self, places: Int64Array) -> PageReads:
        """Return the reads of some page groups."""
        return PageReads(self.rates[places], self.free[places], self.max_times[places])

    def mean(self, values: Float64Array) -> float:
        """Return the mean of a value of page groups over the reads."""
        return float((self.rates * values).sum() / self.rates.sum())


@dataclass(frozen=True)
class _Demand:
    """Page groups in groups of about the same share, the largest share first."""

    share: Float64Array  # π
    count: Float64Array
    group_of: Int64Array
    """The group of each page group, or -1 if nothing asks for it."""
    ramp: Float64Array
    """The part of the demand that starts at nothing after a read and grows evenly until the next."""

    @classmethod
    def of(cls, shares: Float64Array, ramps: Float64Array | None) -> _Demand:
        return cls(*_grouped(shares, np.zeros(len(shares)) if ramps is None else ramps))

    def reads(
        self, rates: Float64Array, free: Float64Array | None = None, max_times: Float64Array | None = None
    ) -> PageReads:
        """Return the reads of single page groups, given those of each group's."""
        of_groups = [values if values is None else np.append(values, 0.0) for values in (rates, free, max_times)]
        nothing = np.zeros(len(self.group_of))
        return PageReads(*(nothing if values is None else values[self.group_of] for values in of_groups))


def reads_by(choice: PageChoice, shares: Float64Array, slots: float, ramps: Float64Array | None = None) -> PageReads:
    """Return the reads of a queue of `slots` tuples, kept full; `shares` of the page groups must sum up to 1.

    `ramps` is the part of each page group's demand that starts at nothing after a read and grows evenly until the next.
    """
    demand = _Demand.of(shares, ramps)
    share, count, ramp, slots = demand.share, demand.count, demand.ramp, float(slots)
    if isinstance(choice, AtPosition):
        return demand.reads(*at_position(share, count, slots, choice.share, choice.patience))
    if isinstance(choice, DueFrequent):
        glides = choice.decay is not None
        return demand.reads(due_frequent(share, count, ramp, slots, choice.eagerness, choice.entry, glides))
    if isinstance(choice, OldestAndYoungest):
        return demand.reads(*oldest_and_youngest(share, count, slots))
    if isinstance(choice, OldestWaiting):
        if share[0] >= GIANT_SHARE and count.sum() > 1 and ramp[0] < 0.5:
            return demand.reads(settle_cycle(share, count, slots))
        return demand.reads(oldest_first(share, count, ramp, slots))
    raise InvalidSettingError(
        f"No cost model knows the page choice {type(choice).__name__}: "
        f"add it to semistream_lab/cost/read_frequencies.py."
    )


@kernel
def _grouped(shares: Float64Array, ramps: Float64Array) -> tuple[Float64Array, Float64Array, Int64Array, Float64Array]:
    """Return the mean share and the number of each group, the group of each page group, and the mean ramps."""
    growth = math.log(_GROUP_GROWTH)
    step_of = np.empty(len(shares), dtype=np.int64)
    step, low, high = 0, 1.0, 0.0
    first, last = np.iinfo(np.int64).max, -1
    for place in range(len(shares)):
        share = shares[place]
        if share <= 0:
            step_of[place] = -1
            continue
        if not low < share < high:  # neighbours are often of the same step
            step = max(0, round(-math.log(share) / growth))
            low, high = math.exp(-(step + 0.5) * growth), math.exp(-(step - 0.5) * growth)
            first, last = min(first, step), max(last, step)
        step_of[place] = step
    steps = max(0, last - first + 1)
    counts, sums, ramped = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    for place in range(len(shares)):
        if step_of[place] >= 0:
            step = step_of[place] - first
            counts[step] += 1
            sums[step] += shares[place]
            ramped[step] += shares[place] * ramps[place]
    group_of_step = np.cumsum(counts > 0) - 1
    for place in range(len(shares)):
        if step_of[place] >= 0:
            step_of[place] = group_of_step[step_of[place] - first]
    used = np.flatnonzero(counts)
    return sums[used] / counts[used], counts[used], step_of, ramped[used] / sums[used]


@kernel
def _variation(rates: Float64Array, free: Float64Array, max_times: Float64Array) -> tuple[Float64Array, Float64Array]:
    free_part, memoryless = np.zeros(len(rates)), np.zeros(len(rates))
    for place in range(len(rates)):
        varied = rates[place] * free[place]
        if varied > 0:
            beyond = math.exp(-max_times[place])
            first = 1 - beyond
            lost = max_times[place] * beyond if beyond > 0 else 0.0
            free_part[place] = varied * first
            memoryless[place] = min(1.0, max(0.0, varied * varied * (2 * (first - lost) - first * first)))
    return free_part, memoryless
