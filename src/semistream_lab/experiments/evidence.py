"""What was measured, as those who judge claims ask for it: by experiment, series and place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.costs import Operations, profile_named
from semistream_lab.experiments.plan import Plan, PlannedPoint, can_be_priced_again, factors_that_matter
from semistream_lab.experiments.point import Point, Row, varied
from semistream_lab.experiments.predictions import PREDICTED, PRINTED, predictions
from semistream_lab.experiments.variants import AS_ASSUMED, Variant

OPERATION_COLUMNS = tuple(one.name for one in fields(Operations))
"""The columns of a row that count operations are these names behind `operations_`."""


_Places = Mapping[tuple[str, float], list[PlannedPoint]]
"""The points of an experiment by series and place, one for each seed."""


class NotMeasuredError(LookupError):
    """A claim asked for a run that has not been made."""


@dataclass(frozen=True)
class Evidence:
    """The results of all experiments for one order of ranks and one variant of the cost constants."""

    plans: Mapping[str, Plan]
    find: Callable[[str], Row | None]
    """Returns the result of a point by its digest."""
    ranks: str = "sorted"
    variant: Variant = AS_ASSUMED
    scale: float = 1.0
    clock: str = "model"
    _places: dict[tuple[str, str], _Places] = field(default_factory=dict, repr=False, compare=False)
    """The points of experiments by order of ranks, shared by all views of the same results."""

    def of_ranks(self, ranks: str) -> Evidence:
        """Return the same results for another order of ranks."""
        return self if ranks == self.ranks else replace(self, ranks=ranks)

    def xs(self, experiment: str) -> list[float]:
        """Return the places along the x axis."""
        return list(self._plan(experiment).x.values)

    def series(self, experiment: str) -> list[str]:
        """Return the labels of the series."""
        return [series.label for series in self._plan(experiment).series]

    def value(self, experiment: str, series: str, x: float, metric: str | None = None) -> float:
        """Return a measured number, the mean over all seeds; by default what the experiment draws."""
        name = metric or self._plan(experiment).metric.name
        rows = self._rows(experiment, series, x, with_models=name in (PREDICTED, PRINTED))
        return float(np.mean([_number(row, name) for row in rows]))

    def curve(self, experiment: str, series: str, metric: str | None = None) -> Float64Array:
        """Return a number at every place of the x axis."""
        return np.array([self.value(experiment, series, x, metric) for x in self.xs(experiment)])

    def rows(self, experiment: str, series: str, x: float) -> list[Row]:
        """Return the results at one place, one for each seed; where the plan wants it, with what the models expect."""
        return self._rows(experiment, series, x, with_models=True)

    def _rows(self, experiment: str, series: str, x: float, *, with_models: bool) -> list[Row]:
        plan = self._plan(experiment)
        planned = self._planned(plan).get((series, x))
        if not planned:
            raise NotMeasuredError(f"{experiment} has no series {series!r} at {x:g}")
        if self.variant != AS_ASSUMED:
            planned = [one for one in planned if one.point.seed == plan.seeds[0] or self._needs_no_run(one.point)]
        return [self._row(plan, one, with_models=with_models) for one in planned]

    def _needs_no_run(self, point: Point) -> bool:
        """Say whether the run as assumed serves the variant, too; of others only those with the first seed are run."""
        return can_be_priced_again(point) and self.variant.of(point) == point

    def _plan(self, experiment: str) -> Plan:
        if experiment not in self.plans:
            raise NotMeasuredError(f"there is no experiment {experiment}")
        return self.plans[experiment]

    def _planned(self, plan: Plan) -> _Places:
        ranks = self.ranks if self.ranks in plan.ranks else plan.ranks[0]
        if (plan.id, ranks) not in self._places:
            points: dict[tuple[str, float], list[PlannedPoint]] = {}
            for one in plan.points(scale=self.scale, clock=self.clock, variants=False):
                if one.point.ranks == ranks:
                    points.setdefault((one.series, one.x), []).append(one)
            self._places[plan.id, ranks] = points
        return self._places[plan.id, ranks]

    def _row(self, plan: Plan, planned: PlannedPoint, *, with_models: bool) -> Row:
        point = self.variant.of(planned.point)
        varied_point = replace(point, factors=self.variant.factors)
        to_price = can_be_priced_again(point) and bool(self.variant.factors)
        if not can_be_priced_again(point):
            point = replace(point, factors=factors_that_matter(point, self.variant))
        row = self.find(point.digest)
        if row is None:
            place = f"{planned.series} at {planned.x / plan.x.unit:,g}, {point.ranks}"
            if self.variant.option:
                place += f", {self.variant.name}"
            raise NotMeasuredError(f"{plan.id} has not been run ({place})")
        if to_price:
            row = priced_again(row, point, self.variant)
        return {**row, **predictions(varied_point, row)} if with_models and plan.predict else row


def priced_again(row: Row, point: Point, variant: Variant) -> Row:
    """Return what a run would have given if the operations had other costs."""
    operations = Operations(**{name: _number(row, f"operations_{name}") for name in OPERATION_COLUMNS})
    seconds = varied(profile_named(point.profile), variant.factors).seconds(operations)
    stretch = seconds / _number(row, "seconds")
    return {
        **row,
        "seconds": seconds,
        "service_rate": _number(row, "tuples") / seconds,
        "confidence": None if row.get("confidence") is None else _number(row, "confidence") / stretch,
        "mean_wait_seconds": _number(row, "mean_wait_seconds") * stretch,
        "max_wait_seconds": _number(row, "max_wait_seconds") * stretch,
    }


def _number(row: Row, name: str) -> float:
    value = row.get(name)
    if value is None:
        raise NotMeasuredError(f"the result has no {name}")
    return float(value)
