"""The grid of DEMANDJOIN and the best others: cells, ties, losses with their reasons, and the map."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from semistream_lab.experiments.demand_grid import AS_PUBLISHED, OURS, TUNED, Cell, cells_of, summary_of
from semistream_lab.experiments.demand_grid_page import draw_grid, grid_card
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.plan import chosen_plans
from semistream_lab.experiments.point import Row
from semistream_lab.experiments.report import write_report
from semistream_lab.experiments.results import LabSettings, ResultsFolder

PLANS = {plan.id: plan for plan in chosen_plans(["demand-grid-papers-2M-50MB", "demand-grid-ssd-2M-50MB"])}


def made_up(rate: float, **others: float) -> dict[str, Row]:
    """Return rows for all points of two panels: ours serves `rate`, and others 100 unless more is said."""
    rows: dict[str, Row] = {}
    for plan in PLANS.values():
        for one in plan.points():
            row: dict[str, object] = {"seconds": 10.0, "tuples": 1000, "bytes_read": 5_000, "service_rate": rate}
            if one.series != OURS:
                rates = {"hybridjoin": 100.0, "op-cachejoin": 80.0, **others}
                best = max(rates, key=lambda name: rates[name])
                row |= {"best": best, "service_rate": rates[best], "bytes_read": 3_000}
                row |= {f"rate_{name}": value for name, value in rates.items()} | {"expected_inlj": 1.0}
            rows[one.point.digest] = row  # type: ignore[assignment]
    return rows


def cells(rows: dict[str, Row]) -> list[Cell]:
    return cells_of(PLANS.values(), Evidence(PLANS, rows.get))


def test_every_case_in_both_orders_of_ranks_is_a_cell() -> None:
    made_cells = cells(made_up(150.0))
    assert len(made_cells) == 2 * 2 * 6
    assert {cell.ranks for cell in made_cells} == {"sorted", "shuffled"}
    assert not any(cell.is_lost for cell in made_cells)
    summary = summary_of(made_cells)
    assert (summary.cells, summary.lost, summary.single, summary.published) == (24, 0, "hybridjoin", "hybridjoin")
    assert summary.beside_best == pytest.approx(1.5)
    assert summary.beside_single == pytest.approx(1.5)


def test_two_hundredths_are_a_tie_and_more_is_lost() -> None:
    assert not any(cell.is_lost for cell in cells(made_up(98.1)))
    assert all(cell.is_lost for cell in cells(made_up(97.9)))


def test_the_best_single_other_need_not_be_best_anywhere() -> None:
    rows = made_up(100.0)
    for number, (digest, row) in enumerate(rows.items()):
        if "best" in row:
            rows[digest] = {**row, "rate_meshjoin": 1.0 if number % 2 else 1e4, "rate_sscj": 150.0}
    assert summary_of(cells(rows)).single == "sscj"


def test_a_lost_cell_tells_why() -> None:
    by_reads = cells(made_up(50.0))[0]
    assert by_reads.reason == "hybridjoin reads 3 bytes for a tuple, DEMANDJOIN 5."
    reads_less = replace(by_reads, ours={**by_reads.ours, "bytes_read": 2_000})
    assert "processors are the limit" in reads_less.reason
    unsure = cells({digest: {**row, "confidence": 30.0} for digest, row in made_up(50.0).items()})[0]
    assert "confidence" in unsure.reason
    assert cells(made_up(150.0))[0].reason == ""


def test_cells_that_have_not_been_measured_are_left_out() -> None:
    rows = made_up(150.0)
    for plan in PLANS.values():
        for one in plan.points():
            if (one.series == TUNED and one.x == 0.0) or one.series == AS_PUBLISHED:
                del rows[one.point.digest]
    made_cells = cells(rows)
    assert len(made_cells) == 2 * 2 * 5
    assert summary_of(made_cells).published == ""


def test_the_page_shows_the_map_and_the_losses() -> None:
    rows = made_up(150.0)
    digest = next(iter(rows))
    rows[digest] = {**rows[digest], "service_rate": 60.0}
    made_cells = cells(rows)
    picture = draw_grid(made_cells)
    assert picture.png.startswith(b"\x89PNG")
    card = grid_card(made_cells, picture.svg)
    assert "Cells that are lost" in card
    assert '<b class="fails">0.60</b>' in card
    assert "Cells that are lost" not in grid_card([cell for cell in made_cells if not cell.is_lost], picture.svg)


def test_a_report_of_a_folder_with_the_grid_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultsFolder.make(tmp_path / "results", LabSettings())
    folder.remember(PLANS)
    rows = made_up(150.0)
    for plan in PLANS.values():
        for one in plan.points():
            folder.save(one.point, rows[one.point.digest])
    monkeypatch.setattr("semistream_lab.experiments.report.all_plans", lambda: PLANS)
    monkeypatch.setattr("semistream_lab.experiments.report.CLAIMS", {})
    written = write_report(folder)
    page = written.page.read_text()
    assert "DEMANDJOIN compared with the family" in page
    assert (folder.path / "figures" / "demand-grid.png").exists()
    listed = json.loads((folder.path / "demand-grid.json").read_text())
    assert len(listed) == 24
    assert all(row["ratio"] == pytest.approx(1.5) for row in listed)
