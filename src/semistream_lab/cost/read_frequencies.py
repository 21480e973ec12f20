"""How often each page group is read in steady state, by the page choice; derived in docs/algorithms/cost_models.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.policies.contract import PageChoice
from semistream.policies.page_choice import AtPosition, DueFrequent, OldestAndYoungest, OldestWaiting
from semistream_lab.cost.burst_cycle import settle_cycle
from semistream_lab.cost.root import where_rising_meets

GIANT_SHARE = 0.15
"""From this share of the waiting tuples on, one page group's reads are treated as bursts."""
_GROUP_GROWTH = 1.03
_MAX_ROUNDS = 100
_HALF_ROOT_PI = 0.8862
_MAX_RAMP = 0.5
"""Up to which part of its demand that starts anew a page group stays on schedule; measured, not derived."""
_MEAN_WHEN_ENTERING = 4 / 3
"""How much higher the mean matches of recent reads are when a frequent page group enters than when it is due: the
page groups of high demand are read one after the other. Measured, not derived."""


@dataclass(frozen=True)
class PageReads:
    """The reads of each page group for one tuple that enters the queue."""

    rates: Float64Array
    free: Float64Array
    """The time from read to read has a fixed part and one that is exponential, of this mean."""
    max_times: Float64Array
    """After so many times its mean the exponential part ends at the latest."""

    @property
    def free_part(self) -> Float64Array:
        """The mean of the part that varies, as it ends, as a part of the time from read to read."""
        part: Float64Array = self.rates * self.free * -np.expm1(-self.max_times)
        return part

    @property
    def memoryless(self) -> Float64Array:
        """How much reads come by chance: the variance of the time from read to read, as a part of its mean squared."""
        beyond = np.exp(-self.max_times)
        first = 1 - beyond
        variance = 2 * (first - np.where(beyond > 0, self.max_times, 0.0) * beyond) - first * first
        part: Float64Array = np.clip((self.rates * self.free) ** 2 * variance, 0.0, 1.0)
        return part

    @property
    def tuples_per_read(self) -> float:
        """The tuples that leave the queue by one read: w_S."""
        return 1.0 / float(self.rates.sum())

    def mixed(self, other: PageReads) -> PageReads:
        """Return the mean of two states."""
        pairs = ((self.rates, other.rates), (self.free, other.free), (self.max_times, other.max_times))
        return PageReads(*(0.5 * (mine + its) for mine, its in pairs))

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
        group_of = np.full(len(shares), -1, dtype=np.int64)
        used = np.flatnonzero(shares > 0)
        steps = np.round(-np.log(shares[used]) / np.log(_GROUP_GROWTH)).astype(np.int64)
        _, group_of[used] = np.unique(steps, return_inverse=True)
        count = np.bincount(group_of[used]).astype(np.float64)
        share = np.bincount(group_of[used], weights=shares[used]) / count
        ramp = np.zeros(len(share))
        if ramps is not None:
            ramp = np.bincount(group_of[used], weights=(shares * ramps)[used]) / (count * share)
        return cls(share, count, group_of, ramp)

    def reads(
        self, rates: Float64Array, free: Float64Array | None = None, max_times: Float64Array | None = None
    ) -> PageReads:
        """Return the reads of single page groups, given those of each group's."""
        free = np.zeros(len(rates)) if free is None else free
        max_times = np.zeros(len(rates)) if max_times is None else max_times
        return PageReads(*(np.append(values, 0.0)[self.group_of] for values in (rates, free, max_times)))

    def tuples_per_read(self, rates: Float64Array) -> float:
        """Return the tuples per read."""
        return 1.0 / float((self.count * rates).sum())


def reads_by(choice: PageChoice, shares: Float64Array, slots: float, ramps: Float64Array | None = None) -> PageReads:
    """Return the reads of a queue of `slots` tuples, kept full; `shares` of the page groups must sum up to 1.

    `ramps` is the part of each page group's demand that starts at nothing after a read and grows evenly until the next.
    """
    demand = _Demand.of(shares, ramps)
    if isinstance(choice, AtPosition):
        return demand.reads(*_at_position(demand, slots, choice.share, choice.patience))
    if isinstance(choice, DueFrequent):
        return demand.reads(_due_frequent(demand, slots, choice))
    if isinstance(choice, OldestAndYoungest):
        return demand.reads(*_oldest_and_youngest(demand, slots))
    if isinstance(choice, OldestWaiting):
        return demand.reads(_oldest_first(demand, slots))
    raise InvalidSettingError(
        f"No cost model knows the page choice {type(choice).__name__}: "
        f"add it to semistream_lab/cost/read_frequencies.py."
    )


def _oldest_first(demand: _Demand, slots: float) -> Float64Array:
    """The page group of the oldest tuple is read.

    A page group is read T tuples after its first tuple came. It is then idle for 1/π tuples, so a cycle is 1/π + T and
    a read takes N = 1 + πT tuples out. The queue is full but for the gap that a read leaves, N/2 on average.
    """
    share, count, ramp = demand.share, demand.count, demand.ramp
    if share[0] >= GIANT_SHARE and count.sum() > 1 and ramp[0] < 0.5:
        return settle_cycle(share, count, slots)

    def cycles(lag: float) -> Float64Array:
        """Return the time from read to read: that until the first tuple comes, and the lag."""
        cycle = 1 / share + lag
        for _ in range(3):
            cycle = lag + 1 / (share * (1 - ramp) + np.sqrt(share * ramp / cycle) / _HALF_ROOT_PI)
        return cycle

    def occupied(lag: float) -> float:
        cycle = cycles(lag)
        load = share * lag
        served = share * cycle
        steady = load * (1 + load / 2) / (1 + load)
        return float((count * (steady * (1 - ramp) + ramp * served / 3 + 0.5 * share * served)).sum())

    lag = where_rising_meets(occupied, slots, 0.0, 8.0 * slots)
    return 1 / cycles(lag)


def _at_position(
    demand: _Demand, slots: float, position: float, patience: float
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """The page group of the tuple at a position from the young end is read.

    A tuple reaches the position at the age a and is then chosen with a probability c; many pass, one is chosen. So a
    page group is read a + X tuples after its last read, X being exponential with the mean 1/(cπ), but at the latest
    when its first tuple has seen `patience` queues enter. Two equations give a and c: all that wait, and all that are
    younger than a.
    """
    share, count = demand.share, demand.count
    latest = patience * slots

    def cycles(age: float, chance: float) -> tuple[Float64Array, Float64Array]:
        """Return the mean of a cycle and of its square."""
        mean = 1 / (chance * share)
        longest = np.maximum(latest + 1 / share - age, 0.0)
        beyond = np.exp(-longest / mean)
        first = mean * (1 - beyond)
        second = 2 * mean * (first - longest * beyond)
        return age + first, age * age + 2 * age * first + second

    def waiting(age: float, chance: float) -> float:
        length, square = cycles(age, chance)
        return float((count * share * (1 + share) * square / (2 * length)).sum())

    def age_for(chance: float) -> float:
        def younger(age: float) -> float:
            return float((count * share * (age - age * age / (2 * cycles(age, chance)[0]))).sum())

        return where_rising_meets(younger, position * slots, 0.0, 4.0 * slots, precision=1e-6)

    def all_waiting(minus_log_chance: float) -> float:
        chance = float(np.exp(-minus_log_chance))
        return waiting(age_for(chance), chance)

    chance = float(np.exp(-where_rising_meets(all_waiting, slots, -3.0, 16.0, precision=1e-6)))
    age = age_for(chance)
    max_times = np.maximum(latest + 1 / share - age, 0.0) * chance * share
    return 1 / cycles(age, chance)[0], 1 / (chance * share), max_times


def _due_frequent(demand: _Demand, slots: float, choice: DueFrequent) -> Float64Array:
    """Frequent page groups are read on schedule, the others as by the oldest tuple.

    With a gliding frequency f a page group is due after θ·h_S/f tuples and then shows π·θ·h_S/f matches, so f settles
    at √(πθh_S) and the period at √(θh_S/π); without gliding f stays π·T, what the first read showed, T being the lag of
    the oldest tuple. θ is `eagerness` times the mean matches of a read. A page group enters with more than `entry`
    times the mean, and leaves with less than half of it: as its first period is θh_S/(πT), it leaves at once if
    θh_S/T is less than half of the mean. So T cannot grow beyond 2·eagerness·h_S; the most frequent come first.
    """
    longest_lag = 2 * choice.eagerness * _MEAN_WHEN_ENTERING * slots

    def settled(max_frequent: int) -> tuple[float, Float64Array]:
        """Return the lag and the reads if the first `max_frequent` groups may be frequent."""
        share, count = demand.share, demand.count
        served = 2.0 * slots / float(count.sum())
        frequent = np.zeros(len(share), dtype=np.bool_)
        lag, rates = slots, share
        for _ in range(_MAX_ROUNDS):
            limit = choice.eagerness * served * slots
            period = np.sqrt(limit / share) if choice.decay is not None else limit / np.maximum(share * lag, 1.0)
            lag = _lag_beside_schedule(demand, slots, np.where(frequent, period, 0.0))
            matches = 1 + share * lag
            frequent = (matches + 3 * np.sqrt(matches) > choice.entry * served) & (share * period > served / 2)
            # Demand that starts again at nothing with each read shows too few matches on schedule.
            frequent &= (period < lag) & (demand.ramp < _MAX_RAMP) & (np.arange(len(share)) < max_frequent)
            rates = np.where(frequent, 1 / period, share / (1 + share * lag))
            refined = demand.tuples_per_read(rates)
            if abs(refined - served) < 1e-4 * served:
                break
            served = 0.5 * (served + refined)
        return lag, rates

    lag, rates = settled(len(demand.share))
    few, many = 0, len(demand.share)
    while lag > longest_lag and many - few > 1:
        middle = (few + many) // 2
        tried_lag, tried_rates = settled(middle)
        if tried_lag > longest_lag:
            many = middle
        else:
            few, rates = middle, tried_rates
    return rates


def _lag_beside_schedule(demand: _Demand, slots: float, period: Float64Array) -> float:
    """Return the lag of the oldest tuple, where page groups with a period are read on schedule."""
    share, count = demand.share, demand.count

    def occupied(lag: float) -> float:
        load = share * lag
        idle = load * (1 + load / 2) / (1 + load) * (1 - demand.ramp / 3) + 0.5 * share * (1 + load)
        return float((count * np.where(period > 0, 0.5 * share * period * (1 + share), idle)).sum())

    return where_rising_meets(occupied, slots, 0.0, 30.0 * slots)


def _oldest_and_youngest(demand: _Demand, slots: float) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Reads alternate between the page group of the oldest tuple and that of the youngest.

    Of the tuples that come for a page group each is the youngest at a read for the young end with the probability
    1/(2w). So a page group is read when its first tuple has waited T tuples, or after an exponential time of the mean
    2w/π, whichever is first.
    """
    share, count = demand.share, demand.count
    served = 2.0 * slots / float(count.sum())
    rates = free = max_times = share
    for _ in range(_MAX_ROUNDS):
        rates, free, max_times = _beside_hazard(demand, slots, share / (2 * served))
        refined = demand.tuples_per_read(rates)
        if abs(refined - served) < 1e-5 * served:
            break
        served = 0.5 * (served + refined)
    return rates, free, max_times


def _beside_hazard(
    demand: _Demand, slots: float, hazard: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the reads, where a wanted page group may also be read by chance before its turn, and how they vary."""
    share, count = demand.share, demand.count

    def waits(lag: float) -> tuple[Float64Array, Float64Array]:
        """Return the mean wait of a page group's first tuple, and of its square."""
        beyond = np.exp(-hazard * lag)
        first = (1 - beyond) / hazard
        return first, 2 * (first - lag * beyond) / hazard

    def occupied(lag: float) -> float:
        first, second = waits(lag)
        taken_squared = 1 + 2 * share * first + share * share * second
        return float((count * (first + share * second / 2 + 0.5 * taken_squared) / (1 / share + first)).sum())

    lag = where_rising_meets(occupied, slots, 0.0, 60.0 * slots)
    return 1 / (1 / share + waits(lag)[0]), 1 / hazard, hazard * lag
