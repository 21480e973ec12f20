"""The cells that are drawn at random, and what the lab's page says of them."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from semistream_lab.experiments.demand_random import (
    CELLS,
    RANDOM_GROUP,
    plan_text,
    random_card,
    random_cells,
    random_cells_of,
)
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.plan import chosen_plans
from semistream_lab.experiments.point import Row
from semistream_lab.experiments.report import write_report
from semistream_lab.experiments.results import LabSettings, ResultsFolder

PLANS = {plan.id: plan for plan in chosen_plans([RANDOM_GROUP])}


def made_up(ours: float, others: float) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for one in PLANS["demand-random-0"].points():
        row: dict[str, str | float] = {"tuples": 1000, "bytes_read": 5_000, "service_rate": ours}
        if one.point.kind == "best-of-family":
            row |= {"service_rate": others, "bytes_read": 3_000, "best": "hybridjoin", "rate_hybridjoin": others}
        rows[one.point.digest] = row
    return rows


def test_the_plan_is_what_the_seed_gives() -> None:
    plans = resources.files("semistream_lab.experiments") / "plans"
    assert (plans / f"{RANDOM_GROUP}.toml").read_text(encoding="utf-8") == plan_text(random_cells())


def test_the_points_are_the_cells_drawn_each_for_demandjoin_and_for_the_others() -> None:
    points = [one.point for one in PLANS["demand-random-0"].points()]
    assert len(set(points)) == 2 * CELLS
    drawn = {(c.profile, c.master_rows, c.memory_mb * 1_000_000, c.exponent, c.ranks) for c in random_cells()}
    assert {(p.profile, p.master_rows, p.memory_bytes, p.exponent, p.ranks) for p in points} == drawn
    assert all(p.tuned == (p.kind == "best-of-family") for p in points)


def test_cells_lie_within_their_bounds_and_another_seed_gives_others() -> None:
    cells = random_cells(7, 500)
    assert all(200_000 <= cell.master_rows <= 10_000_000 for cell in cells)
    assert all(8 <= cell.memory_mb <= 300 and 0 <= cell.exponent <= 1.4 for cell in cells)
    assert {cell.profile for cell in cells} == {"papers", "ssd", "remote"}
    assert not set(cells) & set(random_cells(8, 500))


def test_cells_that_have_been_measured_are_listed_with_their_ratios() -> None:
    rows = made_up(90.0, 100.0)
    cells = random_cells_of(PLANS.values(), Evidence(PLANS, rows.get))
    assert len(cells) == CELLS
    assert all(cell.is_lost for cell in cells)
    page = random_card(cells)
    assert f"{CELLS} cells, of which {CELLS} are lost" in page
    assert page.count("0.90") == CELLS
    assert not random_cells_of(PLANS.values(), Evidence(PLANS, lambda _: None))


def test_the_report_has_them_beside_the_others(tmp_path: Path) -> None:
    folder = ResultsFolder.make(tmp_path, LabSettings())
    folder.remember(PLANS)
    for one in PLANS["demand-random-0"].points():
        folder.save(one.point, made_up(150.0, 100.0)[one.point.digest])
    report = write_report(folder)
    assert 'id="demand-random"' in report.page.read_text(encoding="utf-8")
    assert (tmp_path / "demand-random.json").exists()
