"""Shows what the lab has, what it has run and what came out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import typer
from rich.markup import escape

from semistream.cli.json_output import Scalar
from semistream.cli.rendering import console, plain_table, say
from semistream_lab.experiments.plan import Plan
from semistream_lab.experiments.report import Report
from semistream_lab.experiments.running_points import Outcome


def plan_rows(plans: Iterable[Plan]) -> list[dict[str, Scalar]]:
    """Return experiments as flat objects; the panels of one are one object."""
    experiments: dict[str, list[Plan]] = {}
    for plan in plans:
        experiments.setdefault(plan.group or plan.id, []).append(plan)
    return [_experiment_row(name, panels) for name, panels in experiments.items()]


def _experiment_row(name: str, panels: Sequence[Plan]) -> dict[str, Scalar]:
    plan = panels[0]
    return {
        "experiment": name,
        "paper": plan.paper,
        "figure": plan.figure,
        "title": plan.title.split(":")[0] if plan.group else plan.title,
        "points": len({one.point for panel in panels for one in panel.points()}),
        "says": plan.says,
    }


def show_plans(rows: Sequence[Mapping[str, Scalar]]) -> None:
    """Print one line an experiment."""
    table = plain_table()
    table.add_column("Experiment", style="cyan", no_wrap=True)
    table.add_column("Paper and figure")
    table.add_column("Points", justify="right")
    table.add_column("What the paper shows")
    for row in rows:
        paper = f"{row['paper']}, {row['figure']}"
        table.add_row(str(row["experiment"]), escape(paper), f"{row['points']:,}", escape(str(row["says"])))
    console().print(table)


def show_outcome(
    outcome: Outcome, experiments: int, left_out: Sequence[str], folder: Path, *, reported: bool = False
) -> None:
    """Print what a run has done; warnings and failures go to standard error."""
    for file in outcome.damaged:
        typer.echo(f"Warning: {file} is damaged; it was set aside as {file.stem}.damaged and run again.", err=True)
    if left_out:
        typer.echo(f"Left out, because they are for the model clock only: {', '.join(left_out)}.", err=True)
    for failure in outcome.failures:
        typer.echo(f"Error: {failure.sentence}", err=True)
    what = _counted(experiments)
    reused = f", {outcome.reused:,} were finished before" if outcome.reused else ""
    failed = f", {len(outcome.failures):,} failed" if outcome.failures else ""
    out = console()
    say(f"{what}, {outcome.points:,} points: {outcome.ran:,} run{reused}{failed}.", out)
    place = escape(shlex.quote(str(folder)))
    if outcome.failures:
        say("Run the same command again to try the failed points once more.", out)
    if not reported:
        say(f"Next: [cyan]semistream lab report {place}[/] draws the figures and judges the claims.", out)


def show_report(report: Report) -> None:
    """Print the verdicts and where the page is."""
    for file in report.damaged:
        typer.echo(f"Warning: {file} is damaged and counts as not run: run its experiment again.", err=True)
    out = console()
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.verdicts.items())
    flips = f"{report.flips} of them {'changes' if report.flips == 1 else 'change'} with a cost constant"
    say(f"{_counted(report.experiments)}; claims: {counts}; {flips}.", out)
    if report.missing:
        say(f"{report.missing:,} points have not been run yet.", out)
    say(
        f"The page is {escape(str(report.page))}; figures, claims.json, verdicts.md and results.json are beside it.",
        out,
    )


def _counted(experiments: int) -> str:
    return "1 experiment" if experiments == 1 else f"{experiments} experiments"
