"""Plans of experiments: TOML files that say what is varied, what is fixed, and which series are drawn."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import resources
from itertools import product
from typing import Any

from semistream.algorithms.meshjoin import PARTS
from semistream.algorithms.registry import ALGORITHMS, algorithm_named
from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments.papers import LAWS, PAPERS
from semistream_lab.experiments.point import LAW, Point
from semistream_lab.experiments.variants import DISCRETE_KEYS, MACHINES, SETTINGS, Variant

_POINT_FIELDS = {f.name for f in fields(Point)}
_NUMBER_FIELDS: Mapping[str, type[int] | type[float]] = {
    **dict.fromkeys(("master_rows", "tuples", "seed"), int),
    **dict.fromkeys(("exponent", "arrival_rate", "queues"), float),
}
_READ_IN_SEQUENCE = {"meshjoin", "r-meshjoin"}
_KINDS_WITHOUT_A_LAW = {"generator", "switching"}
"""They name their law themselves, or draw no keys."""
_FEWEST_ROWS = 20_000
_MIN_MEMORY = 1_000_000


@dataclass(frozen=True)
class Axis:
    """What runs along an axis of the figure: a field of the point, `memory`, or `parameter.NAME` or `option.NAME`."""

    name: str
    values: tuple[float, ...]
    label: str
    scale: str = "linear"
    unit: float = 1.0
    """Values are divided by this for the figure."""


@dataclass(frozen=True)
class Metric:
    """What is drawn: a column of the results."""

    name: str = "service_rate"
    label: str = "Service rate (tuples/s)"
    scale: str = "linear"
    unit: float = 1.0


@dataclass(frozen=True)
class Series:
    """One curve: an algorithm, with what sets it apart."""

    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedPoint:
    """A point with its place in an experiment."""

    series: str
    x: float
    point: Point
    variant: str = ""
    """What is assumed otherwise than in the experiment, if anything."""


@dataclass(frozen=True)
class Plan:
    """One experiment."""

    id: str
    paper: str
    figure: str
    title: str
    says: str
    """What the paper shows, in one sentence."""
    x: Axis
    metric: Metric
    series: tuple[Series, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    ranks: tuple[str, ...] = ("sorted",)
    seeds: tuple[int, ...] = (0,)
    vary: bool = False
    """Points that cannot be priced again are run with each constant halved and doubled, too, with the first seed."""
    also_with: tuple[str, ...] = (DISCRETE_KEYS.name,)
    """Variants of a setting that the points of a paper's experiment are run with, too."""
    predict: bool = False
    """The cost models' rates are given beside the measured ones."""
    chart: str = "lines"
    group: str = ""
    """The experiment that this one is a panel of, if its plan has panels: one for each choice of further fields."""

    def points(self, *, scale: float = 1.0, clock: str = "model", variants: bool = True) -> Iterator[PlannedPoint]:
        """Yield every run of the experiment, those of variants last."""
        planned = [
            PlannedPoint(series.label, x, self._point(series, x, ranks, seed, scale, clock))
            for ranks in self.ranks
            for series in self.series
            for x in self.x.values
            for seed in self.seeds
        ]
        yield from planned
        if not variants or clock != "model":
            return
        first = [one for one in planned if one.point.seed == self.seeds[0]]
        for variant in MACHINES if self.vary else ():
            for one in first:
                if not can_be_priced_again(one.point) and (factors := factors_that_matter(one.point, variant)):
                    yield replace(one, point=replace(one.point, factors=factors), variant=variant.name)
        for variant in self._settings():
            for one in first:
                if (other := variant.of(one.point)) != one.point:
                    yield replace(one, point=other, variant=variant.name)

    def _settings(self) -> list[Variant]:
        return [variant for variant in SETTINGS if variant.name in self.also_with] if self.paper in LAWS else []

    def _point(self, series: Series, x: float, ranks: str, seed: int, scale: float, clock: str) -> Point:
        settings: dict[str, Any] = {"ranks": ranks, "seed": seed, "clock": clock}
        parameters: dict[str, float] = {}
        options: dict[str, str | float] = {}
        for name, value in [*self.fixed.items(), *series.settings.items(), (self.x.name, x)]:
            if name.startswith("parameter."):
                parameters[name.removeprefix("parameter.")] = float(value)
            elif name.startswith("option."):
                options[name.removeprefix("option.")] = value
            elif name == "memory":
                settings["memory_bytes"] = parse_bytes(value) if isinstance(value, str) else int(value)
            elif name in _NUMBER_FIELDS:  # so that 2 million is one point, wherever it stands
                settings[name] = _NUMBER_FIELDS[name](value)
            else:
                settings[name] = value
        law = LAWS.get(self.paper, "discrete")
        generated = settings.get("data", "zipf") == "zipf" and settings.get("kind", "rate") not in _KINDS_WITHOUT_A_LAW
        if generated and law != "discrete" and clock == "model":
            options.setdefault(LAW, law)
        settings["parameters"] = tuple(sorted(parameters.items()))
        settings["options"] = tuple(sorted(options.items()))
        return _scaled(Point(**settings), scale)


def can_be_priced_again(point: Point) -> bool:
    """Say whether the run does the same whatever the operations cost, so that it need not be run for other costs."""
    if point.kind != "rate" or point.clock != "model" or point.arrival_rate:
        return False
    recipe = ALGORITHMS[point.algorithm]
    return not recipe.side_by_side and recipe.name != "demandjoin"


def factors_that_matter(point: Point, variant: Variant) -> tuple[tuple[str, float], ...]:
    """Return what a variant changes for a run that cannot be priced again; only a ring ever reads in sequence."""
    if point.algorithm in _READ_IN_SEQUENCE:
        return variant.factors
    return tuple((constant, factor) for constant, factor in variant.factors if constant != "request_seconds")


def plans_named(name: str) -> list[Plan]:
    """Return the plan of an experiment, or those of all its panels."""
    plans = all_plans()
    named = [plan for plan in plans.values() if name in (plan.id, plan.group)]
    if not named:
        names = dict.fromkeys(plan.group or plan.id for plan in plans.values())
        raise InvalidSettingError(f"There is no experiment {name!r}: choose from {', '.join(names)}, or all.")
    return named


def plan_named(name: str) -> Plan:
    """Return the plan of one experiment."""
    return plans_named(name)[0]


@cache
def all_plans() -> Mapping[str, Plan]:
    """Return every plan, by its id."""
    folder = resources.files("semistream_lab.experiments") / "plans"
    files = [entry for entry in folder.iterdir() if entry.name.endswith(".toml")]
    plans = [
        plan
        for entry in files
        for plan in parse_plans(entry.read_text(encoding="utf-8"), entry.name.removesuffix(".toml"))
    ]
    return {plan.id: plan for plan in sorted(plans, key=_place)}


def _place(plan: Plan) -> tuple[int, list[tuple[int, str]]]:
    """Return where a plan stands among all: by paper, then as people count (7a before 10a)."""
    papers = {paper.name: number for number, paper in enumerate(PAPERS)}
    parts = re.findall(r"\d+|[^\d]+", plan.id)
    return papers.get(plan.paper, len(papers)), [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def parse_plan(text: str, name: str) -> Plan:
    """Return the plan that a TOML text without panels describes."""
    (plan,) = parse_plans(text, name)
    return plan


def parse_plans(text: str, name: str) -> list[Plan]:
    """Return the plan that a TOML text describes: one, or one for each of its panels."""
    try:
        raw = tomllib.loads(text)
        panels = raw.pop("panels", {})
        plan = _plan(raw, name)
        plans = [_panel(plan, tuple(panels), values) for values in product(*panels.values())] if panels else [plan]
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise InvalidSettingError(f"The plan of the experiment {name!r} cannot be read: {error}.") from None
    for planned in plans[0].points():
        if planned.point.algorithm:
            algorithm_named(planned.point.algorithm)
    return plans


def _panel(plan: Plan, names: Sequence[str], values: Sequence[Any]) -> Plan:
    """Return the plan of one panel, which fixes some more fields."""
    chosen = _checked(dict(zip(names, values, strict=True)))
    shown = [f"{value / 1e6:g}M" if name == "master_rows" else str(value) for name, value in chosen.items()]
    title = f"{plan.title}: {', '.join(shown)}"
    return replace(plan, id="-".join([plan.id, *shown]), group=plan.id, title=title, fixed={**plan.fixed, **chosen})


def _plan(raw: Mapping[str, Any], name: str) -> Plan:
    x = dict(raw["x"])
    values = tuple(float(parse_bytes(v)) if isinstance(v, str) else float(v) for v in x.pop("values"))
    series = _crossed([_series(one) for one in raw["series"]], [_series(one) for one in raw.get("ways", [])])
    known = {"paper", "figure", "title", "says", "vary", "predict", "chart"}
    return Plan(
        id=name,
        x=Axis(values=values, **x),
        metric=Metric(**raw.get("metric", {})),
        series=series,
        fixed=_checked(raw.get("fixed", {})),
        ranks=tuple(raw.get("ranks", ["sorted"])),
        seeds=tuple(raw.get("seeds", [0])),
        also_with=_named_settings(raw.get("also_with", [DISCRETE_KEYS.name])),
        **{key: raw[key] for key in known if key in raw},
    )


def _named_settings(names: Sequence[str]) -> tuple[str, ...]:
    known = {variant.name for variant in SETTINGS}
    if unknown := set(names) - known:
        raise ValueError(f"it is also run with {', '.join(sorted(unknown))}, but what is known is {', '.join(known)}")
    return tuple(names)


def _crossed(series: Sequence[Series], ways: Sequence[Series]) -> tuple[Series, ...]:
    """Return each series in each of the ways, if there are any."""
    if not ways:
        return tuple(series)
    return tuple(
        Series(f"{one.label}, {way.label}", {**one.settings, **way.settings}) for way in ways for one in series
    )


def _series(raw: Mapping[str, Any]) -> Series:
    settings = {key: value for key, value in raw.items() if key != "label"}
    return Series(raw["label"], _checked(settings))


def _checked(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in settings:
        if name not in _POINT_FIELDS | {"memory"} and not name.startswith(("parameter.", "option.")):
            raise ValueError(f"it sets {name!r}, which a point does not have")
    return settings


def _scaled(point: Point, scale: float) -> Point:
    """Return a smaller run of the same shape: a smaller table in less memory."""
    if scale == 1.0:
        return point
    given = dict(point.parameters)
    if point.algorithm and PARTS.name in ALGORITHMS[point.algorithm].parameters:
        # So many parts share the table: fewer of a smaller one, so that a read is as long as ever.
        given[PARTS.name] = max(1, round(given.get(PARTS.name, PARTS.default) * scale))
    known = ALGORITHMS[point.algorithm].parameters if point.algorithm else {}
    in_bytes = {name for name, parameter in known.items() if parameter.is_bytes}
    parameters = tuple(sorted((n, float(round(v * scale)) if n in in_bytes else v) for n, v in given.items()))
    return replace(
        point,
        master_rows=max(_FEWEST_ROWS, round(point.master_rows * scale)),
        memory_bytes=max(_MIN_MEMORY, round(point.memory_bytes * scale)),
        tuples=round(point.tuples * scale),
        parameters=parameters,
    )


def chosen_plans(names: Sequence[str]) -> list[Plan]:
    """Return the plans of some names, each once; `all` are those of the papers, without our own of many panels."""
    plans = [plan for plan in all_plans().values() if "all" in names and not plan.group]
    plans += [plan for name in names if name != "all" for plan in plans_named(name)]
    return list({plan.id: plan for plan in plans}.values())
