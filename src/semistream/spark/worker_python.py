"""Compares the Python of Spark's local workers with the one that plans, before a task fails in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

from semistream.core.errors import SemistreamError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ASK = """
import importlib.util, sys
print(sys.version_info[0], sys.version_info[1], importlib.util.find_spec("semistream") is not None)
"""
_SECONDS_TO_ANSWER = 60


class WorkerPythonError(SemistreamError):
    """Spark's workers run a Python that cannot run semistream."""


def check_worker_python(session: SparkSession) -> None:
    """Raise WorkerPythonError if local workers would run a Python without semistream, or of another version.

    Nothing is known of other machines, and nothing is checked where Python gets its modules in some other way.
    """
    context = getattr(session, "_sc", None)
    if context is None or not str(context.master).startswith("local") or _brings_modules(session):
        return
    problem = _problem(str(context.pythonExec))
    if problem is not None:
        raise WorkerPythonError(
            f"Spark's workers would run {context.pythonExec}, {problem}: set PYSPARK_PYTHON to {sys.executable} before "
            f"the session starts."
        )


def _brings_modules(session: SparkSession) -> bool:
    """Say whether files go to the workers, as --py-files sends them, or they have a path of their own."""
    context = session.sparkContext
    if getattr(context, "_python_includes", None):
        return True
    settings = ("spark.submit.pyFiles", "spark.archives", "spark.executorEnv.PYTHONPATH")
    return any(context.getConf().get(name, "") for name in settings)


@cache
def _problem(python: str) -> str | None:
    """Return what is wrong with a Python, or None; it is started once a process unless it is this one."""
    executable = shutil.which(python)
    if executable is None:
        return "which is not there"
    # Links are not followed: the Python of an environment is often a link to that of the system.
    if os.path.abspath(executable) == os.path.abspath(sys.executable):  # noqa: PTH100
        return None
    try:
        asked = subprocess.run(
            [executable, "-c", _ASK], capture_output=True, text=True, check=True, timeout=_SECONDS_TO_ANSWER
        )
        major, minor, has_semistream = asked.stdout.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        return "which does not run"
    if (int(major), int(minor)) != sys.version_info[:2]:
        return f"which is Python {major}.{minor} and not {sys.version_info[0]}.{sys.version_info[1]}"
    return None if has_semistream == "True" else "which has no semistream"
