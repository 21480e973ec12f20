"""The upper tail of Poisson's law."""

from __future__ import annotations

import math

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.compile import kernel

_LONGEST_SUM = 2000
_LONGEST_TIMES = 16.0
_NODES = tuple(part.tolist() for part in np.polynomial.legendre.leggauss(16))
"""Where an integral is evaluated, between -1 and 1, and with which weights."""


def poisson_at_least(counts: Float64Array, means: Float64Array) -> Float64Array:
    """Return the probability of at least so many events, each for its mean; counts are rounded up."""
    chances = np.empty(len(means), dtype=np.float64)
    _at_least(counts, means, chances)
    return chances


def poisson_at_least_by_part(counts: Float64Array, means: Float64Array) -> Float64Array:
    """Return the same for a part of the time that is uniformly random.

    The integral of P(N_x ≥ k) over x from 0 to μ is μ·P(N_μ ≥ k) − k·P(N_μ ≥ k + 1).
    """
    whole = np.ceil(counts)
    area = means * poisson_at_least(whole, means) - whole * poisson_at_least(whole + 1, means)
    return np.clip(area / np.maximum(means, 1e-9), 0.0, 1.0)


def mixed_poisson_at_least(
    counts: Float64Array, fixed: Float64Array, free: Float64Array, max_times: Float64Array
) -> Float64Array:
    """Return the probability of at least so many events in a time that varies.

    `fixed` are the events of the part of the time that is always there, on average; another part is exponential, `free`
    being the events of its mean, but ends after `max_times` times its mean at the latest.
    """
    whole = np.ceil(counts)
    chances = poisson_at_least(whole, fixed)
    varied = np.flatnonzero(free > 1e-6)
    if len(varied):
        whole, fixed, free, max_times = whole[varied], fixed[varied], free[varied], max_times[varied]
        reach = np.minimum(max_times, _LONGEST_TIMES)
        mixed = np.exp(-reach) * poisson_at_least(whole, fixed + free * reach)
        for node, weight in zip(*_NODES, strict=True):
            at = 0.5 * (node + 1) * reach
            mixed += 0.5 * weight * reach * np.exp(-at) * poisson_at_least(whole, fixed + free * at)
        chances[varied] = mixed
    return np.clip(chances, 0.0, 1.0)


@kernel
def _at_least(counts: Float64Array, means: Float64Array, chances: Float64Array) -> None:
    for index in range(means.shape[0]):
        mean = means[index]
        count = math.ceil(counts[index])
        if count <= 0:
            chances[index] = 1.0
        elif mean <= 0.0:
            chances[index] = 0.0
        elif count > _LONGEST_SUM:
            chances[index] = 0.5 * math.erfc((count - 0.5 - mean) / math.sqrt(2.0 * mean))
        elif mean < count:
            # Above its mean the terms fall, so the tail is summed upwards.
            term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1.0))
            total, place = 0.0, count
            while term > 1e-17 * total and place < count + 4 * _LONGEST_SUM:
                total += term
                place += 1
                term *= mean / place
            chances[index] = min(1.0, total)
        else:
            term = math.exp((count - 1) * math.log(mean) - mean - math.lgamma(float(count)))
            total, place = 0.0, count - 1
            while place >= 0 and term > 1e-17 * total:
                total += term
                term *= place / mean
                place -= 1
            chances[index] = max(0.0, 1.0 - total)
