"""Whose the folders are that a pipeline writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from semistream.pipeline.sealed_json import damaged, read_sealed, write_sealed

OWNER_NAME = "_semistream.json"
"""Begins with an underscore, so that Spark, Arrow and others do not take it for data."""
_FORMAT = 1


@dataclass(frozen=True)
class Owner:
    """The checkpoint that a folder belongs to: its id, and where it was when it took the folder."""

    id: str
    checkpoint: str


def owner_of(folder: Path) -> Owner | None:
    """Return whose a folder is, or None if it is nobody's."""
    path = folder / OWNER_NAME
    sealed = read_sealed(path, _FORMAT)
    if sealed is None:
        return None
    try:
        return Owner(str(sealed[1]["id"]), str(sealed[1]["checkpoint"]))
    except KeyError:
        raise damaged(path) from None


def own(folder: Path, owner: Owner, *, replace: bool = False) -> bool:
    """Write down whose a folder is; False if somebody was first."""
    content = {"id": owner.id, "checkpoint": owner.checkpoint}
    return write_sealed(folder / OWNER_NAME, _FORMAT, content, replace=replace)
