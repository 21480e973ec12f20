"""The entry of the command line; nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from semistream import __version__
from semistream.cli import added_commands, interruption
from semistream.cli.advise import advise
from semistream.cli.algorithms import algorithms
from semistream.cli.demo import demo
from semistream.cli.master import master_app
from semistream.cli.one_sentence import OneSentenceGroup
from semistream.cli.plain_help import PlainCommand
from semistream.cli.run import run
from semistream.cli.warmup import warmup

app = typer.Typer(
    name="semistream",
    cls=OneSentenceGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("advise", cls=PlainCommand)(advise)
app.command("algorithms", cls=PlainCommand)(algorithms)
app.command("demo", cls=PlainCommand)(demo)
app.command("run", cls=PlainCommand)(run)
app.command("warmup", cls=PlainCommand)(warmup)
app.add_typer(master_app, name="master")
added_commands.add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"semistream {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def semistream(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Join a stream with a master table far bigger than memory, inside a fixed byte budget."""
    del version, debug  # the first is eager, the second is read by the group before it parses
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line and exit."""
    _open_closed_streams()
    interruption.install()
    app(prog_name="semistream")


def _open_closed_streams() -> None:
    """Let what is written go nowhere if whoever started us has closed a standard stream; Python has None then."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
