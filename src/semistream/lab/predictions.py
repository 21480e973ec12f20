"""What the cost models expect of a run: the papers' own formulas, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from semistream.core.costs import profile_named
from semistream.core.errors import SemistreamError
from semistream.cost import Situation, predict, printed_prediction
from semistream.lab.measuring import rates
from semistream.lab.point import Point, Row, varied

PREDICTED, PRINTED = "predicted_rate", "printed_rate"
"""The columns of the corrected models and of those that the papers print."""
_KNOB = "parameter_"


def predictions(point: Point, row: Row | None = None) -> Mapping[str, float | None]:
    """Return the expected service rates of a point, with the knobs of its run if that is given.

    None stands where there is no model of the algorithm.
    """
    if row is None:
        knobs = rates.parameters_of(point)
    else:
        knobs = {name.removeprefix(_KNOB): float(value or 0) for name, value in row.items() if name.startswith(_KNOB)}
    return _predictions(point, tuple(sorted(knobs.items())))


@cache
def _predictions(point: Point, knobs: tuple[tuple[str, float], ...]) -> Mapping[str, float | None]:
    situation = Situation(point.master_rows, point.memory_bytes, point.exponent, point.ranks)
    costs = varied(profile_named(point.profile), point.factors)
    found: dict[str, float | None] = {}
    corrected = partial(predict, queues=point.queues)
    for name, model in ((PREDICTED, corrected), (PRINTED, printed_prediction)):
        try:
            prediction = model(point.algorithm, situation, costs, dict(knobs))
        except SemistreamError:
            prediction = None
        found[name] = None if prediction is None else prediction.service_rate
    return found
