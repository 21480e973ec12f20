"""Runs the code blocks of all pages as they are printed, in one process and with one Spark session.

Called with a folder to work in; prints, for each block that was run, its name and what went wrong, as JSON. Each page
has an empty folder of its own, in which its blocks run one after the other; those in Python share their names.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
import traceback
from pathlib import Path
from typing import Any

from doc_pages import RUN, Block, blocks_of, user_pages

_MAX_SHELL_SECONDS = 300.0
_FILE_NAME = re.compile(r"# ([\w.-]+\.(?:py|toml))\n")
# What a block that shows only some tables of a pipeline's file leaves out.
_REST = {
    "pipeline": '[pipeline]\nname = "rest"\ncheckpoint = "rest/checkpoint"\n',
    "source": '[source]\nformat = "json"\npath = "rest/landing"\nschema = "product_id BIGINT, quantity INT"\n',
    "dimension": '[[dimension]]\ntable = "rest/products"\non = "product_id"\n',
    "sink": '[sink]\nformat = "noop"\n',
}


def main(folder: Path) -> None:
    """Run all pages below the folder and print what happened."""
    failures: dict[str, str | None] = {}
    for number, page in enumerate(user_pages()):
        own = folder / f"{number:02d}-{page.stem}"
        own.mkdir()
        _work_in(own)
        names: dict[str, Any] = {"__name__": "__main__"}
        for block in blocks_of(page):
            if block.not_run is None and block.language in RUN:
                failures[block.name] = _failure(block, names, own)
    print(json.dumps(failures))


def _failure(block: Block, names: dict[str, Any], folder: Path) -> str | None:
    """Run a block and return what went wrong, or None."""
    if named := _FILE_NAME.match(block.text):
        (folder / named[1]).write_text(block.text, encoding="utf-8")
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown):
            match block.language:
                case "python":
                    source = "\n" * (block.line - 1) + block.text  # so that a traceback names the line of the page
                    exec(compile(source, block.page, "exec"), names)
                case "toml":
                    _check_toml(block.text, folder)
                case _:
                    _run_shell(block.text, folder)
    except BaseException:
        return f"{shown.getvalue()}\n{traceback.format_exc()}"
    return None


def _check_toml(text: str, folder: Path) -> None:
    """Let the reader of pipelines check a file, or a part of one together with a rest that is sound."""
    from semistream.pipeline.reading import read_description

    given = tomllib.loads(text)
    rest = "".join(table for name, table in _REST.items() if name not in given)
    whole = folder / "whole.toml"
    whole.write_text(f"{text}\n{rest}", encoding="utf-8")
    read_description(whole)


def _run_shell(text: str, folder: Path) -> None:
    """Run the commands one after the other: ours in this process, which is loaded already, all others in a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["semistream"] and words[1] != "run":  # which makes a Spark session of its own
            _run_command(words[1:])
        elif words:
            _run_in_shell(line, folder)


def _run_command(arguments: list[str]) -> None:
    from typer.testing import CliRunner

    from semistream.cli.main import app

    result = CliRunner().invoke(app, arguments, prog_name="semistream")
    assert result.exit_code == 0, f"code {result.exit_code}\n{result.output}"


def _run_in_shell(line: str, folder: Path) -> None:
    command = ["bash", "-euo", "pipefail", "-c", line]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as shell:
        try:
            shown, _ = shell.communicate(timeout=_MAX_SHELL_SECONDS)
        except BaseException:
            os.killpg(shell.pid, signal.SIGKILL)  # with what it has started
            raise
    assert shell.returncode == 0, f"code {shell.returncode}\n{shown}"


def _work_in(folder: Path) -> None:
    """Make relative paths mean the folder, in this process and, if Spark is there, in Java, too."""
    os.chdir(folder)
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        return
    for query in session.streams.active:
        query.stop()
    java = session._jvm
    assert java is not None
    java.java.lang.System.setProperty("user.dir", str(folder))
    java.org.apache.hadoop.fs.FileSystem.closeAll()  # open ones remember the folder before


if __name__ == "__main__":
    main(Path(sys.argv[1]))
