"""What an experiment has measured, as curves for its figure and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from semistream.core.arrays import Float64Array
from semistream_lab.experiments.confidence import confidence_of
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.plan import Plan
from semistream_lab.experiments.point import Row
from semistream_lab.experiments.predictions import PREDICTED, PRINTED


@dataclass(frozen=True)
class Curve:
    """One series of an experiment: a number at each place of the x axis, NaN where nothing was measured."""

    label: str
    algorithm: str
    y: Float64Array
    confidence: Float64Array
    """Half the width of the 95% confidence interval."""
    predicted: Float64Array
    printed: Float64Array

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured at all."""
        return bool(np.isnan(self.y).all())


def curves_of(plan: Plan, evidence: Evidence) -> list[Curve]:
    """Return the curves of an experiment in one order of ranks, in the units of what was measured."""
    curves = []
    for series in plan.series:
        columns = [_column(plan, series.label, x, evidence) for x in plan.x.values]
        y, confidence, predicted, printed = np.array(columns, dtype=np.float64).T
        settings = {**plan.fixed, **series.settings}
        curves.append(Curve(series.label, str(settings.get("algorithm", "")), y, confidence, predicted, printed))
    return curves


def _column(plan: Plan, series: str, x: float, evidence: Evidence) -> tuple[float, float, float, float]:
    try:
        rows = evidence.rows(plan.id, series, x)
    except NotMeasuredError:
        return nan, nan, nan, nan
    metric = plan.metric.name
    confidence = confidence_of(rows, metric)
    return _mean(rows, metric), nan if confidence is None else confidence, _mean(rows, PREDICTED), _mean(rows, PRINTED)


def _mean(rows: Sequence[Row], name: str) -> float:
    values = [row.get(name) for row in rows]
    return nan if None in values else float(np.mean([float(value or 0) for value in values]))
