"""Jars that Spark needs for connectors, where `make servers` puts them."""

from __future__ import annotations

import os
from pathlib import Path

from servers.server_process import left_out

_DEFAULT = Path(__file__).parents[2] / ".servers"


def servers_folder() -> Path:
    """Return where `make servers` puts things."""
    return Path(os.environ.get("SEMISTREAM_SERVERS", _DEFAULT))


def jars_that_are_there(name: str, pattern: str = "*.jar") -> list[Path]:
    """Return the jars of a folder of `.servers`; none if there are none."""
    return sorted((servers_folder() / name / "jars").glob(pattern))


def jars_of(name: str, pattern: str = "*.jar") -> list[Path]:
    """Return the jars of a folder of `.servers`, or leave the test out."""
    found = jars_that_are_there(name, pattern)
    if not found:
        left_out(f"The jars of {name} are not there: run `make servers`.")
    return found
