"""What a pipeline's file says, read and checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from semistream.mirrors.source_description import MirrorSource


@dataclass(frozen=True)
class SourceDescription:
    """Where the stream comes from."""

    format: str
    path: str | None
    schema: str | None
    options: Mapping[str, str]
    max_files_per_trigger: int | None
    dead_letters: str | None


@dataclass(frozen=True)
class MirrorDescription:
    """How the master table is kept in step with its source."""

    source: MirrorSource | None
    """What it is a mirror of; None leaves it to the table."""
    key: tuple[str, ...] | None
    """The key columns of a mirror that the first start builds."""
    refresh_seconds: float | None
    """How long after a refresh the next one begins; None if somebody else refreshes."""
    stale_after_seconds: float | None
    """How old the mirror may become before the pipeline stops; None goes on."""
    keep_for_seconds: float
    """How long versions that refreshes have replaced stay."""


@dataclass(frozen=True)
class JoinDescription:
    """How the stream meets the master table; the arguments of `enrich`."""

    on: str | tuple[str, ...] | Mapping[str, str]
    how: str
    memory_bytes: int
    algorithm: str
    columns: tuple[str, ...] | None
    replace: Mapping[str, str] | None
    suffix: str | None
    order: str | None
    partitioning: str | int
    dead_letters: str | None
    parameters: Mapping[str, float] | None
    matched: str | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True)
class SetColumns:
    """Adds or replaces columns by SQL expressions, all of which see the columns before the step."""

    expressions: Mapping[str, str]


@dataclass(frozen=True)
class KeepRows:
    """Keeps the rows for which a SQL expression is true."""

    condition: str


@dataclass(frozen=True)
class DropColumns:
    """Drops columns."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class RenameColumns:
    """Gives columns new names."""

    names: Mapping[str, str]


@dataclass(frozen=True)
class SelectColumns:
    """Keeps these columns, in this order."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class DropDuplicates:
    """Drops rows whose columns were there before, as far back in time as `within`."""

    on: tuple[str, ...]
    within: str
    time: str


Step: TypeAlias = SetColumns | KeepRows | DropColumns | RenameColumns | SelectColumns | DropDuplicates


@dataclass(frozen=True)
class SinkDescription:
    """Where the rows go."""

    format: str
    path: str | None
    partition_by: tuple[str, ...]


@dataclass(frozen=True)
class TriggerDescription:
    """When a micro-batch starts: every so often, or until all that is there now has been processed."""

    every: str
    available_now: bool


@dataclass(frozen=True)
class StatisticsDescription:
    """The files that tell how the pipeline is doing."""

    json_lines: Path | None
    prometheus: Path | None


@dataclass(frozen=True)
class SparkDescription:
    """The session to make; settings may hold secrets and are never shown."""

    master: str
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class PipelineDescription:
    """A whole pipeline: source, master table, join, steps, sink."""

    file: Path
    name: str
    checkpoint: str
    source: SourceDescription
    master: str = field(repr=False)  # an address from the environment may hold a password
    join: JoinDescription
    steps: tuple[Step, ...]
    sink: SinkDescription
    trigger: TriggerDescription
    statistics: StatisticsDescription
    spark: SparkDescription
    mirror: MirrorDescription | None = None
