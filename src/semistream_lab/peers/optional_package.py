"""Packages that a peer needs and semistream does not; each is imported where it is used."""

from __future__ import annotations

from importlib.util import find_spec


def why_missing(package: str, *, install: str | None = None) -> str | None:
    """Return one sentence if the package is not installed; `install` is its name for pip, if that is another."""
    if find_spec(package) is not None:
        return None
    return f"The package {package} is not installed: `pip install {install or package}`."
