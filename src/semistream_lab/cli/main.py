"""The group `semistream lab`, which joins the command line through an entry point; nothing heavy is imported here."""

from __future__ import annotations

import typer

from semistream.cli.plain_help import PlainCommand
from semistream_lab.cli.bench import bench
from semistream_lab.cli.calibrate import calibrate
from semistream_lab.cli.experiments import list_experiments, report, run
from semistream_lab.cli.peers import peers
from semistream_lab.cli.tune import tune

lab_app = typer.Typer(help="Measure, tune and compare; run the papers' experiments.", rich_markup_mode=None)


@lab_app.callback(invoke_without_command=True)
def lab(context: typer.Context) -> None:
    """Measure, tune and compare algorithms; run the papers' experiments and judge their claims."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


lab_app.command("bench", cls=PlainCommand)(bench)
lab_app.command("tune", cls=PlainCommand)(tune)
lab_app.command("calibrate", cls=PlainCommand)(calibrate)
lab_app.command("list", cls=PlainCommand)(list_experiments)
lab_app.command("run", cls=PlainCommand)(run)
lab_app.command("report", cls=PlainCommand)(report)
lab_app.command("peers", cls=PlainCommand)(peers)
