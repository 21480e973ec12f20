"""Runs programs in a Python in which the packages of all extras seem not to be installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

PACKAGES = ("pyspark", "py4j", "pandas", "typer", "rich", "matplotlib", "hypothesis")

# A finder that finds nothing in the place of the others; a None in sys.modules would make Arrow stumble.
_HIDING = """
import sys
class Hiding:
    def __init__(self, finders):
        self.finders = finders
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            return None
        found = (finder.find_spec(name, path, target) for finder in self.finders)
        return next((spec for spec in found if spec is not None), None)
    def find_distributions(self, *context):
        for finder in self.finders:
            yield from getattr(finder, "find_distributions", lambda *_: ())(*context)
sys.meta_path[:] = [Hiding(list(sys.meta_path))]
"""


def run_without_extras(
    program: str, *arguments: str, packages: tuple[str, ...] = PACKAGES, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program in a new process that cannot import these packages."""
    return subprocess.run(
        [sys.executable, "-c", _HIDING.format(packages=packages) + program, *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )
