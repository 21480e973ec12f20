"""Finds the parameters that let an algorithm serve most tuples: by its cost model, or by measuring."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

from semistream.algorithms.registry import algorithm_named
from semistream.core.costs import CostProfile
from semistream.core.errors import BudgetTooSmallError
from semistream.engine.recipe import Recipe
from semistream.generator import KeySource, Workload
from semistream.store.contract import MasterStore
from semistream.store.memory import MemoryStore
from semistream_lab.cost.corrected import STANDARD_QUEUES, predict
from semistream_lab.cost.measured_refinement import refined
from semistream_lab.cost.situation import Situation
from semistream_lab.cost.tuning import CurvePoint, Tuning
from semistream_lab.cost.tuning_ranges import Axis, axes_of
from semistream_lab.measurement import measure

Progress = Callable[[int, int], None]
_COARSE, _FINE = 13, 9
_COARSE_IN_TURN, _FINE_IN_TURN = 9, 5
_COARSE_MEASURED, _FINE_MEASURED = 5, 5
_MAX_GRID_AXES = 2
_PASSES = 2
_MIN_MEASURED_TUPLES = 20_000
_WORTHWHILE = 1e-6


def tune(
    algorithm: str,
    situation: Situation,
    costs: CostProfile,
    *,
    progress: Progress | None = None,
    queues: float = STANDARD_QUEUES,
    refine: bool = True,
) -> Tuning:
    """Return the best parameters by the cost model: a coarse grid in log space, then a finer one around its best.

    Where more than two parameters are tuned, they take turns instead of spanning a grid, but for the size of a cache
    and the threshold to enter it: those two make up for each other. `queues` is as in `predict`.
    With `refine`, parameters that the model is too rough for are chosen by a few short measurements on the model clock.
    """
    recipe = algorithm_named(algorithm)
    axes = [axis for axis in axes_of(recipe, situation) if axis.by_model]
    search = _Search(
        recipe,
        lambda parameters: predict(algorithm, situation, costs, parameters, queues=queues).service_rate,
        progress,
    )
    if not axes:
        return search.result({}, "model", f"{algorithm} has nothing to tune: its defaults are used.")
    best = _default_point(recipe, axes)
    if len(axes) <= _MAX_GRID_AXES:
        best = search.grid({axis.parameter: axis.values(_COARSE) for axis in axes}, best)
        best = search.grid({a.parameter: a.around(best[a.parameter], _COARSE, _FINE) for a in axes}, best)
    else:
        for _ in range(_PASSES):
            for group in _taking_turns(axes):
                best = search.grid({axis.parameter: axis.values(_COARSE_IN_TURN) for axis in group}, best)
        for steps in (_COARSE_IN_TURN, 3 * _COARSE_IN_TURN):
            for group in _taking_turns(axes):
                near = {axis.parameter: axis.around(best[axis.parameter], steps, _FINE_IN_TURN) for axis in group}
                best = search.grid(near, best)
    rough = [axis.parameter for axis in axes_of(recipe, situation) if not axis.by_model]
    if rough and refine:
        best |= refined(recipe, situation, costs, best, rough)
    return search.result(best, "model", _beyond_model(rough, measured=refine))


def tune_by_measurement(
    algorithm: str,
    situation: Situation,
    costs: CostProfile,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    start: Tuning | None = None,
    store: MasterStore | None = None,
    keys: Callable[[], KeySource] | None = None,
    queues: float = STANDARD_QUEUES,
) -> Tuning:
    """Return the best parameters by measuring, parameter after parameter: a coarse grid, then a finer one.

    It begins at `start`, or where the model sees the best. Measured is on the model clock with `costs`, or on the wall
    clock if a `store` is given; then `keys` must give the stream for its keys, unless they are 1 to their number.
    """
    recipe = algorithm_named(algorithm)
    axes = axes_of(recipe, situation)
    table = store or MemoryStore.of_codes(
        situation.master_rows, row_bytes=situation.row_bytes, page_bytes=situation.page_bytes
    )

    def measured(parameters: Mapping[str, float]) -> float:
        stream = keys() if keys is not None else situation.keys(seed)
        run = measure(
            recipe,
            table,
            Workload(stream),
            memory=situation.memory_bytes,
            tuples=_MIN_MEASURED_TUPLES,
            queues=queues,
            profile=costs if store is None else None,
            accounting=situation.accounting,
            seed=seed,
            parameters=parameters,
        )
        return run.service_rate

    search = _Search(recipe, measured, progress)
    if not axes:
        return search.result({}, "measurement", f"{algorithm} has nothing to tune: its defaults are used.")
    start = start or tune(algorithm, situation, costs, queues=queues)
    best = {**_default_point(recipe, axes), **start.parameters}
    search.expect(len(axes) * (_COARSE_MEASURED + _FINE_MEASURED))
    for axis in axes:
        values = [best[axis.parameter], *axis.values(_COARSE_MEASURED)]
        best = search.grid({axis.parameter: values}, best)
    for axis in axes:
        near = axis.around(best[axis.parameter], 2 * _COARSE_MEASURED, _FINE_MEASURED)
        best = search.grid({axis.parameter: near}, best)
    return search.result(best, "measurement")


def tuned_parameters(algorithm: str, situation: Situation, costs: CostProfile) -> dict[str, float]:
    """Return the best parameters by the cost model; remembered from call to call."""
    return dict(_remembered(algorithm, situation, costs))


@lru_cache(maxsize=512)
def _remembered(algorithm: str, situation: Situation, costs: CostProfile) -> tuple[tuple[str, float], ...]:
    return tuple(tune(algorithm, situation, costs).parameters.items())


def _beyond_model(rough: list[str], *, measured: bool) -> str:
    if not rough:
        return ""
    names = " and ".join(rough)
    if measured:
        return f"The model is too rough to tune {names}: they were chosen by short measurements on the model clock."
    return f"The model is too rough to tune {names}: measure to find better values."


def _taking_turns(axes: list[Axis]) -> list[list[Axis]]:
    """Return the parameters that are varied together, after those that are varied alone."""
    groups: dict[str, list[Axis]] = {}
    for axis in axes:
        if axis.together:
            groups.setdefault(axis.together, []).append(axis)
    return [*([axis] for axis in axes if not axis.together), *groups.values()]


def _default_point(recipe: Recipe, axes: list[Axis]) -> dict[str, float]:
    return {axis.parameter: recipe.parameters[axis.parameter].default for axis in axes}


class _Search:
    """Tries points and remembers them; a point that needs more memory than there is counts as none."""

    def __init__(self, recipe: Recipe, rate: Callable[[Mapping[str, float]], float], progress: Progress | None) -> None:
        self._recipe = recipe
        self._rate = rate
        self._progress = progress
        self._tried: dict[tuple[tuple[str, float], ...], float] = {}
        self._expected = 0

    def expect(self, points: int) -> None:
        """Say how many points there will be, for the progress."""
        self._expected = points

    def grid(self, values: Mapping[str, list[float]], best: dict[str, float]) -> dict[str, float]:
        """Try all combinations of values, the other parameters as in `best`; return the best point so far."""
        rate = self._try(best)
        for combination in itertools.product(*values.values()):
            point = {**best, **dict(zip(values, combination, strict=True))}
            tried = self._try(point)
            if tried > rate * (1 + _WORTHWHILE):
                best, rate = point, tried
        return best

    def result(self, best: dict[str, float], by: Literal["model", "measurement"], note: str = "") -> Tuning:
        """Return the outcome; raises the engine's error if there is too little memory for any point."""
        rate = self._try(best)
        if not rate:
            rate = self._rate(best)
        curve = tuple(CurvePoint(dict(point), tried_rate) for point, tried_rate in self._tried.items() if tried_rate)
        return Tuning(self._recipe.name, best, rate, curve, by, note)

    def _try(self, point: Mapping[str, float]) -> float:
        key = tuple(sorted(point.items()))
        if key not in self._tried:
            try:
                self._tried[key] = self._rate(point)
            except BudgetTooSmallError:
                self._tried[key] = 0.0
            if self._progress is not None:
                self._progress(len(self._tried), max(self._expected, len(self._tried)))
        return self._tried[key]
