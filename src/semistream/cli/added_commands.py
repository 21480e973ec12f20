"""Commands that other packages add to the command line."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

import typer

from semistream.core.errors import SemistreamError

GROUP = "semistream.commands"
_ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_to(app: typer.Typer) -> None:
    """Add each group of commands that an installed package announces as an entry point of `semistream.commands`.

    An entry point names a `typer.Typer`, which must import nothing heavy. One that cannot be loaded becomes a command
    that says why, so that the other commands go on working.
    """
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            app.add_typer(point.load(), name=point.name)
        except Exception as error:
            _refuse(app, point, error)


def _refuse(app: typer.Typer, point: EntryPoint, error: Exception) -> None:
    reason = error if isinstance(error, SemistreamError) else _broken(point, error)

    def refuse() -> NoReturn:
        raise reason

    app.command(point.name, help=f"Not available: {reason}", context_settings=_ANY_ARGUMENTS)(refuse)


def _broken(point: EntryPoint, error: Exception) -> SemistreamError:
    package = point.dist.name if point.dist is not None else point.value
    refusal = SemistreamError(
        f"`semistream {point.name}` cannot be loaded ({type(error).__name__}: {error}): install {package} again."
    )
    refusal.__cause__ = error  # which --debug shows
    return refusal
