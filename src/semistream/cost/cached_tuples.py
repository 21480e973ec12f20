"""Which master tuples a cache holds in steady state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.cost.key_shares import KeyShares
from semistream.cost.page_reads import PageReads, reads_by
from semistream.cost.poisson import poisson_at_least, poisson_at_least_by_part
from semistream.cost.root import where_rising_meets
from semistream.policies.caching import AboveRate, AboveThreshold
from semistream.policies.contract import Admission, PageChoice

_MOST_ROUNDS = 60


@dataclass(frozen=True)
class CachedState:
    """What the cache answers, and the reads for what it does not."""

    share: float  # p_N
    reads: PageReads


def balance(
    shares: KeyShares,
    bounds: Int64Array,
    choice: PageChoice,
    admission: AboveThreshold | AboveRate,
    *,
    cache_tuples: int,
    slots: int,
) -> CachedState:
    """Balance what enters the cache with what random overwriting takes out.

    A key that is not cached enters when more than a threshold of its tuples wait at a read of its partition; their
    number has Poisson's law, its mean being the key's share times the tuples of the stream since the last read. A
    cached key stays for an exponential time, the same for all; it is such that the cache is full.
    """
    per_key = shares.group_shares / shares.group_sizes
    cached = np.where(shares.rank_edges[:-1] < cache_tuples, 0.9, 0.0)
    place = shares.partition_of_groups(bounds)
    stay = 0.0
    before = -1.0
    state = None
    for turn in range(_MOST_ROUNDS):
        missed = shares.missed_by_partition(bounds, cached)
        missing = float(missed.sum())
        reads = reads_by(choice, missed / missing, slots)
        state = CachedState(1 - missing, reads)
        if abs(missing - before) < 1e-5 * missing:
            break
        before = missing
        if shares.sorted:
            between = 1 / np.maximum(reads.rates[place], 1e-30)
        else:
            between = np.full(len(place), len(reads.rates) / reads.rates.sum())
        wanted = _wanted(admission, between, slots)
        window = between / missing
        means = per_key * window
        enters = poisson_at_least(wanted, means)
        first = poisson_at_least_by_part(wanted, means)
        outside = window * (0.5 + (1 - first) / np.maximum(enters, 1e-12))

        def held(log_stay: float, outside: Float64Array = outside) -> float:
            inside = np.exp(log_stay)
            return float((shares.group_sizes * inside / (inside + outside)).sum())

        stay = where_rising_meets(held, cache_tuples, 0.0, 60.0, precision=1e-9)
        found = np.exp(stay) / (np.exp(stay) + outside)
        cached = found if turn == 0 else 0.5 * (cached + found)
    assert state is not None
    return state


def _wanted(admission: Admission, between: Float64Array, slots: int) -> Float64Array:
    """Return how many tuples of a key must wait so that it enters."""
    if isinstance(admission, AboveRate):
        limit = np.maximum(1.0, admission.threshold * np.minimum(1.0, between / (2 * slots)))
        return np.floor(limit) + 1
    assert isinstance(admission, AboveThreshold)
    return np.full(len(between), np.floor(admission.threshold) + 1)
