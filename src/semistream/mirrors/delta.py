"""A Delta table as a source: its change data feed tells what has changed, where it is on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from semistream.core.errors import InvalidSettingError, UnknownColumnError
from semistream.mirrors.source_description import Circumstances, MirrorSource, Position, SourceRows, names_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FEED = "delta.enableChangeDataFeed"
_ADDED_BY_FEED = ("_change_type", "_commit_version", "_commit_timestamp")


@dataclass(frozen=True, init=False)
class DeltaSource(MirrorSource):
    """A Delta table, which Spark reads; the session must have Delta's extension and catalog.

    Args:
        path: The folder or address of the table, as Spark names it.
        columns: The columns to mirror; by default all, also those that are added later.
    """

    kind = "delta"
    needs_spark = True
    tells_changes = True
    path_settings = ("path",)
    path: str
    columns: tuple[str, ...] | None

    def __init__(self, path: str, columns: Sequence[str] | None = None) -> None:
        if not path:
            raise InvalidSettingError("A Delta source needs a path: give that of the table's folder.")
        object.__setattr__(self, "path", str(path))
        object.__setattr__(self, "columns", names_of(columns))

    def described(self) -> dict[str, Any]:
        """Return the path, and the columns if they were chosen."""
        return {"path": self.path, **({} if self.columns is None else {"columns": list(self.columns)})}

    @classmethod
    def of_address(cls, address: str) -> DeltaSource:
        """Return the table of delta:PATH."""
        return cls(address.removeprefix("delta:"))

    @contextmanager
    def all_rows(self, circumstances: Circumstances) -> Iterator[SourceRows]:
        """Read all rows of the newest version."""
        state = _TableState.of(_spark(circumstances), self.path)
        yield self._everything(state, circumstances)

    @contextmanager
    def rows_since(self, position: Position, circumstances: Circumstances) -> Iterator[SourceRows | None]:
        """Read the change data feed, or all rows if there is none for these versions."""
        state = _TableState.of(_spark(circumstances), self.path)
        if position == state.position:
            yield None
            return
        changes = self._changes(state, position, circumstances)
        yield changes if changes is not None else self._everything(state, circumstances)

    def _everything(self, state: _TableState, circumstances: Circumstances) -> SourceRows:
        frame = self._chosen(state.rows())
        return SourceRows(frame, _arrow_schema(frame, circumstances.key), state.position)

    def _chosen(self, frame: DataFrame) -> DataFrame:
        if self.columns is None:
            return frame
        for name in self.columns:
            if name not in frame.columns:
                raise UnknownColumnError(f"{self.path} has no column {name!r}: it has {', '.join(frame.columns)}.")
        return frame.select(*(_quoted(name) for name in self.columns))

    def _changes(self, state: _TableState, position: Position, circumstances: Circumstances) -> SourceRows | None:
        """Return the last change of each key, or None if the feed does not reach back to the position."""
        from pyspark.errors import PySparkException
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

        if not state.has_feed or position["table"] != state.table or position["version"] > state.version:
            return None
        try:
            feed = state.feed_since(position["version"])
            frame = self._chosen(feed.drop(*_ADDED_BY_FEED))
        except PySparkException:  # it was off for some of these versions, or they are gone
            return None
        # An overwrite deletes and inserts a key in one version: what is there afterwards counts.
        is_delete = F.col("_change_type") == "delete"
        last = Window.partitionBy(*(_quoted(name) for name in circumstances.key)).orderBy(
            F.col("_commit_version").desc(), is_delete.asc()
        )
        newest = (
            feed.where("_change_type <> 'update_preimage'")
            .withColumn("_semistream_number", F.row_number().over(last))
            .where("_semistream_number = 1")
        )
        upserts = newest.where("_change_type <> 'delete'").select(*(_quoted(name) for name in frame.columns))
        deletes = newest.where("_change_type = 'delete'").select(*(_quoted(name) for name in circumstances.key))
        schema = _arrow_schema(upserts, circumstances.key)
        return SourceRows(upserts, schema, state.position, whole=False, deletes=deletes)


@dataclass(frozen=True)
class _TableState:
    """The newest version of a Delta table."""

    spark: SparkSession
    path: str
    table: str
    """What tells the table from one that takes its place."""
    version: int
    has_feed: bool

    @classmethod
    def of(cls, spark: SparkSession, path: str) -> _TableState:
        from pyspark.errors import PySparkException

        named = f"delta.{_quoted(path)}"
        try:
            detail = spark.sql(f"DESCRIBE DETAIL {named}").select("id", "properties").first()
            newest = spark.sql(f"DESCRIBE HISTORY {named} LIMIT 1").select("version").first()
        except PySparkException as error:
            if "delta" in str(error).lower() and "PARSE_SYNTAX_ERROR" not in str(error):
                raise InvalidSettingError(
                    f"{path} cannot be read as a Delta table: check the path, and that the session has Delta's jars, "
                    f"spark.sql.extensions and spark.sql.catalog.spark_catalog."
                ) from error
            raise
        assert detail is not None
        assert newest is not None
        feed = (detail["properties"] or {}).get(_FEED, "false").lower() == "true"
        return cls(spark, path, detail["id"], newest["version"], feed)

    @property
    def position(self) -> dict[str, Any]:
        return {"table": self.table, "version": self.version}

    def rows(self) -> DataFrame:
        return self.spark.read.format("delta").option("versionAsOf", self.version).load(self.path)

    def feed_since(self, version: int) -> DataFrame:
        reader = self.spark.read.format("delta").option("readChangeFeed", "true")
        return reader.option("startingVersion", version + 1).option("endingVersion", self.version).load(self.path)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _spark(circumstances: Circumstances) -> SparkSession:
    assert circumstances.spark is not None
    return circumstances.spark


def _arrow_schema(frame: DataFrame, key: tuple[str, ...]) -> Any:
    from semistream.spark.master_types import arrow_schema

    return arrow_schema(frame.schema, key)
