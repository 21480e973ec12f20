"""Running experiments: each point once, whatever happens on the way."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small_lab import FAILING, die_at_large_memory, points_of, results_folder, small_plan

from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments import running_points
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.plan import plan_named, plans_named
from semistream_lab.experiments.point import Point, Row
from semistream_lab.experiments.results import LabSettings, ResultsFolder
from semistream_lab.experiments.running_points import repeated, run_plans, runs_on, tasks_of
from semistream_lab.experiments.workers import Workers


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    """Collect the points that are measured, with made-up results."""
    points: list[Point] = []

    def run(point: Point) -> Row:
        points.append(point)
        return {"service_rate": 1.0}

    monkeypatch.setattr(running_points.kinds, "run", run)
    return points


def interrupted_after(count: int) -> Callable[[str, int, int], None]:
    """Return a progress report that presses Ctrl-C."""

    def report(what: str, done: int, total: int) -> None:
        del what, total
        if done == count:
            raise KeyboardInterrupt

    return report


def test_finished_points_are_not_run_again(tmp_path: Path, measured: list[Point]) -> None:
    folder = results_folder(tmp_path)
    first = run_plans([small_plan()], folder, jobs=1)
    assert (first.points, first.ran, first.reused) == (8, 8, 0)
    again = run_plans([small_plan()], folder, jobs=1)
    assert (again.points, again.ran, again.reused) == (8, 0, 8)
    assert len(measured) == 8


def test_points_that_experiments_share_are_run_once(tmp_path: Path, measured: list[Point]) -> None:
    outcome = run_plans([small_plan("one"), small_plan("two")], results_folder(tmp_path), jobs=1)
    assert outcome.ran == len(measured) == 8


def test_an_interrupt_loses_no_finished_point(tmp_path: Path, measured: list[Point]) -> None:
    folder = results_folder(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_plans([small_plan()], folder, jobs=1, report=interrupted_after(3))
    assert len(folder.load().rows) == len(measured) == 3
    assert run_plans([small_plan()], folder, jobs=1).ran == 5
    assert len(measured) == 8


def test_an_interrupt_ends_the_processes_and_leaves_whole_files(tmp_path: Path) -> None:
    folder = results_folder(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_plans([small_plan()], folder, jobs=2, report=interrupted_after(2))
    assert multiprocessing.active_children() == []
    finished = folder.load()
    assert finished.damaged == []
    assert 2 <= len(finished.rows) < 8
    outcome = run_plans([small_plan()], folder, jobs=1)
    assert outcome.ran == 8 - len(finished.rows)


@pytest.mark.parametrize("damage", ["", '{"point": {"seed"', '{"point": {"seed": 0}, "row": {}}', "[]", "\0\0"])
def test_a_damaged_file_is_set_aside_and_its_point_run_again(
    tmp_path: Path, measured: list[Point], damage: str
) -> None:
    folder = results_folder(tmp_path)
    run_plans([small_plan()], folder, jobs=1)
    file = sorted(folder.points.glob("*.json"))[2]
    file.write_text(damage)
    outcome = run_plans([small_plan()], folder, jobs=1)
    assert outcome.damaged == [file]
    assert (outcome.ran, outcome.reused) == (1, 7)
    assert file.with_suffix(".damaged").read_text() == damage
    assert json.loads(file.read_text())["row"] == {"service_rate": 1.0}
    assert len(measured) == 9


def test_the_file_of_another_point_counts_as_damaged(tmp_path: Path, measured: list[Point]) -> None:
    folder = results_folder(tmp_path)
    run_plans([small_plan()], folder, jobs=1)
    one, other, *_ = sorted(folder.points.glob("*.json"))
    one.write_text(other.read_text())
    assert folder.load().damaged == [one]
    assert len(measured) == 8


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_point_that_fails_does_not_stop_the_others(tmp_path: Path, jobs: int) -> None:
    folder = results_folder(tmp_path)
    outcome = run_plans([small_plan("small", *FAILING)], folder, jobs=jobs)
    assert (outcome.ran, len(outcome.failures)) == (4, 4)
    assert len(folder.load().rows) == 4
    for failure in outcome.failures:
        assert failure.sentence.startswith("small (INLJ at ")
        assert "batch" in failure.sentence
    assert [one["error"] for one in folder.failures()] == [failure.error for failure in outcome.failures]


def test_processes_give_what_one_process_gives(tmp_path: Path) -> None:
    plan = small_plan()
    alone, together = results_folder(tmp_path / "alone"), results_folder(tmp_path / "together")
    steps: list[tuple[str, int, int]] = []
    run_plans([plan], alone, jobs=1)
    run_plans([plan], together, jobs=2, report=lambda *what: steps.append(what))
    assert steps[-1] == ("small", 8, 8)
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)

    def results(folder: ResultsFolder) -> dict[str, dict[str, object]]:
        rows = folder.load().rows
        return {digest: {**row, "wall_seconds": 0} for digest, row in rows.items()}

    assert results(alone) == results(together)
    assert set(results(alone)) == {point.digest for point in points_of([plan])}


def test_a_process_that_dies_costs_one_point(tmp_path: Path) -> None:
    points = points_of([small_plan()])
    with Workers(2, die_at_large_memory, results_folder(tmp_path)) as workers:
        errors = dict(workers.run(points, lambda _: None))
    assert set(errors) == set(points)
    for point, error in errors.items():
        assert ("ended with code 9" in error) == (point.memory_bytes == 2_000_000)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSettingError, match=r"cannot be written into .*: name a writable folder"):
        results_folder(tmp_path / "file" / "results")


@pytest.mark.parametrize("settings", [LabSettings(0.5, "model"), LabSettings(1.0, "wall")])
def test_a_folder_of_another_scale_or_clock_is_refused(tmp_path: Path, settings: LabSettings) -> None:
    results_folder(tmp_path)
    with pytest.raises(InvalidSettingError, match="has results of scale 1 on the model clock, not of scale"):
        ResultsFolder.make(tmp_path, settings)


def test_a_folder_without_its_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="is not the folder of a lab run"):
        ResultsFolder.open(tmp_path)
    results_folder(tmp_path)
    (tmp_path / "lab.json").write_text('{"format": 99, "scale": 1, "clock": "model"}')
    with pytest.raises(InvalidSettingError, match="has format 99"):
        ResultsFolder.open(tmp_path)
    (tmp_path / "lab.json").write_text("{")
    with pytest.raises(InvalidSettingError, match="cannot be read"):
        ResultsFolder.open(tmp_path)


def test_two_runs_do_not_share_a_folder_at_a_time(tmp_path: Path, measured: list[Point]) -> None:
    folder = results_folder(tmp_path)
    with folder.alone(), pytest.raises(InvalidSettingError, match="Another run is using"):
        run_plans([small_plan()], folder, jobs=1)
    assert measured == []


def test_repetitions_have_their_own_seeds(tmp_path: Path, measured: list[Point]) -> None:
    run_plans([repeated(small_plan(), 3)], results_folder(tmp_path), jobs=1)
    assert sorted({point.seed for point in measured}) == [0, 1, 2]
    assert len(measured) == 24


def test_variants_come_last_and_the_largest_tables_first() -> None:
    tasks = tasks_of([plan_named("hybrid-7c"), plan_named("op-4a")], scale=1.0, clock="model")
    places = [(not task.planned.variant, task.point.master_rows, task.point.memory_bytes) for task in tasks]
    assert places == sorted(places, reverse=True)
    assert not places[-1][0]


def test_real_time_is_measured_on_a_file_and_one_point_at_a_time(tmp_path: Path) -> None:
    plan = small_plan()
    folder = results_folder(tmp_path, clock="wall")
    outcome = run_plans([plan], folder)
    assert (outcome.ran, outcome.failures) == (8, [])
    assert [path.name for path in folder.tables.iterdir()] == ["20000"]
    for row in folder.load().rows.values():
        assert row["service_rate"] > 0  # type: ignore[operator]
        assert isinstance(row["direct"], bool)
    assert run_plans([plan], folder).reused == 8


def test_only_saturated_streams_of_generated_keys_run_in_real_time() -> None:
    assert runs_on(small_plan(), "wall")
    assert not runs_on(plan_named("hybrid-7b"), "wall")
    assert not runs_on(plan_named("hybrid-11"), "wall")
    assert runs_on(plan_named("hybrid-11"), "model")


def test_in_real_time_the_series_take_turns_at_each_place() -> None:
    plan = repeated(plans_named("demand-wall")[0], 2)
    tasks = tasks_of([plan], scale=1.0, clock="wall")
    series = len(plan.series)
    places = [(task.point.exponent, task.point.seed) for task in tasks]
    assert places[::series] == sorted(set(places))
    assert all(len(set(places[start : start + series])) == 1 for start in range(0, len(places), series))


def test_a_measurement_of_whole_scans_ends_where_it_began() -> None:
    point = Point(algorithm="meshjoin", master_rows=30_000, memory_bytes=1_000_000, exponent=1.0, queues=2.0)
    scanned, free = (rates.run(replace(point, options=options)) for options in ((("whole_scans", 1),), ()))
    pages = -(-30_000 // (rates.PAGE_BYTES // rates.ROW_BYTES))
    page_groups = -(-pages // 13)  # a read of 13 pages is the papers'
    assert [row["read_requests"] % page_groups == 0 for row in (scanned, free)] == [True, False]  # type: ignore[operator]
