"""Turns every error into one sentence on standard error and an exit code; a traceback only with --debug."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from semistream.core.errors import SemistreamError

FAILED = 1
MISUSED = 2
INTERRUPTED = 130

# Typer's own exceptions are not public but for these: a usage error has a context, and a message for the user.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_MessageError: type[Exception] = typer.BadParameter.__mro__[2]


class OneSentenceGroup(TyperGroup):
    """The top group of commands: ends with code 1 on an error, 2 on a misuse and 130 on Ctrl-C."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that the arguments name and exit."""
        arguments, debug = _without_debug(sys.argv[1:] if args is None else args)
        tell_errors_by(_say)
        try:
            result = super().main(arguments, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            if _is_broken_pipe(error):
                # Whoever read our output has seen enough; nothing may be flushed into the pipe at the end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(FAILED)
            if debug:
                raise
            _tell(sentence(error))
            sys.exit(MISUSED if isinstance(error, _UsageError) else FAILED)
        if not standalone_mode:
            return result
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an interrupt ends it with a short line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("Stopped by Ctrl-C.", err=True)
            raise typer.Exit(INTERRUPTED) from None


def tell_errors_by(teller: Callable[[str], None]) -> None:
    """Let the sentence about an error be told in another way, until the command ends."""
    global _tell
    _tell = teller


def _say(text: str) -> None:
    typer.echo(f"Error: {text}", err=True)


_tell: Callable[[str], None] = _say


def sentence(error: Exception) -> str:
    """Return one line that says what is wrong and what to do."""
    if isinstance(error, _MessageError):
        return _usage_sentence(error)
    if isinstance(error, SemistreamError):
        text = " ".join(str(error).split()).rstrip(".")
        text = text if text.endswith("?") else f"{text}."
        return text.replace("MasterTable.build(data, path, key=...)", "`semistream master build`")
    if isinstance(error, OSError) and error.strerror:
        place = f" {error.filename}" if error.filename else ""
        return f"The system refuses{place}: {error.strerror.lower()}; check the path, its permissions and the disk."
    if isinstance(error, MemoryError):
        return "The machine has not enough memory for this: lower --memory, or use smaller data."
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"Something unexpected happened ({what}): run it again with --debug and report what it shows."


def _usage_sentence(error: Exception) -> str:
    message: str = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "semistream"
    message = message.replace("Value error, ", "")
    return f"{' '.join(message.split()).rstrip('.')}; see `{command} --help`."


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Take --debug out wherever it stands, because people add it at the end of the line that failed."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return [*options, *arguments[end:]], len(options) < end


def _is_broken_pipe(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE
