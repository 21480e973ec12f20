"""How sure a measured number is: half the width of its 95% confidence interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semistream_lab.experiments.point import Row

_STUDENT_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t for one degree of freedom on; of more degrees the last is a little too wide, never too narrow."""


def _student(count: int) -> float:
    return _STUDENT_95[min(count - 1, len(_STUDENT_95)) - 1]


def half_width(values: Sequence[float]) -> float | None:
    """Return half the width of the 95% confidence interval of a mean, from values taken as independent."""
    if len(values) < 2:
        return None
    return float(_student(len(values)) * np.std(values, ddof=1) / np.sqrt(len(values)))


def half_width_of_parts(values: Sequence[float]) -> float | None:
    """Return half the width of the 95% confidence interval of a run's mean, from its parts in their order.

    Parts of one run depend on each other: a join that reads a hot page once in a round has good and bad parts in turns,
    whose sum is far surer than each. Therefore their covariances count, too (with the weights of Newey and West).
    """
    if len(values) < 2:
        return None
    off = np.asarray(values) - np.mean(values)
    lags = len(values) // 3
    covariances = [float(off[lag:] @ off[: len(off) - lag]) / len(off) for lag in range(lags + 1)]
    variance = covariances[0] + 2 * sum((1 - lag / (lags + 1)) * covariances[lag] for lag in range(1, lags + 1))
    return float(_student(len(values)) * np.sqrt(max(variance, 0.0) / (len(values) - 1)))


def confidence_of(rows: Sequence[Row], metric: str) -> float | None:
    """Return how sure the mean of a metric is: over repetitions, or over the parts of a single run."""
    if len(rows) > 1:
        return half_width([float(row[metric] or 0) for row in rows])
    own = f"{metric}_confidence" if metric != "service_rate" else "confidence"
    stated = rows[0].get(own) if rows else None
    return None if stated is None else float(stated)
