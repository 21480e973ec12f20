"""What a checkpoint remembers for its pipeline: the sources, master tables and sink it belongs to, and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from semistream.pipeline.sealed_json import damaged, read_sealed, write_sealed

FILE_NAME = "semistream.json"
_FORMAT = 3
_ONE_OF_EACH = 2
"""The format of checkpoints from before pipelines had several sources and dimensions."""


@dataclass(frozen=True)
class Belongings:
    """The sources, master tables and sink of a checkpoint, by what tells them from others."""

    id: str
    """Stands in the folders that the pipeline writes, too, so that they are known wherever they are moved."""
    checkpoint: str
    sources: list[Mapping[str, str]]
    masters: list[str]
    sink: Mapping[str, str]


@dataclass(frozen=True)
class Remembered:
    """Everything that a checkpoint remembers for semistream; Spark has its own files beside it."""

    joins: list[Mapping[str, Any]]
    """What of each [[dimension]] decides on its columns."""
    columns: list[Mapping[str, str]]
    """For each dimension the types of the master's columns that are used, by name."""
    source_columns: list[Mapping[str, str] | None]
    """For each source the types of its columns by name, unless the file says them."""
    belongings: Belongings | None
    """None in checkpoints that were made before these were remembered."""
    streams: list[Mapping[str, str]] = field(default_factory=list)
    """For each source the ids by which its server tells streams of one name apart, such as those of topics."""


def read_remembered(checkpoint: Path) -> Remembered | None:
    """Return what a checkpoint remembers, or None if no pipeline was started with it."""
    path = checkpoint / FILE_NAME
    sealed = read_sealed(path, _FORMAT)
    if sealed is None:
        return None
    number, content = sealed
    try:
        if number < _FORMAT:
            content = _of_several(content, number)
        belongings = content["belongings"]
        return Remembered(
            [dict(join) for join in content["joins"]],
            [_texts(columns) for columns in content["columns"]],
            [None if columns is None else _texts(columns) for columns in content["source_columns"]],
            None if belongings is None else Belongings(**belongings),
            [_texts(ids) for ids in content.get("streams", ())],  # older checkpoints have none
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise damaged(path) from None


def write_remembered(checkpoint: Path, remembered: Remembered) -> None:
    """Write down what a checkpoint remembers; the lock of the checkpoint must be held."""
    write_sealed(checkpoint / FILE_NAME, _FORMAT, asdict(remembered), replace=True)


def _of_several(content: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return what a checkpoint remembers of one source and one dimension, as it is remembered now."""
    belongings = None
    if number == _ONE_OF_EACH:
        rest = dict(content["belongings"])
        source, master = rest.pop("source"), rest.pop("master")
        belongings = {**rest, "sources": [source], "masters": [master]}
    return {
        "joins": [content["join"]],
        "columns": [content["columns"]],
        "source_columns": [None],
        "belongings": belongings,
    }


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in values.items()}
