"""The lab's commands: what they run, show and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import fail, flat_objects, run, succeed

from semistream_lab.experiments import plan as plans
from semistream_lab.experiments import report
from semistream_lab.experiments.plan import parse_plan

SMALL = """
paper = "DEMANDJOIN"
figure = "Fig 7d"
title = "Rates"
says = "More memory, more tuples."
[x]
name = "memory"
values = ["1MB", "2MB"]
label = "Memory (MB)"
[fixed]
master_rows = 20_000
queues = 1
[[series]]
label = "HYBRIDJOIN"
algorithm = "hybridjoin"
"parameter.read_bytes" = 100_000
"""


@pytest.fixture
def _one_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the lab have experiments that take a moment: one that works and one that fails."""
    small = parse_plan(SMALL, "small")
    failing = parse_plan(SMALL.replace("100_000", "-1"), "failing")
    for module in (plans, report):
        monkeypatch.setattr(module, "all_plans", lambda: {"small": small, "failing": failing})


def test_the_list_names_every_experiment() -> None:
    shown = succeed("lab", "list")
    rows = flat_objects(succeed("lab", "list", "--json"))
    assert {row["experiment"] for row in rows} == {plan.group or plan.id for plan in plans.all_plans().values()}
    assert all(row["points"] > 0 and row["says"] for row in rows)
    assert "hybrid-7d" in shown
    assert "HYBRIDJOIN, Fig 7d" in shown


@pytest.mark.usefixtures("_one_experiment")
def test_a_run_and_its_report(tmp_path: Path) -> None:
    out = tmp_path / "results"
    shown = succeed("lab", "run", "small", "--out", out, "--jobs", "1")
    assert "1 experiment, 2 points: 2 run." in shown
    assert f"semistream lab report {out}" in shown
    assert "2 were finished before" in succeed("lab", "run", "small", "--out", out, "--jobs", "1")
    shown = succeed("lab", "report", out)
    assert "1 experiment; claims: 0 holds, 0 fails, 0 depends, 108 unjudged" in shown
    assert len(flat_objects((out / "claims.json").read_text())) == 108
    assert len(flat_objects((out / "results.json").read_text())) == 2
    assert (out / "report.html").is_file()
    assert (out / "figures" / "small.png").is_file()


@pytest.mark.usefixtures("_one_experiment")
def test_one_command_runs_and_reports(tmp_path: Path) -> None:
    shown = succeed("lab", "run", "small", "--out", tmp_path, "--jobs", "1", "--report")
    assert "Next:" not in shown
    assert "claims: 0 holds" in shown
    page = (tmp_path / "verdicts.md").read_text()
    assert "**0 claims hold, 0 fail, 0 depend on a setting that no paper prints, 108 are unjudged.**" in page
    assert len([line for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]) == 108


@pytest.mark.usefixtures("_one_experiment")
def test_failures_are_told_in_one_sentence_each(tmp_path: Path) -> None:
    result = run("lab", "run", "all", "--out", tmp_path / "results", "--jobs", "1")
    assert result.exit_code == 1
    assert "4 points: 2 run, 2 failed." in result.stdout
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 2
    assert all(error.startswith("Error: failing (HYBRIDJOIN at ") and error.endswith(".") for error in errors)


@pytest.mark.usefixtures("_one_experiment")
def test_a_damaged_result_is_a_warning(tmp_path: Path) -> None:
    out = tmp_path / "results"
    succeed("lab", "run", "small", "--out", out, "--jobs", "1")
    file = next((out / "points").iterdir())
    file.write_text("{")
    assert f"Warning: {file} is damaged and counts as not run" in run("lab", "report", out).stderr
    result = run("lab", "run", "small", "--out", out, "--jobs", "1")
    assert result.exit_code == 0
    assert f"Warning: {file} is damaged; it was set aside as {file.stem}.damaged and run again." in result.stderr


@pytest.mark.usefixtures("_one_experiment")
def test_a_folder_of_other_settings_is_refused(tmp_path: Path) -> None:
    succeed("lab", "run", "small", "--out", tmp_path, "--jobs", "1")
    assert "has results of scale 1 on the model clock" in fail(
        "lab", "run", "small", "--out", tmp_path, "--scale", "0.5"
    )


def test_an_unknown_experiment_is_named_with_those_that_exist(tmp_path: Path) -> None:
    assert "There is no experiment 'nine'" in fail("lab", "run", "nine", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "100"])
def test_a_scale_out_of_range_is_refused(tmp_path: Path, scale: str) -> None:
    assert "--scale must be between" in fail("lab", "run", "all", "--out", tmp_path, f"--scale={scale}")


def test_real_time_is_refused_where_it_makes_no_sense(tmp_path: Path) -> None:
    wall = ("--out", tmp_path, "--clock", "wall")
    assert "only for the model clock" in fail("lab", "run", "hybrid-7b", *wall)
    assert "contradict each other" in fail("lab", "run", "hybrid-7d", *wall, "--jobs", "2")


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written into" in fail("lab", "run", "all", "--out", tmp_path / "file" / "out")


def test_a_report_of_no_results_is_refused(tmp_path: Path) -> None:
    assert "is not the folder of a lab run" in fail("lab", "report", tmp_path)
    (tmp_path / "lab.json").write_text(json.dumps({"format": 1, "scale": "?", "clock": "model"}))
    assert "cannot be read" in fail("lab", "report", tmp_path)
