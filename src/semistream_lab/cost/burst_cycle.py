"""The queue of HYBRIDJOIN when one page group gets a large share of the stream.

A read of such a page group, the giant, frees so many slots that the tuples which then enter at once are a burst: no
other read happens while they do. The giant is among the first of them, so its next read comes when all page groups that
were waited for at that moment have been read. The queue therefore runs in cycles from one read of the giant to the
next. With T tuples a cycle and g the giant's share the burst is J = g·T tuples. A page group that becomes wanted at
time s of a cycle (counted in tuples that enter, 0 ≤ s < T) is read in the next cycle at u(s), J ≤ u(s) < T, in the
order of s; a read takes 1 + π·(T + u(s) − s) tuples out and lets as many enter, which gives u. What is sought is the
chance of each page group to become wanted at each s, such that it repeats itself from cycle to cycle.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.compile import kernel
from semistream_lab.cost.root import rising_root

_STEPS = 32
_MAX_ROUNDS = 200
_GROUP_GROWTH = 1.5


def settle_cycle(share: Float64Array, count: Float64Array, slots: float) -> Float64Array:
    """Return how often page groups are read for each tuple that enters; the first of the groups has the giant.

    `share` is the share of each page group of a group and `count` their number; if the first group has several
    page groups, one of them counts as the giant.
    """
    others = count.copy()
    others[0] -= 1
    sizes, means = _coarse(share, others)
    giant = float(share[0])
    read_at = giant + (1 - giant) * (np.arange(_STEPS) + 0.5) / _STEPS
    chances = np.repeat(1 / _STEPS / (1 + 1 / (means * 1.6 * slots))[None, :], _STEPS, axis=0)

    tuples = float(_length(giant, sizes, means, chances, read_at, float(slots)))
    # What page groups of about the same share have in common is the time from the first tuple to the read.
    lags = tuples / chances.sum(axis=0) - 1 / means
    rates: Float64Array = 1 / (1 / share + np.interp(-share, -means, lags))
    rates[0] = (rates[0] * others[0] + 1 / tuples) / count[0]
    return rates


def _coarse(share: Float64Array, count: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return fewer groups, with their mean shares, the largest first."""
    _, group_of = np.unique(np.floor(-np.log(share) / np.log(_GROUP_GROWTH)), return_inverse=True)
    sizes: Float64Array = np.bincount(group_of, weights=count).astype(np.float64)
    means = np.bincount(group_of, weights=count * share)[sizes > 0] / sizes[sizes > 0]
    return sizes[sizes > 0], means


@kernel
def _settle(
    giant: float,
    sizes: Float64Array,
    shares: Float64Array,
    tuples: float,
    chances: Float64Array,
    read_at: Float64Array,
    max_rounds: int,
) -> float:
    """Settle the cycle in place and return how many tuples wait when its burst is over.

    `chances` has the chance of a page group of each group to become wanted in each step of a cycle, step after step;
    `read_at` is when it is then read, as a part of the next cycle. The innermost loops run over groups, which do not
    depend on each other, so that the processor can take several at once.
    """
    steps, groups = chances.shape
    step = tuples / steps
    burst = giant * tuples
    stays = np.exp(-shares * step)
    stays_since = (1.0 - stays) / (shares * step)  # reads are spread over their step
    around = 1.0 / (1.0 - stays**steps)
    usual = (tuples + 1.0 / shares) / step
    moved, new_read_at, waits = np.empty(steps), np.empty(steps), np.empty(steps)
    reads, entries = np.empty((steps, groups)), np.empty((steps, groups))
    unwanted, entered, wanted, changes = np.empty(groups), np.empty(groups), np.empty(groups), np.empty(groups)
    for _ in range(max_rounds):
        total = 0.0
        for time in range(steps):
            lag = tuples * (1.0 + read_at[time]) - (time + 0.5) * step
            taken = 0.0
            for group in range(groups):
                taken += sizes[group] * chances[time, group] * (1.0 + shares[group] * lag)
            moved[time] = taken
            total += taken
        passed = burst
        reads[:] = 0.0
        for time in range(steps):
            share_moved = moved[time] * (tuples - burst) / total
            new_read_at[time] = (passed + share_moved / 2) / tuples
            waits[time] = tuples * (1.0 + new_read_at[time]) - (time + 0.5) * step
            passed += share_moved
            place = new_read_at[time] * steps - 0.5
            first = min(max(int(np.floor(place)), 0), steps - 2)
            part = min(max(place - first, 0.0), 1.0)
            for group in range(groups):
                reads[first, group] += chances[time, group] * (1.0 - part)
                reads[first + 1, group] += chances[time, group] * part
        unwanted[:] = 0.0
        for time in range(steps):
            for group in range(groups):
                unwanted[group] = unwanted[group] * stays[group] + reads[time, group] * stays_since[group]
        unwanted *= around
        entered[:] = 0.0
        wanted[:] = 0.0
        for time in range(steps):
            for group in range(groups):
                read = reads[time, group]
                entry = unwanted[group] * (1.0 - stays[group]) + read * (1.0 - stays_since[group])
                unwanted[group] = unwanted[group] * stays[group] + read * stays_since[group]
                entries[time, group] = entry
                entered[group] += entry
                wanted[group] += entry * waits[time]
        scale = tuples / (entered / shares + wanted)
        changes[:] = 0.0
        for time in range(steps):
            for group in range(groups):
                entry = entries[time, group] * scale[group]
                changed = abs(entry - chances[time, group])
                changes[group] = changed if changed > changes[group] else changes[group]
                chances[time, group] = 0.5 * (chances[time, group] + entry)
        read_at[:] = 0.5 * (read_at + new_read_at)
        if (changes * usual).max() < 1e-4:
            break
    waiting = giant * burst
    for time in range(steps):
        since = (time + 0.5) * step
        lag = tuples * (1.0 + read_at[time]) - since
        for group in range(groups):
            load = 1.0 + shares[group] * (tuples + burst - since) + (1.0 + shares[group] * lag) ** 2 / (2.0 * tuples)
            if since < burst:
                load += 1.0 + shares[group] * (burst - since)
            waiting += sizes[group] * chances[time, group] * load
    return waiting


_Cycle: TypeAlias = tuple[float, Float64Array, Float64Array, Float64Array, Float64Array]


@kernel
def _occupied(tuples: float, cycle: _Cycle) -> float:
    giant, sizes, shares, chances, read_at = cycle
    # Each search starts from where the one before has settled.
    return _settle(giant, sizes, shares, tuples, chances, read_at, _MAX_ROUNDS)


_length_by_occupied = rising_root(_occupied)


@kernel
def _length(
    giant: float,
    sizes: Float64Array,
    shares: Float64Array,
    chances: Float64Array,
    read_at: Float64Array,
    slots: float,
) -> float:
    """Return the tuples of a cycle in a queue of so many slots, and settle that cycle in place."""
    return _length_by_occupied((giant, sizes, shares, chances, read_at), slots, 0.9 * slots, 2.2 * slots, 2e-5)
