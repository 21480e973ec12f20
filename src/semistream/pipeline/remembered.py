"""What a pipeline remembers in its checkpoint: which source, master table and sink it belongs to, and its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from semistream.pipeline.sealed_json import damaged, read_sealed, write_sealed

FILE_NAME = "semistream.json"
_FORMAT = 2


@dataclass(frozen=True)
class Belongings:
    """The source, master table and sink of a checkpoint, by what tells them from others."""

    id: str
    """Stands in the folders that the pipeline writes, too, so that they are known wherever they are moved."""
    checkpoint: str
    source: Mapping[str, str]
    master: str
    sink: Mapping[str, str]


@dataclass(frozen=True)
class Remembered:
    """Everything that a checkpoint remembers for semistream; Spark has its own files beside it."""

    join: Mapping[str, Any]
    """What of [[dimension]] decides on the columns."""
    columns: Mapping[str, str]
    """The types of the master's columns that are used, by name."""
    belongings: Belongings | None
    """None in checkpoints that were made before these were remembered."""


def read_remembered(checkpoint: Path) -> Remembered | None:
    """Return what a checkpoint remembers, or None if no pipeline was started with it."""
    path = checkpoint / FILE_NAME
    sealed = read_sealed(path, _FORMAT)
    if sealed is None:
        return None
    number, content = sealed
    try:
        belongings = Belongings(**content["belongings"]) if number == _FORMAT else None
        columns = {str(name): str(kind) for name, kind in content["columns"].items()}
        return Remembered(dict(content["join"]), columns, belongings)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise damaged(path) from None


def write_remembered(checkpoint: Path, remembered: Remembered) -> None:
    """Write down what a checkpoint remembers; the lock of the checkpoint must be held."""
    write_sealed(checkpoint / FILE_NAME, _FORMAT, asdict(remembered), replace=True)
