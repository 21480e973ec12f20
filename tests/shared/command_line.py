"""Runs commands of the command line in tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from semistream.cli.main import app


def run(*arguments: str | Path) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="semistream")


def succeed(*arguments: str | Path) -> str:
    """Run a command that must succeed and return its standard output."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def fail(*arguments: str | Path, code: int = 1) -> str:
    """Run a command that must fail and return the one sentence that it says about it."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    line = result.stderr.removesuffix("\n")
    assert "\n" not in line, "an error is one line"
    assert line.startswith("Error: ")
    assert line.endswith((".", "?"))
    return line.removeprefix("Error: ")


def flat_objects(text: str) -> list[dict[str, Any]]:
    """Return the list of flat objects in a JSON text."""
    rows = json.loads(text)
    assert isinstance(rows, list)
    assert all(isinstance(row, dict) for row in rows)
    assert not any(isinstance(value, dict | list) for row in rows for value in row.values())
    return rows
