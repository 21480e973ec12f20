"""The commands that run the papers' experiments and report what they show."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semistream.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from semistream_lab.experiments.plan import Plan

_SMALLEST_SCALE, _LARGEST_SCALE = 0.005, 4.0


class LabClock(StrEnum):
    """What tells the time."""

    MODEL = "model"
    WALL = "wall"


def list_experiments(
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of flat objects.")] = False,
) -> None:
    """List the experiments and the figures they repeat."""
    from semistream.cli import json_output
    from semistream_lab.cli import experiments_rendering
    from semistream_lab.experiments.plan import all_plans

    rows = experiments_rendering.plan_rows(all_plans().values())
    if as_json:
        typer.echo(json_output.as_json(rows), nl=False)
    else:
        experiments_rendering.show_plans(rows)


def run(
    experiments: Annotated[
        list[str], typer.Argument(metavar="ID...|all", help="Names of experiments, or all.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the results; finished runs in it are kept.")
    ] = Path("lab-results"),
    scale: Annotated[
        float, typer.Option(metavar="S", help="Size of tables and memory relative to the papers: 0.1 for a tenth.")
    ] = 1.0,
    clock: Annotated[
        LabClock, typer.Option(help="The assumed costs of the papers' machine, or real time on a file.")
    ] = LabClock.MODEL,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs at a time.", show_default="one a core; 1 in real time")
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Runs of each point, with seeds from 0 on.", show_default="1"),
    ] = None,
    with_report: Annotated[bool, typer.Option("--report", help="Then write the page of figures and verdicts.")] = False,
) -> None:
    """Run experiments and keep their results.

    Finished runs are not repeated, so Ctrl-C loses almost nothing.
    """
    from semistream.cli.progress import progress
    from semistream_lab.cli import experiments_rendering
    from semistream_lab.experiments.plan import chosen_plans
    from semistream_lab.experiments.results import LabSettings, ResultsFolder
    from semistream_lab.experiments.running_points import repeated, run_plans

    if not _SMALLEST_SCALE <= scale <= _LARGEST_SCALE:
        raise InvalidSettingError(
            f"--scale must be between {_SMALLEST_SCALE:g} and {_LARGEST_SCALE:g}, but {scale:g} was given."
        )
    if clock is LabClock.WALL and jobs is not None and jobs > 1:
        raise InvalidSettingError(
            "--clock wall and --jobs contradict each other: runs in real time are measured one by one."
        )
    plans, left_out = _that_run_on(clock, chosen_plans(experiments))
    plans = [repeated(plan, repetitions) for plan in plans]
    folder = ResultsFolder.make(out, LabSettings(scale, clock.value))
    with progress() as reporting:
        outcome = run_plans(plans, folder, jobs=jobs, report=reporting.update)
    experiments_rendering.show_outcome(outcome, len(plans), left_out, out, reported=with_report)
    if with_report:
        report(out)
    if outcome.failures:
        raise typer.Exit(1)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the results.", show_default=False)],
) -> None:
    """Write a page of figures and verdicts from results."""
    from semistream.cli.progress import progress
    from semistream_lab.cli import experiments_rendering
    from semistream_lab.experiments.report import write_report
    from semistream_lab.experiments.results import ResultsFolder

    results = ResultsFolder.open(folder)
    with progress() as reporting:
        written = write_report(results, reporting.update)
    experiments_rendering.show_report(written)


def _that_run_on(clock: LabClock, plans: list[Plan]) -> tuple[list[Plan], list[str]]:
    """Return the plans that make sense on a clock, and the names of the others."""
    from semistream_lab.experiments.running_points import runs_on

    chosen = [plan for plan in plans if runs_on(plan, clock.value)]
    left_out = [plan.id for plan in plans if plan not in chosen]
    if not chosen:
        raise InvalidSettingError(
            f"{', '.join(left_out)}: only for the model clock, because the costs or the arrivals are part of the "
            "experiment; leave out --clock wall."
        )
    return chosen, left_out
