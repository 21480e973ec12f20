"""Packages that a peer needs and semistream does not."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def why_missing(package: str) -> str | None:
    """Return one sentence if the package is not installed."""
    if find_spec(package) is not None:
        return None
    return f"The package {package} is not installed: `pip install {package}`."


def imported(package: str) -> ModuleType:
    """Import a package, which `why_missing` has found."""
    return import_module(package)
