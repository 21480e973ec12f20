"""Measures what the best algorithm of the family serves in a case: each tuned for it, or as in its paper.

To measure all of them in hundreds of cases would take days. So the cost models rank them first, and those are measured
that are not clearly behind: all whose expected rate is at least `NEAR_BEST` of the best, and always the first three.
The models are within some per cent of the measurement (docs/algorithms/cost_models.md), far closer than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import BudgetTooSmallError
from semistream_lab.cost import predict, tune
from semistream_lab.experiments.measuring import rates, service_rates
from semistream_lab.experiments.point import Point, Row, Scalar

NEAR_BEST = 0.9
_FEWEST_MEASURED = 3
OURS = "demandjoin"
OTHERS = tuple(name for name in ALGORITHMS if name not in (OURS, "oracle"))
"""The published algorithms."""


@dataclass(frozen=True)
class _Candidate:
    algorithm: str
    parameters: tuple[tuple[str, float], ...]
    expected_rate: float


def run(point: Point) -> Row:
    """Rank all others by their models, measure the first ones, and return the best with the rates of all.

    A column `rate_NAME` is measured, a column `expected_NAME` is the model's.
    """
    candidates = sorted(_candidates(point), key=lambda one: -one.expected_rate)
    min_rate = NEAR_BEST * candidates[0].expected_rate
    measured: dict[str, Row] = {}
    for number, one in enumerate(candidates):
        if number < _FEWEST_MEASURED or one.expected_rate >= min_rate:
            alone = replace(point, kind="rate", algorithm=one.algorithm, parameters=one.parameters, tuned=False)
            measured[one.algorithm] = service_rates.run(alone)
    best = max(measured, key=lambda name: float(measured[name]["service_rate"] or 0))
    row: dict[str, Scalar] = {"best": best, **measured[best]}
    row |= {f"rate_{name}": results["service_rate"] for name, results in measured.items()}
    row |= {f"expected_{one.algorithm}": one.expected_rate for one in candidates}
    return row


def _candidates(point: Point) -> Iterator[_Candidate]:
    """Yield every algorithm that fits into the memory."""
    situation, costs = rates.situation_of(point), rates.costs_of(point)
    for name in OTHERS:
        try:
            if point.tuned:
                tuning = tune(name, situation, costs, queues=point.queues)
                yield _Candidate(name, tuple(sorted(tuning.parameters.items())), tuning.service_rate)
            else:
                yield _Candidate(name, (), predict(name, situation, costs, {}, queues=point.queues).service_rate)
        except BudgetTooSmallError:
            continue
