"""Files in a folder: JSON lines and CSV, whose bad records are kept apart, and Parquet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import places
from semistream.pipeline.description import SourceDescription
from semistream.pipeline.failures import first_sentence
from semistream.pipeline.sources.contract import (
    Letters,
    Source,
    SourceKind,
    loaded,
    own,
    parsed_schema,
    read_options,
    sound_or_stop,
)
from semistream.pipeline.toml_table import TomlTable
from semistream.pipeline.written_schema import WrittenSchema

_FILES = ("pathGlobFilter", "recursiveFileLookup", "maxFileAge", "latestFirst", "fileNameOnly", "maxBytesPerTrigger")
_TEXTS = ("encoding", "lineSep", "multiLine", "locale", "timeZone", "dateFormat", "timestampFormat")
_TEXT_FILES = (*_FILES, *_TEXTS, "timestampNTZFormat")
# Only what changes how data is read: nothing that writes, deletes, or loads code.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "json": (
        *_TEXT_FILES,
        *("allowComments", "allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros"),
        *("allowBackslashEscapingAnyCharacter", "allowNonNumericNumbers", "primitivesAsString"),
    ),
    "csv": (
        *_TEXT_FILES,
        *("sep", "header", "quote", "escape", "comment", "nullValue", "emptyValue", "nanValue", "positiveInf"),
        *("negativeInf", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "maxCharsPerColumn", "maxColumns"),
    ),
    "parquet": _FILES,
}
_CORRUPT = own("corrupt")
_FILE = own("file")
_BLOCK = own("block")
_NUMBER = own("number")
_FIRST = own("first")
_OWN_COLUMNS = (_CORRUPT, _FILE, _BLOCK)


class Files(SourceKind):
    """Files that land in a folder, each read once."""

    keys: ClassVar[tuple[str, ...]] = ("path", "schema", "options", "max_files_per_trigger")

    def describe(self, table: TomlTable, format_name: str, folder: Path) -> SourceDescription:
        """Return what the file says."""
        schema = table.optional_text("schema")
        if schema is not None:
            WrittenSchema.read(table, "schema", schema)
        return SourceDescription(
            where=table.name,
            format=format_name,
            path=places.read_place(table, "path", folder),
            schema=schema,
            options=read_options(table, format_name, _OPTIONS[format_name]),
            max_files_per_trigger=table.whole_number("max_files_per_trigger", minimum=1),
            dead_letters=read_dead_letters(table, folder),
        )

    def identity(self, source: SourceDescription) -> dict[str, str]:
        """Return the format and the path as it is written, because Spark takes a file by another path for a new one."""
        return {"format": source.format, "path": normal_place(source.path or "")}

    def columns(self, source: SourceDescription) -> tuple[str, ...] | None:
        """Return the columns if the file says them."""
        return WrittenSchema.names(source.schema) if source.schema else None

    def open(self, spark: SparkSession, source: SourceDescription) -> Source:
        """Return the stream of Parquet files."""
        schema = parsed_schema(source, source.schema) if source.schema else _schema_of_files(spark, source)
        return Source(loaded(source, _reader(spark, source).schema(schema), source.path))


class TextFiles(Files):
    """Files of text, some of whose records may not fit the schema."""

    keys = (*Files.keys, "corrupt", "dead_letters")
    tells_columns = False

    def describe(self, table: TomlTable, format_name: str, folder: Path) -> SourceDescription:
        """Return what the file says."""
        if "schema" not in table:
            raise table.wrong("schema", 'is missing: give the columns, such as "product_id BIGINT, quantity INT"')
        return super().describe(table, format_name, folder)

    def open(self, spark: SparkSession, source: SourceDescription) -> Source:
        """Return the stream without its corrupt records."""
        schema = parsed_schema(source, source.schema or "")
        with_corrupt = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
        reader = _reader(spark, source).schema(with_corrupt)
        # Texts without a zone mean the same moment whatever zone the session has.
        reader = reader.option("timeZone", source.options.get("timeZone", "UTC"))
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _CORRUPT)
        if source.format == "csv":
            # Columns are taken by position: a header with other names must stop the query, not mix up columns.
            reader = reader.option("enforceSchema", "false")
        read = loaded(source, reader, source.path)
        records = read.withColumns({_FILE: F.col("_metadata.file_path"), _BLOCK: F.col("_metadata.file_block_start")})
        is_sound = F.col(_CORRUPT).isNull()
        if source.dead_letters is not None:
            is_json = source.format == "json"
            letters = Letters(records, lambda batch: _letters(batch, is_json=is_json))
            return Source(records.where(is_sound).drop(*_OWN_COLUMNS), letters)
        where = F.concat(F.lit("A record of "), F.col(_FILE), F.lit(f" does not fit {source.where} schema: "))
        what = F.lit("mend the file, or set dead_letters there to put such records aside.")
        return Source(records.where(sound_or_stop(is_sound, F.concat(where, what))).drop(*_OWN_COLUMNS))


def read_dead_letters(table: TomlTable, folder: Path) -> str | None:
    """Return the folder for records that cannot be read, or None if they stop the pipeline."""
    given = "dead_letters" in table
    corrupt = table.text("corrupt", "dead_letters" if given else "stop", choices=("stop", "dead_letters"))
    if corrupt == "stop":
        if given:
            raise table.wrong("dead_letters", "contradicts corrupt = 'stop': leave one of them out")
        return None
    if not given:
        raise table.wrong("dead_letters", "is missing: give the folder for records that cannot be read")
    return places.written_place(table, "dead_letters", folder)


def normal_place(place: str) -> str:
    """Return a place without what does not change it."""
    return os.path.normpath(place) if places.is_local(place) else place.rstrip("/")


def _letters(batch: DataFrame, *, is_json: bool) -> DataFrame | None:
    """Return the corrupt records of a batch, each with its number among the records of its part of the file."""
    numbered = batch.select(_FILE, _BLOCK, _CORRUPT, F.monotonically_increasing_id().alias(_NUMBER))
    corrupt = numbered.where(F.col(_CORRUPT).isNotNull())
    if corrupt.isEmpty():
        return None
    firsts = numbered.groupBy(_FILE, _BLOCK).agg(F.min(_NUMBER).alias(_FIRST))
    malformed = F.get_json_object(_CORRUPT, "$").isNull()
    misfit = F.lit("a value does not have the type of its column")
    reason = (
        F.when(malformed, F.lit("the record is not JSON")).otherwise(misfit)
        if is_json
        else F.lit("the number of values, or the type of one, is not that of the columns")
    )
    return corrupt.join(F.broadcast(firsts), [_FILE, _BLOCK]).select(
        F.col(_FILE).alias("file"),
        F.col(_BLOCK).alias("block_start"),
        (F.col(_NUMBER) - F.col(_FIRST) + 1).alias("record_number"),
        reason.alias("reason"),
        F.col(_CORRUPT).alias("record"),
    )


def _reader(spark: SparkSession, source: SourceDescription) -> DataStreamReader:
    reader = spark.readStream.format(source.format).options(**source.options)
    if source.max_files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
    return reader


def _schema_of_files(spark: SparkSession, source: SourceDescription) -> StructType:
    try:
        return spark.read.options(**source.options).parquet(source.path or "").schema
    except PySparkException as error:
        raise InvalidSettingError(
            f"{source.where} path has no Parquet files to take the columns from ({first_sentence(error)}): give schema."
        ) from None
