"""Which keys enter and leave a cache that learns while tuples of the stream pass; for groups of like keys.

Keys are in groups of like frequency, the most frequent first. All that is said of reads is that of the page groups on
which the keys of a group are.
"""

from __future__ import annotations

import math

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.compile import kernel
from semistream_lab.cost.poisson import mixed_poisson_at_least, poisson_at_least, poisson_at_least_by_part
from semistream_lab.cost.root import rising_root

MAX_CACHED = 1 - 1e-9
"""A chance never becomes certainty, so that there is always a tuple to read for."""
_ROUNDS_OF_LEAVING = 3
_LEAST_ENTERING = 1e-12
_LOSS_OF_LEAST_FREQUENT = 0.09
"""The part of a cache that overwrites its least frequent which newcomers hold in turn; measured, not derived."""


@kernel
def _rest(memoryless: float) -> float:
    """Return the part of a cycle from an overwriting to the next read: a random one, or a whole one without memory."""
    return 0.5 * (1 + memoryless)


@kernel
def _cycles_outside(first: float, enters: float, memoryless: float, late: float) -> float:
    """Return how many cycles a key is not cached, `first` being its chance to enter with the first read."""
    with_memory = (1 - memoryless) * first + memoryless * enters
    return _rest(memoryless) + max(late - 1, 0.0) + (1 - with_memory) / enters


@kernel
def _enters_first(wanted: float, mean: float, late: float) -> tuple[float, float]:
    """Return the chance that a key enters again with the first read after it was overwritten.

    It was overwritten at a random moment of a cycle. The read does not see what came in the last part `late` of the
    cycle, which is still being handed over. If the key had entered at the cycle's start, it does see what was handed
    over just then: that is the second chance.
    """
    seen = 1 - late
    first = seen * poisson_at_least_by_part(wanted, mean * seen)
    if late == 0:
        return first, first
    before = mean * late
    again = poisson_at_least_by_part(wanted, mean) - late * poisson_at_least_by_part(wanted, before)
    return first, again + late * poisson_at_least(wanted, before)


@kernel
def _after(cached: float, pace: float, leaving: float) -> float:
    limit = pace / (pace + leaving)
    return limit + (cached - limit) * math.exp(-pace - leaving)


@kernel
def _held(minus_log_leaving: float, groups: tuple[Float64Array, Float64Array, Float64Array]) -> float:
    """Return how many keys the cache holds, given their number in each group, their chances before, and their pace."""
    sizes, cached, pace = groups
    leaving = math.exp(-minus_log_leaving)
    total = 0.0
    for group in range(len(sizes)):
        total += sizes[group] * _after(cached[group], pace[group], leaving)
    return total


_minus_log_leaving = rising_root(_held)


@kernel
def entered_by(wanted: Float64Array, means: Float64Array) -> Float64Array:
    """Return the chance of each group's keys to enter with a read at which `means` of their tuples wait on average."""
    chances = np.empty(len(means))
    for group in range(len(means)):
        chances[group] = poisson_at_least(wanted[group], means[group])
    return chances


@kernel
def cached_after(
    sizes: Float64Array,
    key_shares: Float64Array,
    cached: Float64Array,
    wanted: Float64Array,
    between: Float64Array,
    free: Float64Array,
    max_times: Float64Array,
    free_part: Float64Array,
    memoryless: Float64Array,
    missed: float,
    tuples: float,
    handover_slots: float,
    capacity: float,
    at_random: bool,
) -> tuple[Float64Array, Float64Array]:
    """Return the chances of keys to be cached after `tuples` more of the stream, and how their misses ramp up.

    `sizes` are the keys of each group, `key_shares` the share of the stream that asks for each of its keys, and
    `cached` its chance to be cached before; `wanted` is how many of its tuples must wait so that it enters, and
    `missed` the share of the stream that the cache misses. The rest is said of reads, `between` being the tuples that
    enter the queue from one read to the next.
    """
    groups = len(sizes)
    enters, first, again = np.empty(groups), np.empty(groups), np.empty(groups)
    outside, chances, pace = np.empty(groups), np.empty(groups), np.empty(groups)
    held = 0.0
    for group in range(groups):
        window = between[group] / missed
        mean = key_shares[group] * window
        fixed = mean * (1 - free_part[group])
        varied = key_shares[group] * free[group] / missed
        enters[group] = max(mixed_poisson_at_least(wanted[group], fixed, varied, max_times[group]), _LEAST_ENTERING)
        late = handover_slots / between[group]
        first[group], again[group] = _enters_first(wanted[group], mean, min(late, 1.0))
        outside[group] = _cycles_outside(first[group], enters[group], memoryless[group], late)
        pace[group] = tuples / window * enters[group]
        chances[group] = min(_after(cached[group], pace[group], 0.0), MAX_CACHED)
        held += sizes[group] * chances[group]
    if held > capacity and at_random:
        leaving = 0.0
        for _ in range(_ROUNDS_OF_LEAVING if handover_slots > 0 else 1):
            for group in range(groups):
                pace[group] = tuples * missed / (between[group] * outside[group])
            leaving = math.exp(-_minus_log_leaving((sizes, cached, pace), capacity, -25.0, 40.0, 1e-7))
            if handover_slots > 0:
                for group in range(groups):
                    overwritten = -math.expm1(-leaving * between[group] / (missed * tuples))
                    seen = (1 - overwritten) * first[group] + overwritten * again[group]
                    late = handover_slots / between[group]
                    outside[group] = _cycles_outside(seen, enters[group], memoryless[group], late)
        for group in range(groups):
            chances[group] = min(_after(cached[group], pace[group], leaving), MAX_CACHED)
    elif held > capacity:
        held = 0.0
        for group in range(groups):
            held += sizes[group] * chances[group]
            if held > (1 - _LOSS_OF_LEAST_FREQUENT) * capacity:
                chances[group] = 0.0
    ramp = np.empty(groups)
    for group in range(groups):
        ramp[group] = _rest(memoryless[group]) * (1 - memoryless[group]) / outside[group]
    return chances, ramp
