"""Packages that a peer needs and semistream does not."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def why_missing(package: str, *, install: str | None = None) -> str | None:
    """Return one sentence if the package cannot be imported; `install` is its name for pip, if that is another."""
    try:
        imported(package)
    except ImportError:
        return f"The package {package} is not installed: `pip install {install or package}`."
    return None


def imported(package: str) -> ModuleType:
    """Import a package by its name, so that nothing needs it before it is used."""
    return import_module(package)
