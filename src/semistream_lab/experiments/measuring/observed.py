"""Runs a recipe that has been changed so that it tells more than rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from semistream.algorithms.registry import algorithm_named
from semistream.engine.recipe import Recipe, Setting
from semistream.policies.contract import PageChoice
from semistream.store.contract import MasterStore
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.point import Point
from semistream_lab.measurement import Measurement, measure


def watched(point: Point, watch: Callable[[PageChoice], PageChoice]) -> Recipe:
    """Return the recipe of a point with another page choice around its own."""
    recipe = algorithm_named(point.algorithm)

    def choice(setting: Setting) -> PageChoice:
        return watch(recipe.page_choice(setting))

    return replace(recipe, page_choice=choice)


def measured(point: Point, recipe: Recipe, *, store: MasterStore | None = None, wall: bool = False) -> Measurement:
    """Measure a point with this recipe on the model clock, or the wall clock, on the usual table or a given one."""
    return measure(
        recipe,
        store or rates.table_of(point),
        rates.workload(point),
        memory=point.memory_bytes,
        tuples=max(1, point.tuples),
        queues=point.queues,
        profile=None if wall else rates.costs_of(point),
        accounting="papers",
        seed=point.seed,
        parameters=rates.parameters_of(point),
        partitions=point.partitions,
    )
