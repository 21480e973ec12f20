"""What the cost models expect of a run: the papers' own formulas, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from semistream.core.errors import SemistreamError
from semistream.lab.measuring import rates
from semistream.lab.point import Point

PREDICTED, PRINTED = "predicted_rate", "printed_rate"
"""The columns of the corrected models and of those that the papers print."""


@cache
def predictions(point: Point) -> Mapping[str, float | None]:
    """Return the expected service rates of a point; None where there is no model of its algorithm."""
    from semistream.cost import Situation, predict, printed_prediction

    situation = Situation(point.master_rows, point.memory_bytes, point.exponent, point.ranks)
    found: dict[str, float | None] = {}
    for name, model in ((PREDICTED, predict), (PRINTED, printed_prediction)):
        try:
            prediction = model(point.algorithm, situation, rates.costs_of(point), rates.parameters_of(point))
        except SemistreamError:
            prediction = None
        found[name] = None if prediction is None else prediction.service_rate
    return found
