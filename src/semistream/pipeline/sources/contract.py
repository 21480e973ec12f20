"""What a kind of source is: what the file may say about it, and how Spark reads it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import places
from semistream.pipeline.description import SourceDescription
from semistream.pipeline.failures import first_sentence
from semistream.pipeline.reading_options import options_of
from semistream.pipeline.toml_table import TomlTable, suggestion
from semistream.pipeline.written_schema import OWN_PREFIX


@dataclass(frozen=True)
class Letters:
    """The records of a source that cannot be read.

    `records` is a stream, and `of_batch` returns of one of its micro-batches what goes to the dead letters, or None if
    there is nothing.
    """

    records: DataFrame
    of_batch: Callable[[DataFrame], DataFrame | None]


@dataclass(frozen=True)
class Source:
    """A stream: its sound rows, and its other records if the file wants them kept."""

    rows: DataFrame
    letters: Letters | None = None


class SourceKind(ABC):
    """A kind of stream. Must not read anything before `open`, which needs Spark; all else goes without."""

    keys: ClassVar[tuple[str, ...]] = ()
    """The keys of [source] that it takes beside `format`."""
    uses_python: ClassVar[bool] = False
    """Whether Spark reads it in Python workers of its own."""
    tells_columns: ClassVar[bool] = True
    """Whether what is read tells the columns if the file does not, so that they may change behind the pipeline."""

    @abstractmethod
    def describe(self, table: TomlTable, format_name: str, folder: Path) -> SourceDescription:
        """Return what the file says, or raise an error that names the key."""

    @abstractmethod
    def identity(self, source: SourceDescription) -> dict[str, str]:
        """Return what tells the stream from others; a checkpoint belongs to it."""

    @abstractmethod
    def open(self, spark: SparkSession, source: SourceDescription) -> Source:
        """Return the stream; nothing is read before a query starts, but for the columns if the file does not say."""

    def columns(self, source: SourceDescription) -> tuple[str, ...] | None:  # noqa: ARG002
        """Return the names of the columns, or None if Spark must say."""
        return None

    def check(self, source: SourceDescription) -> None:
        """Raise an error if the source is not there, which Spark would say later or never."""
        path = source.path
        if path is not None and places.is_local(path) and not places.has_pattern(path) and not Path(path).exists():
            raise InvalidSettingError(
                f"{source.where} path is {path}, which does not exist: create the folder, or correct the path."
            )

    def stream_ids(self, spark: SparkSession, source: SourceDescription) -> Mapping[str, str]:  # noqa: ARG002
        """Return by name the ids that the source's server gives its streams, if another may get the name of one."""
        return {}

    def connectors(self, source: SourceDescription) -> tuple[str, ...]:  # noqa: ARG002
        """Return the connectors that Spark does not have itself, by the names of their formats."""
        return ()


def read_options(
    table: TomlTable, format_name: str, known: Sequence[str] | None, required: Sequence[str] = ()
) -> dict[str, str]:
    """Return the options of a format; `known` are those that it takes, None if only Spark knows them."""

    def refused(key: str) -> str | None:
        if known is None or key in known:
            return None
        return f"is not an option of {format_name!r}: {suggestion(key, known)}"

    options = options_of(table, refused)
    for key in required:
        if key not in options:
            raise table.wrong(f"options.{key}", f"is missing: the format {format_name!r} needs it")
    return options


def parsed_schema(source: SourceDescription, text: str) -> StructType:
    """Return the columns that a text names, whose words were checked when the file was read; Spark parses it."""
    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise InvalidSettingError(
            f'{source.where} schema is not a list of columns such as "product_id BIGINT, quantity INT": '
            f"{first_sentence(error)}"
        ) from None
    if not isinstance(schema, StructType):
        raise InvalidSettingError(f'{source.where} schema must be a list of columns, such as "product_id BIGINT".')
    return schema


def loaded(source: SourceDescription, reader: DataStreamReader, path: str | None = None) -> DataFrame:
    """Return the stream of a reader, or raise one sentence about what Spark says."""
    try:
        if source.table is not None:
            return reader.table(source.table)
        return reader.load(path) if path is not None else reader.load()
    except (PySparkException, Py4JJavaError) as error:
        # Of a name with dots Spark looks for a class, whose absence it does not tell as its own error.
        if "DATA_SOURCE_NOT_FOUND" in str(error) or f"{source.format}.DefaultSource" in str(error):
            raise InvalidSettingError(
                f"{source.where} format is {source.format!r}, which Spark does not know: correct it, or name the jars "
                f'of its connector by "spark.jars.packages" in [spark].'
            ) from None
        if isinstance(error, Py4JJavaError):
            raise  # told as every error of Java
        raise InvalidSettingError(f"{source.where} cannot be opened: {first_sentence(error)}") from None


def sound_or_stop(is_sound: Column, message: Column) -> Column:
    """Return a condition that is true for sound rows and stops the query at any other.

    The message must not hold the record: messages go to logs, and records may hold what must not be there.
    """
    return F.when(is_sound, F.lit(True)).otherwise(F.raise_error(message).cast("boolean"))


def own(name: str) -> str:
    """Return a name for a column that only semistream uses; no column of a source may begin like it."""
    return OWN_PREFIX + name
