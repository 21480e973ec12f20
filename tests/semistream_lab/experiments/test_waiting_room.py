"""The simulated waiting room: what a point measures, and how the report tells it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.measuring import waiting_room as measuring
from semistream_lab.experiments.measuring.kinds import run
from semistream_lab.experiments.plan import chosen_plans
from semistream_lab.experiments.point import Point, Row
from semistream_lab.experiments.report import write_report
from semistream_lab.experiments.results import LabSettings, ResultsFolder
from semistream_lab.experiments.waiting_room import LONG, OURS, ROOM, SHORT, room_cells
from semistream_lab.experiments.waiting_room_page import draw_room, room_card

SMALL = Point(
    kind="waiting-room",
    algorithm="demandjoin",
    master_rows=200_000,
    memory_bytes=1_600_000,
    ranks="shuffled",
    profile="remote-20ms",
    arrival_rate=300.0,
)


@pytest.fixture(autouse=True)
def _short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_WARM_BATCH_ROWS", 10_000)
    measuring._warm_cache.cache_clear()


def measured(**changes: Any) -> Row:
    options = {name: changes.pop(name) for name in ("trigger", "max_wait", "rule") if name in changes}
    return run(replace(SMALL, **changes, options=tuple(sorted(options.items()))))


def number(row: Row, name: str) -> float:
    return float(row[name] or 0)


def test_a_room_needs_the_requests_of_a_long_trigger_at_the_latency_of_a_short_one() -> None:
    short, long, room = measured(trigger=1.0), measured(trigger=10.0), measured(trigger=1.0, max_wait=10.0)
    assert number(room, "requests_per_row") < 1.2 * number(long, "requests_per_row")
    assert number(room, "requests_per_row") < 0.7 * number(short, "requests_per_row")
    assert number(room, "latency_p50") < number(long, "latency_p50") / 2
    assert number(room, "operator_latency_max") < 10.0 + 2 * number(room, "max_micro_batch_seconds")
    assert number(short, "waiting_rows") == 0 < number(room, "waiting_rows")


def test_a_room_sustains_more_and_micro_batches_at_that_rate_keep_up() -> None:
    short, room = measured(arrival_rate=0.0), measured(arrival_rate=0.0, max_wait=10.0)
    assert number(room, "sustainable_rate") > 1.5 * number(short, "sustainable_rate")
    limit = number(short, "sustainable_rate")
    assert measured(arrival_rate=0.9 * limit)["keeps_up"]
    assert not measured(arrival_rate=1.5 * limit)["keeps_up"]


def test_the_measured_stream_goes_on_where_the_one_that_warmed_the_cache_ended() -> None:
    joining = measuring._Joining(SMALL, measuring._Setting.of(SMALL))
    stream = measuring._keys(SMALL).draw(101_000)
    assert (joining._keys.draw(1_000) == stream[100_000:]).all()


def test_equal_points_measure_the_same_whatever_ran_before() -> None:
    first = measured(trigger=1.0, max_wait=10.0)
    measured(trigger=1.0, max_wait=10.0, rule="overdue")
    assert measured(trigger=1.0, max_wait=10.0) == first


def test_a_stream_that_is_far_too_fast_falls_behind() -> None:
    row = measured(algorithm="hybridjoin", profile="papers", arrival_rate=50_000.0)
    assert row["fell_behind"]
    assert not row["keeps_up"]


def test_rules_and_clocks_that_there_are_not_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="choose sweep or overdue"):
        measured(max_wait=10.0, rule="random")
    with pytest.raises(InvalidSettingError, match="choose --clock model"):
        measured(clock="wall")


# The report

PLANS = {plan.id: plan for plan in chosen_plans(["waiting-room-ssd-1.0", "waiting-room-remote-20ms-1.0"])}


def made_up() -> dict[str, Row]:
    """Return rows for all points of two panels; every 1 s with the remote store falls behind."""
    rows: dict[str, Row] = {}
    for plan in PLANS.values():
        for one in plan.points():
            row: dict[str, Any] = {"latency_p50": 0.5, "requests_per_row": 0.1, "fell_behind": False}
            if not one.x:
                row = {"sustainable_rate": 30_000.0 if one.series.endswith(ROOM) else 10_000.0}
            elif one.point.profile == "remote-20ms" and one.series.endswith(SHORT):
                row = {"fell_behind": True, "keeps_up": False}
            rows[one.point.digest] = row
    return rows


def test_cells_are_found_by_store_skew_algorithm_way_and_rate() -> None:
    cells = room_cells(PLANS.values(), Evidence(PLANS, made_up().get))
    assert len(cells.cells) == 2 * 13 * 4
    assert (cells.profiles, cells.exponents, cells.rates) == (["ssd", "remote-20ms"], [1.0], [1e3, 1e4, 1e5])
    assert cells.number("latency_p50", "ssd", 1.0, OURS, LONG, 1e4) == 0.5
    assert cells.number("latency_p50", "remote-20ms", 1.0, OURS, SHORT, 1e4) is None
    assert cells.sustainable("ssd", 1.0, "OP-CACHEJOIN", ROOM) == 30_000.0


def test_the_page_shows_figures_and_what_the_room_gains() -> None:
    cells = room_cells(PLANS.values(), Evidence(PLANS, made_up().get))
    pictures = draw_room(cells)
    assert set(pictures) == {"waiting-room-latency", "waiting-room-requests", "waiting-room-rates"}
    assert all(picture.png.startswith(b"\x89PNG") for picture in pictures.values())
    card = room_card(cells, pictures)
    assert "<td>30,000</td><td>3.0</td>" in card
    assert card.count("<figure>") == 3


def test_a_report_of_a_folder_with_the_room_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultsFolder.make(tmp_path / "results", LabSettings())
    folder.remember(PLANS)
    rows = made_up()
    for plan in PLANS.values():
        for one in plan.points():
            folder.save(one.point, rows[one.point.digest])
    monkeypatch.setattr("semistream_lab.experiments.report.all_plans", lambda: PLANS)
    monkeypatch.setattr("semistream_lab.experiments.report.CLAIMS", {})
    page = write_report(folder).page.read_text()
    assert "Rows that wait between micro-batches" in page
    assert (folder.path / "figures" / "waiting-room-latency.png").exists()
    assert len(json.loads((folder.path / "waiting-room.json").read_text())) == 2 * 13 * 4
