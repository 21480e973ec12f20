"""What a pipeline's file says, read and checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from semistream.mirrors.source_description import MirrorSource


@dataclass(frozen=True)
class SourceTopicDescription:
    """Which messages of Kafka are read, and what of them become columns."""

    servers: str
    topics: tuple[str, ...]
    value: str
    """How values are written: json, avro, confluent_avro, text or binary."""
    schema_ids: tuple[int, ...]
    """The numbers of the schema in a registry, for confluent_avro."""
    message: Mapping[str, str]
    """What of a message beside its value becomes a column, and the name of that column."""
    headers: Mapping[str, str]
    """Columns by name, and the header that each holds."""
    start: str
    """Where a new pipeline begins: earliest or latest."""
    skips_expired: bool
    """Whether the pipeline goes on where messages have expired before it has read them."""
    max_rows_per_trigger: int | None


@dataclass(frozen=True)
class SourceDescription:
    """Where a stream comes from."""

    where: str
    """What errors call the table of the file."""
    format: str
    path: str | None = None
    table: str | None = None
    """The name of a table in one of Spark's catalogs."""
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    max_files_per_trigger: int | None = None
    dead_letters: str | None = None
    """The folder for records that cannot be read."""
    dead_letters_topic: str | None = None
    topic: SourceTopicDescription | None = None
    """For the format kafka."""


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
class DimensionDescription:
    """A master table and how it is joined."""

    where: str
    """What errors call the table of the file."""
    table: str = field(repr=False)  # an address from the environment may hold a password
    on: str | tuple[str, ...] | Mapping[str, str]
    how: str
    columns: tuple[str, ...] | None
    replace: Mapping[str, str] | None
    suffix: str | None
    matched: str | None
    mirror: MirrorDescription | None
    """How it is kept in step with its source, if it is a mirror."""
    unmatched: str | None = None
    """What becomes of rows without a match; None for what the kind of join says."""
    retry_seconds: float | None = None
    """How long parked rows wait; None for as long as `enrich` says."""


@dataclass(frozen=True)
class EnrichDescription:
    """How rows are enriched, whatever the dimension."""

    memory_bytes: int
    disk_bytes: int | None
    algorithm: str
    how: str
    """The kind of join of a dimension that does not say."""
    order: str | None
    partitioning: str | int
    dead_letters: str | None
    parameters: Mapping[str, float] | None
    max_wait_seconds: float | None = None
    """How long rows may wait in the room; None for no room, unless rows are parked."""
    room: str | None = None
    """Where the room is; None for beside the checkpoint."""


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


@dataclass(frozen=True)
class SortRows:
    """Sorts the rows of a micro-batch by columns, each rising unless it is named in `falling`."""

    by: tuple[str, ...]
    falling: frozenset[str]


Step: TypeAlias = SetColumns | KeepRows | DropColumns | RenameColumns | SelectColumns | DropDuplicates | SortRows


@dataclass(frozen=True)
class SinkTopicDescription:
    """How rows become messages of a topic of Kafka."""

    servers: str
    name: str
    value: str
    """json or avro."""
    schema: str | None
    """The schema of Avro; None leaves it to Spark."""
    headers: Mapping[str, str]
    """The columns that become headers, by the name of the header."""
    id: str
    """The column of the value that is the same when a message is sent again."""


@dataclass(frozen=True)
class SinkDescription:
    """Where the rows go; options may hold secrets and are never shown."""

    format: str
    path: str | None = None
    partition_by: tuple[str, ...] = ()
    mode: str = "append"
    """append or upsert."""
    key: tuple[str, ...] = ()
    """The columns that an upsert finds rows by, or that are the key of a message."""
    order_by: str | None = None
    """The column that tells which of two rows of a key is the newer one."""
    table: str | None = field(default=None, repr=False)  # an address from the environment may hold a password
    topic: SinkTopicDescription | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_file_log(self) -> bool:
        """Whether Spark writes files, with a log that says which batches they are of."""
        return self.format in FILE_FORMATS

    @property
    def file_log(self) -> str | None:
        """The folder whose log of batches Spark keeps, if it writes files."""
        return self.path if self.has_file_log else None


FILE_FORMATS = ("parquet", "json", "csv", "orc", "text", "avro")
"""The formats that Spark writes as files, each batch once."""


@dataclass(frozen=True)
class TriggerDescription:
    """When a micro-batch starts: every so often, or until all that is there now has been processed."""

    every: str
    available_now: bool


@dataclass(frozen=True)
class LivePageDescription:
    """The page that shows the pipeline while it runs, and when its health is bad."""

    wanted: bool = False
    port: int | None = None
    """None takes the first that is free from the usual one on."""
    host: str = "127.0.0.1"
    keys: bool = False
    """Whether frequent keys are shown."""
    max_batch_seconds: float | None = 600.0
    """How long a batch may take before the pipeline counts as unhealthy."""
    max_master_age_seconds: float | None = None


@dataclass(frozen=True)
class StatisticsDescription:
    """What tells how the pipeline is doing: files, and a page."""

    json_lines: Path | None
    prometheus: Path | None
    page: LivePageDescription = LivePageDescription()


@dataclass(frozen=True)
class SparkDescription:
    """The session to make; settings may hold secrets and are never shown."""

    master: str
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class PipelineDescription:
    """A whole pipeline: sources, steps, dimensions, steps, sink."""

    file: Path
    name: str
    checkpoint: str
    sources: tuple[SourceDescription, ...]
    """The streams, whose union is the stream of the pipeline; their order must not change."""
    prepare: tuple[Step, ...]
    """The steps before the join."""
    enrich: EnrichDescription
    dimensions: tuple[DimensionDescription, ...]
    """The master tables in the order in which rows meet them."""
    transform: tuple[Step, ...]
    """The steps after the join."""
    sink: SinkDescription
    trigger: TriggerDescription
    statistics: StatisticsDescription
    spark: SparkDescription

    def with_page(self) -> PipelineDescription:
        """Return the pipeline with a live page, at the port that the file names or a usual one."""
        page = replace(self.statistics.page, wanted=True)
        return replace(self, statistics=replace(self.statistics, page=page))

    def waits(self, dimension: DimensionDescription) -> bool:
        """Say whether rows may wait in a room for a dimension."""
        return self.enrich.max_wait_seconds is not None or dimension.unmatched == "park"

    @property
    def rooms(self) -> int:
        """How many rooms there are: to Spark each is one more source of the query."""
        return sum(self.waits(dimension) for dimension in self.dimensions)

    def letters_checkpoint(self, place: int) -> str:
        """Return where the query keeps its progress that writes the dead letters of the source at a place."""
        return f"{self.checkpoint}/dead_letters{f'_{place + 1}' if place else ''}"
