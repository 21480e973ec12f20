"""What the cost models expect of a run: the papers' own formulas, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from semistream.core.costs import NO_COSTS, CostProfile, profile_named
from semistream.core.errors import SemistreamError
from semistream_lab.cost import Situation, predict, printed_prediction
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.point import Point, Row, Scalar, varied
from semistream_lab.experiments.variants import PROCESSOR

PREDICTED, PRINTED = "predicted_rate", "printed_rate"
"""The columns of the corrected models and of those that the papers print."""
TABLE_SIZES = ("table_row_bytes", "table_page_bytes")
"""The columns of a row that have the sizes of the table in a file."""
_KNOB = "parameter_"
_COST = "cost_"
_COSTS = ("seek_seconds", "request_seconds", *PROCESSOR, "round_seconds", "answer_seconds", "row_seconds")
"""The constants that are measured beside a run in real time, each of a read being told as latency."""


def cost_columns(costs: CostProfile) -> dict[str, Scalar]:
    """Return the costs that were measured beside a run, as columns of its row."""
    return {_COST + name: getattr(costs, name) for name in _COSTS}


def knobs_of(row: Row) -> dict[str, float]:
    """Return the knobs of the algorithm with which a run was made."""
    return {name.removeprefix(_KNOB): float(value or 0) for name, value in row.items() if name.startswith(_KNOB)}


def predictions(point: Point, row: Row | None = None) -> Mapping[str, float | None]:
    """Return the expected service rates of a point, with the knobs of its run if that is given.

    In real time they follow from the costs that were measured beside the run, so there are none without its row. None
    stands where there is no model of the algorithm, or nothing to expect a rate from.
    """
    if row is None:
        knobs = rates.parameters_of(point)
    else:
        knobs = knobs_of(row)
    situation = rates.situation_of(point)
    costs: CostProfile | None = None
    if point.clock == "model":
        costs = varied(profile_named(point.profile), point.factors)
    elif row is not None and all(name in row for name in (*TABLE_SIZES, *(_COST + name for name in _COSTS))):
        row_bytes, page_bytes = (int(row[name] or 0) for name in TABLE_SIZES)
        situation = replace(situation, row_bytes=row_bytes, page_bytes=page_bytes)
        measured: dict[str, Any] = {name: float(row[_COST + name] or 0.0) for name in _COSTS}
        costs = replace(NO_COSTS, **measured)
    if costs is None:
        return {PREDICTED: None, PRINTED: None}
    tuples = None
    if row is not None and row.get("iterations") and row.get("tuples"):
        tuples = float(row["tuples"] or 0) / float(row["iterations"] or 1)
    return _predictions(point.algorithm, situation, costs, point.queues, tuple(sorted(knobs.items())), tuples)


@cache
def _predictions(
    algorithm: str,
    situation: Situation,
    costs: CostProfile,
    queues: float,
    knobs: tuple[tuple[str, float], ...],
    observed_tuples: float | None,
) -> Mapping[str, float | None]:
    rates: dict[str, float | None] = {}
    corrected = partial(predict, queues=queues)
    printed = partial(printed_prediction, observed_tuples=observed_tuples)
    for name, model in ((PREDICTED, corrected), (PRINTED, printed)):
        try:
            prediction = model(algorithm, situation, costs, dict(knobs))
        except SemistreamError:
            prediction = None
        rates[name] = None if prediction is None else prediction.service_rate
    return rates
