"""Jars that Spark needs for connectors, where `make servers` puts them."""

from __future__ import annotations

from pathlib import Path

from server_process import jars_that_are_there, needed_jars, servers_folder

from servers.left_out import left_out_if_missing

__all__ = ["jars_of", "jars_that_are_there", "servers_folder"]


def jars_of(name: str, pattern: str = "*.jar") -> list[Path]:
    """Return the jars of a folder of `.servers`, or leave the test out."""
    with left_out_if_missing():
        return needed_jars(name, pattern)
