"""The upper tail of Poisson's law, to be called from kernels."""

from __future__ import annotations

import math

import numpy as np

from semistream.core.compile import kernel

_LONGEST_SUM = 2000
_LONGEST_TIMES = 16.0
_LEAST_TERM = 1e-14
_LEAST_CHANCE = 1e-14
_CERTAIN = 81.0
_SHORT_SUM = 32
_LEAST_DIFFERENCE = 1e-6
"""A smaller tail is not found as the difference of 1 and the rest, which would leave too few digits."""
_INVERSES = np.array([1.0 / max(1, count) for count in range(_SHORT_SUM)] + [1.0 / _SHORT_SUM])
_LOG_FACTORIALS = np.array([math.lgamma(count + 1.0) for count in range(_LONGEST_SUM)])
_NODES, _WEIGHTS = (tuple(part.tolist()) for part in np.polynomial.legendre.leggauss(16))
"""Where an integral is evaluated, between -1 and 1, and with which weights."""


@kernel
def poisson_at_least(count: float, mean: float) -> float:
    """Return the probability of at least so many events; the count is rounded up."""
    return _tails(math.ceil(count), mean)[0]


@kernel
def poisson_at_least_by_part(count: float, mean: float) -> float:
    """Return the same for a part of the time that is uniformly random.

    The integral of P(N_x ≥ k) over x from 0 to μ is μ·P(N_μ ≥ k) − k·P(N_μ ≥ k + 1).
    """
    whole = math.ceil(count)
    at_least, more = _tails(whole, mean)
    return min(1.0, max(0.0, (mean * at_least - whole * more) / max(mean, 1e-9)))


@kernel
def _tails(count: int, mean: float) -> tuple[float, float]:
    """Return the probability of at least `count` events, and that of more."""
    if mean <= 0.0:
        return (1.0 if count <= 0 else 0.0), (1.0 if count < 0 else 0.0)
    if count <= 0:
        return 1.0, 1.0 if count < 0 else -math.expm1(-mean)
    above = mean - count
    if above > 0 and above * above > _CERTAIN * mean:  # Chernoff's bound: less than e^-40 is missing
        return 1.0, 1.0
    if count >= _LONGEST_SUM:
        width = math.sqrt(2.0 * mean)
        return 0.5 * math.erfc((-0.5 - above) / width), 0.5 * math.erfc((0.5 - above) / width)
    if count < _SHORT_SUM:
        scale, below, term = math.exp(-mean), 0.0, 1.0
        for place in range(count):
            below += term
            term *= mean * _INVERSES[place + 1]
        at_least = 1.0 - scale * below
        if at_least > _LEAST_DIFFERENCE:
            return at_least, max(0.0, at_least - scale * term)
    exactly = math.exp(count * math.log(mean) - mean - _LOG_FACTORIALS[count])
    total, place = 0.0, count
    if mean < count:
        # Above its mean the terms fall, so the tail is summed upwards.
        term = exactly * mean / (count + 1)
        while term > _LEAST_TERM * (exactly + total) and place < count + 4 * _LONGEST_SUM:
            total += term
            place += 1
            term *= mean / (place + 1)
        return min(1.0, exactly + total), min(1.0, total)
    term = exactly * count / mean
    while place > 0 and term > _LEAST_TERM * total:
        total += term
        place -= 1
        term *= place / mean
    return max(0.0, 1.0 - total), max(0.0, 1.0 - total - exactly)


@kernel
def mixed_poisson_at_least(count: float, fixed: float, free: float, max_times: float) -> float:
    """Return the probability of at least so many events in a time that varies.

    `fixed` are the events of the part of the time that is always there, on average; another part is exponential, `free`
    being the events of its mean, but ends after `max_times` times its mean at the latest.
    """
    least = poisson_at_least(count, fixed)
    if free <= 1e-6:
        return least
    reach = min(max_times, _LONGEST_TIMES)
    most = poisson_at_least(count, fixed + free * reach)
    if most - least <= _LEAST_CHANCE:
        return least
    mixed = math.exp(-reach) * most
    for place in range(len(_NODES)):
        at = 0.5 * (_NODES[place] + 1) * reach
        mixed += 0.5 * _WEIGHTS[place] * reach * math.exp(-at) * poisson_at_least(count, fixed + free * at)
    return min(1.0, max(0.0, mixed))
