"""How long page groups go from read to read, by the page choice; derived in docs/algorithms/cost_models.md.

All take page groups in groups: the share of each page group of a group, the largest first, and their number. Times are
counted in tuples that enter the queue.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from semistream.core.arrays import BoolArray, Float64Array
from semistream.core.compile import kernel
from semistream_lab.cost.root import rising_root

_MAX_ROUNDS = 100
_HALF_ROOT_PI = 0.8862
_MAX_RAMP = 0.5
"""Up to which part of its demand that starts anew a page group stays on schedule; measured, not derived."""
_MEAN_WHEN_ENTERING = 4 / 3
"""How much higher the mean matches of recent reads are when a frequent page group enters than when it is due: the
page groups of high demand are read one after the other. Measured, not derived."""


@kernel
def _ramped_cycle(share: float, ramp: float, lag: float) -> float:
    """Return the time from read to read: that until the first tuple comes, and the lag."""
    cycle = 1 / share + lag
    if ramp > 0:
        for _ in range(3):
            cycle = lag + 1 / (share * (1 - ramp) + math.sqrt(share * ramp / cycle) / _HALF_ROOT_PI)
    return cycle


@kernel
def _waiting_oldest_first(lag: float, groups: tuple[Float64Array, Float64Array, Float64Array]) -> float:
    share, count, ramp = groups
    total = 0.0
    for group in range(len(share)):
        load = share[group] * lag
        served = share[group] * _ramped_cycle(share[group], ramp[group], lag)
        steady = load * (1 + load / 2) / (1 + load)
        total += count[group] * (steady * (1 - ramp[group]) + ramp[group] * served / 3 + 0.5 * share[group] * served)
    return total


_lag_oldest_first = rising_root(_waiting_oldest_first)


@kernel
def oldest_first(share: Float64Array, count: Float64Array, ramp: Float64Array, slots: float) -> Float64Array:
    """Return the reads if the page group of the oldest tuple is read.

    A page group is read T tuples after its first tuple came. It is then idle for 1/π tuples, so a cycle is 1/π + T and
    a read takes N = 1 + πT tuples out. The queue is full but for the gap that a read leaves, N/2 on average.
    """
    lag = _lag_oldest_first((share, count, ramp), slots, 0.0, 8.0 * slots)
    rates = np.empty(len(share))
    for group in range(len(share)):
        rates[group] = 1 / _ramped_cycle(share[group], ramp[group], lag)
    return rates


@kernel
def _cycle_at_position(share: float, age: float, chance: float, longest: float) -> tuple[float, float]:
    """Return the mean of a cycle and of its square."""
    mean = 1 / (chance * share)
    beyond = math.exp(-longest / mean)
    first = mean * (1 - beyond)
    second = 2 * mean * (first - longest * beyond)
    return age + first, age * age + 2 * age * first + second


@kernel
def _younger_than(age: float, groups: tuple[Float64Array, Float64Array, float, float]) -> float:
    share, count, latest, chance = groups
    total = 0.0
    for group in range(len(share)):
        longest = max(latest + 1 / share[group] - age, 0.0)
        cycle = _cycle_at_position(share[group], age, chance, longest)[0]
        total += count[group] * share[group] * (age - age * age / (2 * cycle))
    return total


_age_of_position = rising_root(_younger_than)


_PositionGroups: TypeAlias = tuple[Float64Array, Float64Array, float, float, float]
"""Shares, counts, after how long a page group is read at the latest, and how many tuples are younger than the position;
at last the highest age there may be."""


@kernel
def _age_at_position(chance: float, groups: _PositionGroups) -> float:
    share, count, latest, younger, highest = groups
    return _age_of_position((share, count, latest, chance), younger, 0.0, highest, 1e-6)


@kernel
def _waiting_at_position(minus_log_chance: float, groups: _PositionGroups) -> float:
    share, count, latest, _, _ = groups
    chance = math.exp(-minus_log_chance)
    age = _age_at_position(chance, groups)
    total = 0.0
    for group in range(len(share)):
        longest = max(latest + 1 / share[group] - age, 0.0)
        length, square = _cycle_at_position(share[group], age, chance, longest)
        total += count[group] * share[group] * (1 + share[group]) * square / (2 * length)
    return total


_minus_log_chance = rising_root(_waiting_at_position)


@kernel
def at_position(
    share: Float64Array, count: Float64Array, slots: float, position: float, patience: float
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the reads if the page group of the tuple at a position from the young end is read, and how they vary.

    A tuple reaches the position at the age a and is then chosen with a probability c; many pass, one is chosen. So a
    page group is read a + X tuples after its last read, X being exponential with the mean 1/(cπ), but at the latest
    when its first tuple has seen `patience` queues enter. Two equations give a and c: all that wait, and all that are
    younger than a.
    """
    groups = (share, count, patience * slots, position * slots, 4.0 * slots)
    chance = math.exp(-_minus_log_chance(groups, slots, -3.0, 16.0, 1e-6))
    age = _age_at_position(chance, groups)
    rates, max_times = np.empty(len(share)), np.empty(len(share))
    for group in range(len(share)):
        longest = max(patience * slots + 1 / share[group] - age, 0.0)
        max_times[group] = longest * chance * share[group]
        rates[group] = 1 / _cycle_at_position(share[group], age, chance, longest)[0]
    return rates, 1 / (chance * share), max_times


@kernel
def _waiting_beside_schedule(
    lag: float, groups: tuple[Float64Array, Float64Array, Float64Array, Float64Array, BoolArray]
) -> float:
    """Return how many tuples wait where frequent page groups are read on schedule, at the lag of the oldest tuple."""
    share, count, ramp, period, frequent = groups
    total = 0.0
    for group in range(len(share)):
        if frequent[group]:
            total += count[group] * 0.5 * share[group] * period[group] * (1 + share[group])
        else:
            load = share[group] * lag
            idle = load * (1 + load / 2) / (1 + load) * (1 - ramp[group] / 3)
            total += count[group] * (idle + 0.5 * share[group] * (1 + load))
    return total


_lag_beside_schedule = rising_root(_waiting_beside_schedule)


@kernel
def _beside_schedule(
    share: Float64Array,
    count: Float64Array,
    ramp: Float64Array,
    slots: float,
    eagerness: float,
    entry: float,
    glides: bool,
    max_frequent: int,
) -> tuple[float, Float64Array]:
    """Return the lag of the oldest tuple, and the reads if the first `max_frequent` groups may be frequent."""
    served = 2.0 * slots / count.sum()
    period = np.zeros(len(share))
    rates = share.copy()
    lag = slots
    frequent = np.zeros(len(share), dtype=np.bool_)
    for _ in range(_MAX_ROUNDS):
        limit = eagerness * served * slots
        for group in range(len(share)):
            period[group] = math.sqrt(limit / share[group]) if glides else limit / max(share[group] * lag, 1.0)
        lag = _lag_beside_schedule((share, count, ramp, period, frequent), slots, 0.0, 30.0 * slots)
        made = 0.0
        for group in range(len(share)):
            matches = 1 + share[group] * lag
            frequent[group] = (
                group < max_frequent
                and matches + 3 * math.sqrt(matches) > entry * served
                and share[group] * period[group] > served / 2
                # Demand that starts again at nothing with each read shows too few matches on schedule.
                and period[group] < lag
                and ramp[group] < _MAX_RAMP
            )
            rates[group] = 1 / period[group] if frequent[group] else share[group] / matches
            made += count[group] * rates[group]
        refined = 1 / made
        if abs(refined - served) < 1e-4 * served:
            break
        served = 0.5 * (served + refined)
    return lag, rates


@kernel
def due_frequent(
    share: Float64Array,
    count: Float64Array,
    ramp: Float64Array,
    slots: float,
    eagerness: float,
    entry: float,
    glides: bool,
) -> Float64Array:
    """Return the reads if frequent page groups are read on schedule, the others as by the oldest tuple.

    With a gliding frequency f a page group is due after θ·h_S/f tuples and then shows π·θ·h_S/f matches, so f settles
    at √(πθh_S) and the period at √(θh_S/π); without gliding f stays π·T, what the first read showed, T being the lag of
    the oldest tuple. θ is `eagerness` times the mean matches of a read. A page group enters with more than `entry`
    times the mean, and leaves with less than half of it: as its first period is θh_S/(πT), it leaves at once if
    θh_S/T is less than half of the mean. So T cannot grow beyond 2·eagerness·h_S; the most frequent come first.
    """
    longest_lag = 2 * eagerness * _MEAN_WHEN_ENTERING * slots
    lag, rates = _beside_schedule(share, count, ramp, slots, eagerness, entry, glides, len(share))
    few, many = 0, len(share)
    while lag > longest_lag and many - few > 1:
        middle = (few + many) // 2
        tried_lag, tried_rates = _beside_schedule(share, count, ramp, slots, eagerness, entry, glides, middle)
        if tried_lag > longest_lag:
            many = middle
        else:
            few, rates = middle, tried_rates
    return rates


@kernel
def _waits_beside_hazard(hazard: float, lag: float) -> tuple[float, float]:
    """Return the mean wait of a page group's first tuple, and of its square.

    A wanted page group may be read by chance before its turn.
    """
    beyond = math.exp(-hazard * lag)
    first = (1 - beyond) / hazard
    return first, 2 * (first - lag * beyond) / hazard


@kernel
def _waiting_beside_hazard(lag: float, groups: tuple[Float64Array, Float64Array, Float64Array]) -> float:
    share, count, hazard = groups
    total = 0.0
    for group in range(len(share)):
        first, second = _waits_beside_hazard(hazard[group], lag)
        squared = share[group] * second
        taken_squared = 1 + 2 * share[group] * first + share[group] * squared
        total += count[group] * (first + squared / 2 + 0.5 * taken_squared) / (1 / share[group] + first)
    return total


_lag_beside_hazard = rising_root(_waiting_beside_hazard)


@kernel
def oldest_and_youngest(
    share: Float64Array, count: Float64Array, slots: float
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the reads if the page groups of the oldest and the youngest tuple take turns, and how they vary.

    Of the tuples that come for a page group each is the youngest at a read for the young end with the probability
    1/(2w). So a page group is read when its first tuple has waited T tuples, or after an exponential time of the mean
    2w/π, whichever is first.
    """
    served = 2.0 * slots / count.sum()
    rates, hazard, lag = share.copy(), share, 0.0
    for _ in range(_MAX_ROUNDS):
        hazard = share / (2 * served)
        lag = _lag_beside_hazard((share, count, hazard), slots, 0.0, 60.0 * slots)
        made = 0.0
        for group in range(len(share)):
            rates[group] = 1 / (1 / share[group] + _waits_beside_hazard(hazard[group], lag)[0])
            made += count[group] * rates[group]
        refined = 1 / made
        if abs(refined - served) < 1e-5 * served:
            break
        served = 0.5 * (served + refined)
    return rates, 1 / hazard, hazard * lag
