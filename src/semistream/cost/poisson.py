"""The upper tail of Poisson's law."""

from __future__ import annotations

import math

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.compile import kernel

_LONGEST_SUM = 2000


def poisson_at_least(counts: Float64Array, means: Float64Array) -> Float64Array:
    """Return the probability of at least so many events, each for its mean; counts are rounded up."""
    found = np.empty(len(means), dtype=np.float64)
    _at_least(counts, means, found)
    return found


def poisson_at_least_by_part(counts: Float64Array, means: Float64Array) -> Float64Array:
    """Return the same for a part of the time that is uniformly random.

    The integral of P(N_x ≥ k) over x from 0 to μ is μ·P(N_μ ≥ k) − k·P(N_μ ≥ k + 1).
    """
    whole = np.ceil(counts)
    area = means * poisson_at_least(whole, means) - whole * poisson_at_least(whole + 1, means)
    return np.clip(area / np.maximum(means, 1e-9), 0.0, 1.0)


def mixed_poisson_at_least(counts: Float64Array, means: Float64Array, spreads: Float64Array) -> Float64Array:
    """Return the probability of at least so many events in a time that varies.

    `spreads` is the standard deviation of the time as a part of its mean; a part of the time as large as that is taken
    to be exponential, the rest to be fixed. With μ the mean of the fixed part and r = m/(1 + m), m that of the other,
    P(N ≥ k) = P(Poisson(μ) ≥ k) + r^k·exp(μ/r − μ)·P(Poisson(μ/r) < k).
    """
    whole = np.ceil(counts)
    spreads = np.minimum(spreads, 1.0)
    fixed = means * (1 - spreads)
    found = poisson_at_least(whole, fixed)
    varied = np.flatnonzero(means * spreads > 1e-6)
    if len(varied):
        free = (means * spreads)[varied]
        ratio = free / (1 + free)
        lifted = fixed[varied] / ratio
        log_factor = whole[varied] * np.log(ratio) + lifted - fixed[varied]
        below = 1 - poisson_at_least(whole[varied], lifted)
        with np.errstate(divide="ignore"):
            found[varied] += np.exp(np.minimum(log_factor + np.log(below), 0.0))
    return np.clip(found, 0.0, 1.0)


@kernel
def _at_least(counts: Float64Array, means: Float64Array, found: Float64Array) -> None:
    for index in range(means.shape[0]):
        mean = means[index]
        count = math.ceil(counts[index])
        if count <= 0:
            found[index] = 1.0
        elif mean <= 0.0:
            found[index] = 0.0
        elif count > _LONGEST_SUM:
            found[index] = 0.5 * math.erfc((count - 0.5 - mean) / math.sqrt(2.0 * mean))
        elif mean < count:
            # Above its mean the terms fall, so the tail is summed upwards.
            term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1.0))
            total, place = 0.0, count
            while term > 1e-17 * total and place < count + 4 * _LONGEST_SUM:
                total += term
                place += 1
                term *= mean / place
            found[index] = min(1.0, total)
        else:
            term = math.exp((count - 1) * math.log(mean) - mean - math.lgamma(float(count)))
            total, place = 0.0, count - 1
            while place >= 0 and term > 1e-17 * total:
                total += term
                term *= place / mean
                place -= 1
            found[index] = max(0.0, 1.0 - total)
