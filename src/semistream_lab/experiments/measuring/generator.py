"""Looks at the generated stream itself: how sales are spread over products, and how arrivals cluster in time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.generator import BurstyArrivals, ZipfKeys
from semistream_lab.experiments.point import Law, Point, Row

_DRAWN_TUPLES = 4_000_000
_BLOCK_TUPLES = 1 << 20
_BIN_RATIO = 1.25
"""The ranks of a bin reach from its rank to so many times it."""
_STEPS = 1 << 14
_DOUBLINGS = 9
"""Windows of 1 to 256 steps: the slowest source changes every 512 steps on average."""


def run(point: Point) -> Row:
    """Measure what the option `shows` names, at the place that another option names."""
    shows = dict(point.options).get("shows")
    if shows == "share":
        return _share(point)
    if shows == "frequency":
        return _frequency(point)
    if shows == "arrivals":
        return _arrivals(point)
    raise InvalidSettingError(f"The generator does not show {shows!r}: choose share, frequency or arrivals.")


def _share(point: Point) -> Row:
    """Measure the share of sales that the best-selling products make, `products` being their share of all."""
    counts = _counts(point.master_rows, point.exponent, point.law, point.seed)
    best = max(1, round(point.option("products") * len(counts)))
    return {"sales_share": float(counts[:best].sum() / counts.sum()), "products": best, "tuples": int(counts.sum())}


def _frequency(point: Point) -> Row:
    """Measure how often a product of the option `rank` sells, as the mean over the ranks around it."""
    counts = _counts(point.master_rows, point.exponent, point.law, point.seed)
    first = int(point.option("rank"))
    last = min(len(counts), max(first, int(first * _BIN_RATIO)))
    if first > last:  # a small table has no such rank
        return {"frequency": None, "mean_rank": None, "sales": 0}
    ranks = np.arange(first, last + 1)
    return {
        "frequency": float(counts[first - 1 : last].mean() / counts.sum()),
        "mean_rank": float(np.exp(np.log(ranks).mean())),
        "sales": int(counts[first - 1 : last].sum()),
    }


def _arrivals(point: Point) -> Row:
    """Measure the tuples of one window, of the option `window` steps, and how bursty the whole stream is."""
    steps = _step_counts(point.seed)
    window = max(1, int(point.option("window", 1)))
    begin = int(point.option("place")) * window
    inside = steps[begin : begin + window]
    return {
        "tuples_per_step": float(inside.mean()),
        "hurst_exponent": hurst_exponent(steps, _DOUBLINGS),
        "dispersion": float(steps.var() / steps.mean()),
        "highest_to_mean": float(steps.max() / steps.mean()),
    }


def hurst_exponent(counts: Float64Array, doublings: int) -> float:
    """Return the Hurst exponent of a series from the variance of its means over windows of 1, 2, 4, … steps."""
    lengths = 2 ** np.arange(doublings)
    means = [counts[: len(counts) // length * length].reshape(-1, length).mean(axis=1) for length in lengths]
    slope = np.polyfit(np.log(lengths), np.log([values.var() for values in means]), 1)[0]
    return float(1 + slope / 2)


@lru_cache(maxsize=8)
def _counts(key_count: int, exponent: float, law: Law, seed: int) -> Int64Array:
    """Return how often each rank was drawn."""
    keys = ZipfKeys(key_count, exponent, seed=seed, law=law)
    counts = np.zeros(key_count, dtype=np.int64)
    for _ in range(0, _DRAWN_TUPLES, _BLOCK_TUPLES):
        counts += np.bincount(keys.draw_ranks(_BLOCK_TUPLES) - 1, minlength=key_count)
    return counts


@lru_cache(maxsize=2)
def _step_counts(seed: int) -> Float64Array:
    """Return the tuples of each step of the bursty stream."""
    arrivals = BurstyArrivals(1.0, seed=seed)
    counts = np.zeros(_STEPS, dtype=np.float64)
    while True:
        steps = arrivals.take(_BLOCK_TUPLES).astype(np.int64)
        counts += np.bincount(steps[steps < _STEPS], minlength=_STEPS)
        if steps[-1] >= _STEPS:
            return counts
