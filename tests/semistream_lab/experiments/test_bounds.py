"""The distance to the best possible: what a point measures, and how the report tells it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments.bounds import OURS, bounds_cells
from semistream_lab.experiments.bounds_page import bounds_card, draw_bounds, draw_tiny
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.measuring.kinds import run
from semistream_lab.experiments.plan import Plan, chosen_plans
from semistream_lab.experiments.point import Point, Row
from semistream_lab.experiments.report import write_report
from semistream_lab.experiments.results import LabSettings, ResultsFolder

SMALL = Point(
    kind="bounds",
    algorithm="demandjoin",
    master_rows=20_000,
    memory_bytes=1_000_000,
    ranks="shuffled",
    parameters=(("pages", 0.0),),
)


def measured(stream: str, **changes: Any) -> Mapping[str, float]:
    options = {"stream": stream, **changes.pop("options", {})}
    row = run(replace(SMALL, **changes, options=tuple(sorted(options.items()))))
    return {name: float(value) for name, value in row.items() if value is not None}


@pytest.mark.parametrize("stream", ["shuffled", "sorted"])
def test_demandjoin_comes_near_the_bounds_that_do_not_know_the_future(stream: str) -> None:
    row = measured(stream)
    assert row["lru_share"] < row["hit_share"] < row["min_share"]
    assert 0.95 * row["static_share"] < row["hit_share"] < 1.01 * row["static_share"]
    assert row["demandjoin_share"] == pytest.approx(row["hit_share"], rel=0.02)
    assert 0.9 * row["on_schedule"] < row["tuples_per_read"] < row["at_best"]


@pytest.mark.parametrize("stream", ["jumping", "drifting", "newest"])
def test_on_a_stream_that_changes_demandjoin_answers_more_than_lru(stream: str) -> None:
    row = measured(stream)
    assert row["lru_share"] < row["hit_share"] < row["min_share"]
    assert "static_share" not in row


def test_other_algorithms_are_measured_beside_bounds_of_their_own_sizes() -> None:
    row = measured("shuffled", algorithm="sscj", parameters=(), options={"rivals": 0.0})
    assert row["hit_share"] < row["min_share"]
    assert row["tuples_per_read"] < row["at_best"]
    assert "lru_share" not in row


def test_rules_in_tiny_joins_need_more_reads_than_the_fewest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semistream_lab.experiments.measuring.tiny_joins._JOINS", 2)
    for name in ("pages", "cache"):
        row = run(Point(kind="tiny-joins", options=(("join", name),)))
        assert float(row["fewest"] or 0) <= float(row["requests_times_wait"] or 0)
    with pytest.raises(InvalidSettingError, match="choose from pages, cache"):
        run(Point(kind="tiny-joins", options=(("join", "large"),)))


def test_a_stream_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="choose from shuffled"):
        measured("growing")


PLANS = {plan.id: plan for plan in chosen_plans(["bounds", "bounds-tiny"])}


def made_up(plans: Mapping[str, Plan]) -> dict[str, Row]:
    """Return rows for all points: MIN answers half, DEMANDJOIN four tenths."""
    rows: dict[str, Row] = {}
    for plan in plans.values():
        for one in plan.points():
            row: dict[str, Any] = {"fewest": 20.0, "hybridjoin": 25.0}
            if plan.group == "bounds":
                row = {
                    "hit_share": 0.4,
                    "min_share": 0.5,
                    "lru_share": 0.2,
                    "tuples_per_read": 19.0,
                    "on_schedule": 20.0,
                }
            rows[one.point.digest] = row
    return rows


def test_cells_are_found_by_stream_skew_and_algorithm() -> None:
    plans = [plan for plan in PLANS.values() if plan.group == "bounds"]
    cells = bounds_cells(plans, Evidence(PLANS, made_up(PLANS).get))
    assert len(cells.cells) == 5 * 4 * 3
    assert cells.streams == ["shuffled", "sorted", "jumping", "drifting", "newest"]
    assert cells.ratios("drifting", OURS, "hit_share", "min_share") == [0.8] * 4
    assert cells.ratios("drifting", OURS, "hit_share", "static_share") == [None] * 4


def test_the_page_shows_figures_and_the_numbers_of_every_cache() -> None:
    evidence = Evidence(PLANS, made_up(PLANS).get)
    cells = bounds_cells([plan for plan in PLANS.values() if plan.group == "bounds"], evidence)
    pictures = draw_bounds(cells)
    assert set(pictures) == {"bounds-cache", "bounds-reads"}
    assert "<td>0.500</td><td>–</td><td>0.400</td>" in bounds_card(cells, pictures)
    tiny = bounds_cells([plan for plan in PLANS.values() if plan.group == "bounds-tiny"], evidence)
    assert all(picture.png.startswith(b"\x89PNG") for picture in (*pictures.values(), *draw_tiny(tiny).values()))


def test_a_report_of_a_folder_with_the_bounds_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultsFolder.make(tmp_path / "results", LabSettings())
    folder.remember(PLANS)
    rows = made_up(PLANS)
    for plan in PLANS.values():
        for one in plan.points():
            folder.save(one.point, rows[one.point.digest])
    monkeypatch.setattr("semistream_lab.experiments.report.all_plans", lambda: PLANS)
    monkeypatch.setattr("semistream_lab.experiments.report.CLAIMS", {})
    page = write_report(folder).page.read_text()
    assert "The distance to the best possible" in page
    assert "The fewest reads there are" in page
    assert len(json.loads((folder.path / "bounds.json").read_text())) == 60
