"""The folders that a pipeline writes: whose they are, and up to which batch they go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from semistream.spark.pipeline.sealed_json import damaged, read_sealed, write_sealed

OWNER_NAME = "_semistream.json"
"""Begins with an underscore, so that Spark, Arrow and others do not take it for data."""
_FORMAT = 1
_LOG_ENTRY = re.compile(r"(\d{1,18})(\.compact)?")
_LETTERS = re.compile(r"batch=(\d{1,18})")


@dataclass(frozen=True)
class Owner:
    """The checkpoint that a folder belongs to: its id, and where it was when it took the folder."""

    id: str
    checkpoint: str


def owner_of(folder: Path) -> Owner | None:
    """Return whose a folder is, or None if it is nobody's."""
    path = folder / OWNER_NAME
    found = read_sealed(path, _FORMAT)
    if found is None:
        return None
    try:
        return Owner(str(found[1]["id"]), str(found[1]["checkpoint"]))
    except KeyError:
        raise damaged(path) from None


def own(folder: Path, owner: Owner, *, replace: bool = False) -> bool:
    """Write down whose a folder is; False if somebody was first."""
    content = {"id": owner.id, "checkpoint": owner.checkpoint}
    return write_sealed(folder / OWNER_NAME, _FORMAT, content, replace=replace)


def newest_finished(checkpoint: Path) -> int:
    """Return the last batch that Spark counts as done, or -1."""
    return _newest(checkpoint / "commits", _LOG_ENTRY)


def newest_planned(checkpoint: Path) -> int:
    """Return the last batch whose input Spark has fixed, or -1; it may not have been written yet."""
    return _newest(checkpoint / "offsets", _LOG_ENTRY)


def newest_written(sink: Path) -> int:
    """Return the last batch that a table of files has, or -1; Spark skips all batches up to it."""
    return _newest(sink / "_spark_metadata", _LOG_ENTRY)


def newest_letters(folder: Path) -> int:
    """Return the last batch that has dead letters, or -1."""
    return _newest(folder, _LETTERS)


def _newest(folder: Path, pattern: re.Pattern[str]) -> int:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return -1
    return max((int(found[1]) for name in names if (found := pattern.fullmatch(name))), default=-1)
