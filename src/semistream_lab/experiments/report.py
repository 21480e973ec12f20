"""Makes figures, verdicts and one page of what a folder of results has; nothing is measured here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import semistream_lab.experiments.claims  # noqa: F401  (registers the judges)
from semistream.core.flat_json import Scalar
from semistream_lab.experiments.bounds import BOUNDS_GROUP, TINY_GROUP, bounds_cells
from semistream_lab.experiments.bounds_page import bounds_card, draw_bounds, draw_tiny, tiny_card
from semistream_lab.experiments.curves import curves_of
from semistream_lab.experiments.demand_grid import GROUP, cells_of
from semistream_lab.experiments.demand_grid_page import draw_grid, grid_card
from semistream_lab.experiments.demand_random import RANDOM_GROUP, random_card, random_cells_of
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.figures import Picture, draw
from semistream_lab.experiments.judging import CASES, CLAIMS, UNJUDGED, VERDICTS, judge
from semistream_lab.experiments.papers import CLAIM_COUNT, paper_of
from semistream_lab.experiments.plan import Plan, PlannedPoint, all_plans
from semistream_lab.experiments.point import Row
from semistream_lab.experiments.report_page import ReportPage, Section, ShownFigure
from semistream_lab.experiments.results import FinishedPoints, ResultsFolder
from semistream_lab.experiments.spark_family import FAMILY_GROUP, family_cells
from semistream_lab.experiments.spark_family_page import draw_family, family_card
from semistream_lab.experiments.verdicts_page import verdicts_page
from semistream_lab.experiments.waiting_room import ROOM_GROUP, room_cells
from semistream_lab.experiments.waiting_room_page import draw_room, room_card

_WITH_OWN_CARDS = {GROUP, RANDOM_GROUP, ROOM_GROUP, FAMILY_GROUP, BOUNDS_GROUP, TINY_GROUP}

Verdict = Mapping[str, Scalar]
Progress = Callable[[str, int, int], None]
"""Is told what is being made, how much of it is done, and of how much."""


@dataclass(frozen=True)
class Report:
    """What a report says, and where it is."""

    page: Path
    experiments: int
    """Experiments with at least one result."""
    verdicts: Mapping[str, int]
    """How many claims hold, fail, depend on a setting and are unjudged."""
    flips: int
    """Claims whose verdict changes with a cost constant."""
    missing: int
    """Points of these experiments that have not been run."""
    damaged: list[Path]


def write_report(folder: ResultsFolder, progress: Progress | None = None) -> Report:
    """Write figures, `claims.json`, `verdicts.md`, `results.json` and the page into a folder of results."""
    finished = folder.load()
    plans = {name: _with_seeds_of(plan, folder, finished) for name, plan in all_plans().items()}
    settings = folder.settings
    evidence = Evidence(plans, finished.rows.get, scale=settings.scale, clock=settings.clock)
    verdicts = judged(evidence, progress)
    folder.write_rows("claims.json", verdicts)
    folder.write("verdicts.md", verdicts_page(verdicts))
    sections, rows, missing = [], [], 0
    asked = [plans[name] for name in plans if name in folder.experiments() and plans[name].group not in _WITH_OWN_CARDS]
    makers = (_grid, _random, _room, _family, _bounds)
    cards = "".join(make(plans, evidence, folder) for make in makers)
    for number, plan in enumerate(asked):
        if progress is not None:
            progress("Drawing figures", number, len(asked))
        planned = list(plan.points(scale=settings.scale, clock=settings.clock))
        measured = [one for one in planned if one.point.digest in finished.rows]
        if not measured:
            continue
        missing += len({one.point for one in planned}) - len({one.point for one in measured})
        rows += [_flat(plan, one, finished.rows[one.point.digest]) for one in measured]
        about = [verdict for verdict in verdicts if verdict["experiment"] == plan.id]
        sections.append(Section(plan, _figures(plan, evidence, folder), about))
    folder.write_rows("results.json", rows)
    shown = {section.plan.id for section in sections}
    not_run = [plan for plan in plans.values() if plan.id not in shown and not plan.group]
    failures = [one for one in folder.failures() if one.get("digest") not in finished.rows]
    page = ReportPage(settings, sections, verdicts, not_run, missing, failures, cards).html()
    counts = Counter(str(verdict["verdict"]) for verdict in verdicts)
    return Report(
        folder.write("report.html", page),
        len(sections),
        {verdict: counts[verdict] for verdict in VERDICTS},
        sum(1 for verdict in verdicts if verdict["flips_with"]),
        missing,
        finished.damaged,
    )


def _grid(plans: Mapping[str, Plan], evidence: Evidence, folder: ResultsFolder) -> str:
    """Write what there is of the grid, and return its part of the page."""
    cells = cells_of([plan for plan in plans.values() if plan.group == GROUP], evidence)
    if not cells:
        return ""
    folder.write_rows(f"{GROUP}.json", [cell.row() for cell in cells])
    picture = draw_grid(cells)
    _save(picture, GROUP, folder)
    return grid_card(cells, picture.svg)


def _random(plans: Mapping[str, Plan], evidence: Evidence, folder: ResultsFolder) -> str:
    """Write what there is of the cells drawn at random, and return their part of the page."""
    cells = random_cells_of([plan for plan in plans.values() if plan.group == RANDOM_GROUP], evidence)
    if not cells:
        return ""
    folder.write_rows(f"{RANDOM_GROUP}.json", [cell.row() for cell in cells])
    return random_card(cells)


def _room(plans: Mapping[str, Plan], evidence: Evidence, folder: ResultsFolder) -> str:
    """Write what there is of the waiting room, and return its part of the page."""
    cells = room_cells([plan for plan in plans.values() if plan.group == ROOM_GROUP], evidence)
    if not cells.cells:
        return ""
    folder.write_rows(f"{ROOM_GROUP}.json", [cell.row() for cell in cells.cells])
    pictures = draw_room(cells)
    for name, picture in pictures.items():
        _save(picture, name, folder)
    return room_card(cells, pictures)


def _family(plans: Mapping[str, Plan], evidence: Evidence, folder: ResultsFolder) -> str:
    """Write what there is of the family on Spark, and return its part of the page."""
    cells = family_cells([plan for plan in plans.values() if plan.group == FAMILY_GROUP], evidence)
    if not cells.cells:
        return ""
    folder.write_rows(f"{FAMILY_GROUP}.json", [cell.row() for cell in cells.cells])
    pictures = draw_family(cells)
    for name, picture in pictures.items():
        _save(picture, name, folder)
    return family_card(cells, pictures)


def _bounds(plans: Mapping[str, Plan], evidence: Evidence, folder: ResultsFolder) -> str:
    """Write what there is of the bounds, and return their part of the page."""
    cards = ""
    for group in (BOUNDS_GROUP, TINY_GROUP):
        cells = bounds_cells([plan for plan in plans.values() if plan.group == group], evidence)
        if not cells.cells:
            continue
        folder.write_rows(f"{group}.json", [cell.row() for cell in cells.cells])
        pictures = draw_bounds(cells) if group == BOUNDS_GROUP else draw_tiny(cells)
        for name, picture in pictures.items():
            _save(picture, name, folder)
        cards += bounds_card(cells, pictures) if group == BOUNDS_GROUP else tiny_card(pictures)
    return cards


def judged(evidence: Evidence, progress: Progress | None = None) -> list[Verdict]:
    """Return the verdict on every claim, by its number."""
    verdicts: list[Verdict] = []
    for number in range(1, CLAIM_COUNT + 1):
        if progress is not None:
            progress("Judging claims", number - 1, CLAIM_COUNT)
        verdict = judge(CLAIMS[number], evidence) if number in CLAIMS else _without_judge(number)
        verdicts.append({**verdict, "paper": paper_of(number).name})
    return verdicts


def _without_judge(number: int) -> Verdict:
    texts = ("experiment", "claim", "expected", "measured")
    others = ("ranks", *(f"{what}_{case}" for case in CASES for what in ("verdict", "measured")))
    return {
        "number": number,
        **dict.fromkeys(texts, ""),
        "verdict": UNJUDGED,
        "reason": "Nothing judges this claim yet.",
        "depends_on": "",
        "standing": "",
        **dict.fromkeys(others, ""),
        "depends_on_costs": False,
        "flips_with": "",
        "not_judged_with": "",
    }


def _with_seeds_of(plan: Plan, folder: ResultsFolder, finished: FinishedPoints) -> Plan:
    """Return the plan with those repetitions that were finished, or its own if none was."""
    settings = folder.settings
    whole = []
    for seed in sorted(finished.seeds | set(plan.seeds)):
        points = replace(plan, seeds=(seed,)).points(scale=settings.scale, clock=settings.clock, variants=False)
        if all(one.point.digest in finished.rows for one in points):
            whole.append(seed)
    return replace(plan, seeds=tuple(whole)) if whole else plan


def _figures(plan: Plan, evidence: Evidence, folder: ResultsFolder) -> list[ShownFigure]:
    shown = []
    for ranks in plan.ranks:
        curves = curves_of(plan, replace(evidence, ranks=ranks))
        picture = draw(plan, curves)
        if picture is not None:
            name = plan.id if ranks == "sorted" else f"{plan.id}-{ranks}"
            _save(picture, name, folder)
            shown.append(ShownFigure(ranks, name, picture.svg, curves))
    return shown


def _save(picture: Picture, name: str, folder: ResultsFolder) -> None:
    folder.write(f"figures/{name}.png", picture.png)
    folder.write(f"figures/{name}.svg", picture.svg)


def _flat(plan: Plan, planned: PlannedPoint, row: Row) -> Mapping[str, Scalar]:
    """Return a result as one flat object, with its place in the experiment and what decided its outcome."""
    point = asdict(planned.point)
    lists = {name: dict(point.pop(name)) for name in ("factors", "parameters", "options")}
    named = {f"{name[:-1]}_{key}": value for name, values in lists.items() for key, value in values.items()}
    place: dict[str, Scalar] = {"experiment": plan.id, "series": planned.series, "x": planned.x}
    place["variant"] = planned.variant
    return {**place, **point, **named, **row, "digest": planned.point.digest}
