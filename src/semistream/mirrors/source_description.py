"""The contract of a source: what a mirror is kept in step with."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from semistream.core.errors import InvalidSettingError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Position: TypeAlias = Mapping[str, Any]
"""How far a source has been applied; plain JSON."""


@dataclass(frozen=True)
class Circumstances:
    """What a source may need to read: the key of the mirror, the columns that it has so far, and a Spark session."""

    key: tuple[str, ...]
    schema: pa.Schema | None = None
    """The columns of the mirror; None if it is about to be built."""
    spark: SparkSession | None = None
    memory_bytes: int = 256_000_000


@dataclass(frozen=True)
class SourceRows:
    """Rows of a source, and the position that a mirror has once they are applied."""

    rows: Any
    """All rows, or those to insert or replace, in any form that a build takes."""
    schema: pa.Schema
    """Their columns."""
    position: Position
    whole: bool = True
    """Whether these are all rows there are; otherwise they are changes."""
    deletes: Any = None
    """Of changes: the keys of rows to delete; no key is in both."""
    expected_bytes: float | None = None
    """What all rows take, if that is known."""
    in_ranges: bool = False
    """Of a DataFrame: whether each partition has a range of codes of keys of its own."""
    check: Callable[[], None] | None = None
    """Is called before a commit, when all rows have been read, and raises if they do not belong together."""


class MirrorSource(ABC):
    """Describes a source by plain values; making one reads nothing.

    A description must not hold a secret: it stands in the manifest of the mirror, and is shown.
    """

    kind: ClassVar[str]
    """What the source is called in addresses and files."""
    needs_spark: ClassVar[bool] = False
    uses_spark: ClassVar[bool] = False
    """Whether Spark may read it for a first load, if a session is there."""
    tells_changes: ClassVar[bool] = False
    """Whether it gives the last row of each changed key, and not all rows: then keys must be unique."""
    path_settings: ClassVar[tuple[str, ...]] = ()
    """Arguments that are paths, which are relative to the folder of a pipeline's file."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return the arguments that make the source, as JSON."""

    @classmethod
    def of_description(cls, description: Mapping[str, Any]) -> Self:
        """Return the source that was described; raises InvalidSettingError for what makes no sense."""
        known = list(inspect.signature(cls).parameters)
        for name in description:
            if name not in known:
                raise InvalidSettingError(
                    f"{name!r} is not a setting of a {cls.kind} source: choose from {', '.join(known)}."
                )
        return cls(**description)

    @classmethod
    @abstractmethod
    def of_address(cls, address: str) -> Self:
        """Return the source that an address means, as it stands on a command line."""

    @abstractmethod
    def all_rows(self, circumstances: Circumstances) -> AbstractContextManager[SourceRows]:
        """Open the source to read all its rows, as they are at one moment if the source can do that."""

    @abstractmethod
    def rows_since(self, position: Position, circumstances: Circumstances) -> AbstractContextManager[SourceRows | None]:
        """Open the source to read what has changed since a position, or all rows if it does not know what has changed.

        None if nothing has changed. What is given twice must be the same both times, or newer: a refresh may be
        repeated.
        """


def as_description(source: MirrorSource) -> dict[str, Any]:
    """Return a source as it stands in a manifest."""
    return {"kind": source.kind, **source.described()}


def names_of(value: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Return one name or several as a tuple."""
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)
