"""Says whether counts agree with a distribution, and how long the memory of a series is."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array


def chi_square_deviation(counts: Float64Array, expected: Float64Array) -> float:
    """Return how many standard deviations the chi-square sum lies above its mean (Wilson and Hilferty)."""
    freedom = len(counts) - 1
    chi_square = float((((counts - expected) ** 2) / expected).sum())
    spread = 2 / (9 * freedom)
    return float(((chi_square / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5)


def rank_deviation(ranks: Int64Array, probabilities: Float64Array, min_expected: float = 50.0) -> float:
    """Return the chi-square deviation of drawn ranks, with rare neighbouring ranks taken together."""
    expected_until = np.cumsum(probabilities) * len(ranks)
    firsts = [0]
    while expected_until[-1] - expected_until[firsts[-1]] > 2 * min_expected:
        done = expected_until[firsts[-1] - 1] if firsts[-1] else 0.0
        firsts.append(int(np.searchsorted(expected_until, done + min_expected)) + 1)
    per_rank = np.bincount(ranks - 1, minlength=len(probabilities)).astype(np.float64)
    expected = np.add.reduceat(probabilities, firsts) * len(ranks)
    assert expected.min() >= min_expected * 0.99
    return chi_square_deviation(np.add.reduceat(per_rank, firsts), expected)


def hurst_exponent(moments: Float64Array, window_seconds: float, doublings: int = 9) -> float:
    """Return the Hurst exponent of an arrival process from the variance of its means over longer and longer windows."""
    counts = np.bincount((moments / window_seconds).astype(np.int64))[:-1].astype(np.float64)
    lengths = 2 ** np.arange(doublings)
    variances = [counts[: len(counts) // length * length].reshape(-1, length).mean(axis=1).var() for length in lengths]
    return float(1 + np.polyfit(np.log(lengths), np.log(variances), 1)[0] / 2)
