"""The family on Spark: what is charged for counts, which orders survive, and how the report tells it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from semistream.core.costs import PAPERS, REMOTE
from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments import running_points
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.measuring import burst_files, on_spark
from semistream_lab.experiments.plan import chosen_plans, parse_plan
from semistream_lab.experiments.point import Point, Row
from semistream_lab.experiments.report import write_report
from semistream_lab.experiments.results import LabSettings, ResultsFolder
from semistream_lab.experiments.spark_family import (
    CLAIMED,
    IS_LEVEL,
    LOOP,
    REVERSED,
    SURVIVES,
    WAYS,
    FamilyCells,
    charged_seconds,
    family_cells,
)
from semistream_lab.experiments.spark_family_page import draw_family, family_card, order_rows

PLANS = {plan.id: plan for plan in chosen_plans(["spark-family"])}
COUNTS: Row = {
    "stream_rows": 1_000,
    "tuples_in": 1_200,
    "tuples_out": 1_000,
    "page_reads": 50,
    "read_requests": 40,
    "bytes_read": 400_000,
}


def made_up(requests: dict[str, int]) -> dict[str, Row]:
    """Return rows for all points: so many requests on Spark, and loops as fast as their place in the plan."""
    rows: dict[str, Row] = {}
    for plan in PLANS.values():
        for number, one in enumerate(plan.points()):
            algorithm, way = one.series.split(", ")
            row: dict[str, Any] = {"service_rate": 1_000.0 + number}
            if way in WAYS:
                row = {**COUNTS, "read_requests": requests.get(algorithm, 100)}
            rows[one.point.digest] = row
    return rows


def cells(requests: dict[str, int]) -> FamilyCells:
    return family_cells(PLANS.values(), Evidence(PLANS, made_up(requests).get))


def test_counts_are_charged_with_the_costs_of_a_store() -> None:
    page_rows = on_spark.page_rows()
    reads = 40 * 5.5e-3 / 2 + 400_000 / 10e6 + 50 * page_rows * 1e-6
    tuples = 1_200 * 1e-6 + 1_000 * 1.5e-6
    assert charged_seconds(COUNTS, PAPERS, side_by_side=False) == pytest.approx(reads + tuples)
    assert charged_seconds(COUNTS, PAPERS, side_by_side=True) == pytest.approx(reads)
    far = charged_seconds(COUNTS, REMOTE, side_by_side=False)
    assert far == pytest.approx(40 * 5e-3 / 16 + 400_000 / 200e6, rel=0.05)


def test_each_algorithm_is_run_in_each_way_and_in_the_loop_of_each_store() -> None:
    measured = cells({})
    assert len(measured.algorithms) == 18
    assert len(measured.cells) == 18 * (len(WAYS) + 3)
    assert {name for pair in CLAIMED for name in pair} <= set(measured.algorithms)
    assert all(measured.rate(name, way, "ssd") for name in measured.algorithms for way in (LOOP, *WAYS))


def test_an_order_survives_is_level_or_is_reversed() -> None:
    measured = cells({"HYBRIDJOIN": 50, "MESHJOIN": 100, "X-HYBRIDJOIN": 50, "CACHEJOIN": 400})
    assert measured.verdict("HYBRIDJOIN", "MESHJOIN", WAYS[0], "papers") == SURVIVES
    assert measured.verdict("X-HYBRIDJOIN", "HYBRIDJOIN", WAYS[0], "papers") == IS_LEVEL
    assert measured.verdict("CACHEJOIN", "HYBRIDJOIN", WAYS[1], "remote") == REVERSED
    assert cells_without("CACHEJOIN").verdict("CACHEJOIN", "HYBRIDJOIN", WAYS[0], "ssd") is None


def cells_without(algorithm: str) -> FamilyCells:
    return FamilyCells([cell for cell in cells({}).cells if cell.algorithm != algorithm])


def test_ranks_are_alike_or_reversed() -> None:
    names = cells({}).algorithms
    falling = {name: 1_000 - 50 * number for number, name in enumerate(names)}
    rising = {name: 100 + 50 * number for number, name in enumerate(names)}
    # P- and OP-CACHEJOIN take the stream in beside the reads, which changes no rank here.
    assert cells(falling).likeness("1 task", "papers") == pytest.approx(1.0)
    assert cells(rising).likeness("1 task", "papers") == pytest.approx(-1.0)
    assert FamilyCells(cells({}).cells[:2]).likeness("1 task", "papers") is None


def test_the_report_has_figures_and_the_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultsFolder.make(tmp_path / "results", LabSettings())
    folder.remember(PLANS)
    rows = made_up({"HYBRIDJOIN": 10})
    for plan in PLANS.values():
        for one in plan.points():
            folder.save(one.point, rows[one.point.digest])
    monkeypatch.setattr("semistream_lab.experiments.report.all_plans", lambda: PLANS)
    monkeypatch.setattr("semistream_lab.experiments.report.CLAIMS", {})
    page = write_report(folder).page.read_text()
    assert "Every algorithm on Spark" in page
    assert (folder.path / "figures" / "spark-family-rates.png").exists()
    assert len(json.loads((folder.path / "spark-family.json").read_text())) == 18 * 7


def test_what_was_not_measured_yet_is_a_dash() -> None:
    measured = FamilyCells([cell for cell in cells({}).cells if cell.way == "1 task"])
    pictures = draw_family(measured)
    assert all(picture.png.startswith(b"\x89PNG") for picture in pictures.values())
    row = next(row for row in order_rows(measured) if row[0] == "HYBRIDJOIN faster than MESHJOIN")
    assert row[1:6] == ["–", "=", "–", "–", "–"]
    assert "HYBRIDJOIN faster than MESHJOIN" in family_card(measured, pictures)


def test_ways_cross_the_series_of_a_plan() -> None:
    text = """
        paper = "X"
        figure = "1"
        title = "t"
        says = "s"
        x = { name = "memory", values = ["1MB"], label = "m" }
        series = [{ label = "A", algorithm = "inlj" }, { label = "B", algorithm = "meshjoin" }]
        ways = [{ label = "far", profile = "remote" }, { label = "near", profile = "ssd" }]
    """
    plan = parse_plan(text, "crossed")
    assert [series.label for series in plan.series] == ["A, far", "B, far", "A, near", "B, near"]
    assert [(one.point.algorithm, one.point.profile) for one in plan.points()][1] == ("meshjoin", "remote")


SMALL = Point(kind=running_points.ON_SPARK, algorithm="hybridjoin", master_rows=20_000, memory_bytes=4_000_000)


def test_the_files_of_a_stream_are_written_once_and_have_bursts(tmp_path: Path) -> None:
    first = burst_files.BurstFiles.of(SMALL, tmp_path)
    files = sorted(first.folder.glob("*.parquet"))
    assert len(files) == len(first.rows)
    assert max(first.rows[2:]) > 1.5 * min(first.rows[2:])
    assert first.measured_rows == sum(first.rows[-burst_files.MEASURED_BATCHES :])
    written = [file.stat().st_mtime for file in files]
    assert written == sorted(set(written)), "Spark reads files in the order of their times"
    assert burst_files.BurstFiles.of(SMALL, tmp_path) == first
    assert [path.name for path in tmp_path.iterdir()] == [first.folder.name]


def test_spark_is_for_the_model_clock_only(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="choose --clock model"):
        on_spark.run(Point(kind=running_points.ON_SPARK, algorithm="inlj", clock="wall"), tmp_path)


def test_points_on_spark_are_run_in_this_process_whatever_the_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    ended: list[bool] = []

    def counted(point: Point, _: Path) -> Row:
        ran.append(point.algorithm)
        if point.algorithm == "inlj":
            raise on_spark.QueryStoppedError("The query on Spark stopped: made up.")
        return COUNTS

    monkeypatch.setattr(on_spark, "run", counted)
    monkeypatch.setattr(on_spark, "end_session", lambda: ended.append(True))
    (plan,) = PLANS.values()
    chosen = [series for series in plan.series if series.label in ("INLJ, 1 task", "MESHJOIN, 1 task")]
    plan = parse_plan(_TWO, "two")
    assert len(chosen) == len(plan.series)
    folder = ResultsFolder.make(tmp_path / "results", LabSettings())
    outcome = running_points.run_plans([plan], folder, jobs=4)
    assert (ran, ended) == (["inlj", "meshjoin"], [True])
    assert (outcome.ran, [failure.error for failure in outcome.failures]) == (
        1,
        ["The query on Spark stopped: made up."],
    )
    assert running_points.run_plans([plan], folder, jobs=4).reused == 1
    assert ran == ["inlj", "meshjoin", "inlj"]


_TWO = """
    paper = "X"
    figure = "1"
    title = "t"
    says = "s"
    x = { name = "memory", values = ["4MB"], label = "m" }
    fixed = { kind = "on-spark" }
    series = [{ label = "A", algorithm = "inlj" }, { label = "B", algorithm = "meshjoin" }]
"""
