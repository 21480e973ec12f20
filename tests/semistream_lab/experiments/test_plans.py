"""Plans of experiments, and the points that they name."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from small_lab import RATES, small_plan

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments.figures import CHARTS
from semistream_lab.experiments.papers import PAPERS
from semistream_lab.experiments.plan import all_plans, chosen_plans, parse_plan, plan_named
from semistream_lab.experiments.point import Point, digest_of

OTHER: dict[str, Any] = {
    "kind": "other",
    "algorithm": "inlj",
    "master_rows": 7,
    "memory_bytes": 7,
    "exponent": 0.5,
    "ranks": "shuffled",
    "clock": "wall",
    "profile": "ssd",
    "factors": (("seek_seconds", 2.0),),
    "parameters": (("read_bytes", 7.0),),
    "tuned": True,
    "data": "tpch",
    "arrival_rate": 7.0,
    "queues": 7.0,
    "tuples": 7,
    "seed": 7,
    "options": (("check", "drain"),),
}


@pytest.mark.parametrize("name", all_plans())
def test_every_plan_expands_to_points_of_known_algorithms(name: str) -> None:
    plan = plan_named(name)
    points = [planned.point for planned in plan.points()]
    assert points
    for point in points:
        assert not point.algorithm or point.algorithm in ALGORITHMS
        assert point.ranks in plan.ranks
    assert plan.chart in CHARTS
    assert plan.paper in {"DEMANDJOIN", *(paper.name for paper in PAPERS)}
    assert plan.says.endswith(".")
    labels = [series.label for series in plan.series]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("name", all_plans())
def test_every_plan_can_be_made_smaller(name: str) -> None:
    plan = plan_named(name)
    full, small = (list(plan.points(scale=scale)) for scale in (1.0, 0.1))
    assert len(full) == len(small)
    assert all(s.point.master_rows <= max(20_000, f.point.master_rows) for f, s in zip(full, small, strict=True))


def test_a_smaller_table_of_meshjoin_is_read_in_as_long_reads() -> None:
    plan = small_plan("small", ('algorithm = "inlj"', 'algorithm = "meshjoin"'))
    point = next(plan.points(scale=0.1)).point
    assert dict(point.parameters) == {"parts": 240}
    assert next(plan.points()).point.parameters == ()


def test_the_digest_of_a_point_is_the_same_in_every_process_and_version() -> None:
    assert Point().digest == "95e6335ac5cc29f2b3e6"
    assert Point(algorithm="hybridjoin").digest == Point(algorithm="hybridjoin").digest
    assert (
        digest_of(Point(factors=(("seek_seconds", 2.0),)).to_json()) == Point(factors=(("seek_seconds", 2.0),)).digest
    )


@pytest.mark.parametrize("name", [field.name for field in fields(Point)])
def test_all_that_decides_the_outcome_is_in_the_digest(name: str) -> None:
    assert replace(Point(), **{name: OTHER[name]}).digest != Point().digest


def test_experiments_stand_in_the_order_of_papers_and_figures() -> None:
    names = list(all_plans())
    assert names.index("hybrid-7a") < names.index("hybrid-10a") < names.index("x-3a")


def test_an_unknown_experiment_is_named() -> None:
    with pytest.raises(
        InvalidSettingError, match=r"There is no experiment 'hybrid-99': choose from hybrid-3, .*or all"
    ):
        chosen_plans(["hybrid-7d", "hybrid-99"])


def test_each_experiment_is_chosen_once() -> None:
    assert [plan.id for plan in chosen_plans(["x-3a", "hybrid-7d", "x-3a"])] == ["x-3a", "hybrid-7d"]
    assert {plan.paper for plan in chosen_plans(["all"])} == {paper.name for paper in PAPERS}


def test_an_experiment_with_panels_is_chosen_whole_or_panel_by_panel() -> None:
    grid = chosen_plans(["demand-grid"])
    assert len(grid) == 27
    assert {plan.group for plan in grid} == {"demand-grid"}
    assert [plan.id for plan in chosen_plans(["demand-grid-ssd-2M-50MB"])] == ["demand-grid-ssd-2M-50MB"]
    points = {one.point for plan in grid for one in plan.points() if one.point.algorithm == "demandjoin"}
    assert len(points) == 3 * 3 * 3 * 6 * 2
    with pytest.raises(
        InvalidSettingError, match=r"choose from hybrid-3, .*, demand-grid, demand-random, demand-wall, .*or all"
    ):
        chosen_plans(["demand"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[x]", "[y]"),
        ("queues", "quees"),
        ("ranks =", "ranks"),
        ("predict", 'also_with = ["other keys"]\npredict'),
        ('name = "memory"', 'nam = "memory"'),
    ],
)
def test_a_plan_that_cannot_be_read_is_named(old: str, new: str) -> None:
    with pytest.raises(InvalidSettingError, match="The plan of the experiment 'bad' cannot be read"):
        parse_plan(RATES.replace(old, new), "bad")


def test_only_the_first_seed_is_run_with_other_constants() -> None:
    plan = all_plans()["op-6a"]
    varied = [one.point for one in plan.points() if one.point.factors]
    assert varied
    assert {point.seed for point in varied} == {plan.seeds[0]}
    assert {one.point.seed for one in plan.points(variants=False)} == set(plan.seeds)
