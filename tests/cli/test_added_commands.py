"""Commands of other packages: how they join the command line, and what happens if they cannot."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
import typer
from command_line import succeed
from typer.testing import CliRunner
from without_extras import run_without_extras

from semistream.cli import added_commands
from semistream.cli.one_sentence import OneSentenceGroup

PLUGIN = """
import typer
verbs = typer.Typer(help="Verbs of a plug-in.")
@verbs.callback()
def group() -> None: ...
@verbs.command()
def greet() -> None:
    typer.echo("hello")
"""


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> typer.Typer:
    """Return a command line with a command of its own, a plug-in that works and one that does not."""
    (tmp_path / "plugin_that_works.py").write_text(PLUGIN)
    (tmp_path / "plugin_that_breaks.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    points = EntryPoints(
        [
            EntryPoint("added", "plugin_that_works:verbs", added_commands.GROUP),
            EntryPoint("broken", "plugin_that_breaks:verbs", added_commands.GROUP),
        ]
    )
    monkeypatch.setattr(added_commands, "entry_points", lambda group: points.select(group=group))
    app = typer.Typer(cls=OneSentenceGroup)
    app.command("own")(lambda: typer.echo("our own"))
    added_commands.add_to(app)
    return app


def test_an_entry_point_adds_a_group_of_commands(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["added", "greet"]).stdout == "hello\n"


@pytest.mark.parametrize("arguments", [["broken"], ["broken", "greet", "--loud", "3"]])
def test_a_plug_in_that_cannot_be_loaded_says_why_when_it_is_asked_for(app: typer.Typer, arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: `semistream broken` cannot be loaded (ZeroDivisionError: division by zero): "
        "install plugin_that_breaks:verbs again.\n"
    )


def test_debug_shows_where_a_plug_in_broke(app: typer.Typer) -> None:
    error = CliRunner().invoke(app, ["broken", "--debug"]).exception
    assert error is not None
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_plug_in_that_cannot_be_loaded_leaves_the_other_commands_alone(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["own"]).stdout == "our own\n"
    assert "broken" in CliRunner().invoke(app, ["--help"]).stdout


def test_the_lab_is_installed_as_such_a_group() -> None:
    assert all(verb in succeed("lab") for verb in ("bench", "tune", "calibrate", "list", "run", "report", "peers"))


def test_a_lab_without_its_extra_is_one_sentence() -> None:
    program = "from semistream.__main__ import main\nmain()"
    done = run_without_extras(program, "lab", "bench", "--seconds", "1", packages=("matplotlib",))
    assert done.returncode == 1
    assert done.stderr == (
        "Error: The lab needs the package matplotlib, which is not installed: `pip install 'semistream[lab]'`.\n"
    )
