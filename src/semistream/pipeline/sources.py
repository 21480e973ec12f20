"""The streams that a pipeline can start from, with what is wrong in them kept apart."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.description import SourceDescription
from semistream.pipeline.failures import first_sentence

CORRUPT = "_semistream_corrupt"
FILE = "_semistream_file"
BLOCK = "_semistream_block"
_OWN_COLUMNS = (CORRUPT, FILE, BLOCK)


@dataclass(frozen=True)
class Source:
    """A stream: its sound rows, and if they are wanted its records that could not be read.

    `records` has all rows, sound or not, with the columns CORRUPT (the record's text, null if it is sound), FILE and
    BLOCK (where in the file the part begins that a task reads).
    """

    rows: DataFrame
    records: DataFrame | None = None


def open_source(spark: SparkSession, source: SourceDescription) -> Source:
    """Return the stream that a description names; nothing is read before a query starts."""
    match source.format:
        case "sales":
            from semistream.spark.sales_source import register

            register(spark)
            return Source(_loaded(spark.readStream.format("semistream-sales").options(**source.options)))
        case "socket":
            return Source(_socket_rows(spark, source))
        case "parquet":
            schema = _schema(source.schema) if source.schema else _schema_of_files(spark, source)
            return Source(_loaded(_file_reader(spark, source).schema(schema), source.path))
        case _:
            return _text_records(spark, source)


def _text_records(spark: SparkSession, source: SourceDescription) -> Source:
    schema = _schema(source.schema or "")
    with_corrupt = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    reader = _file_reader(spark, source).schema(with_corrupt)
    # Texts without a zone mean the same moment whatever zone the session has.
    reader = reader.option("timeZone", source.options.get("timeZone", "UTC"))
    reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    if source.format == "csv":
        # Columns are taken by position: a header with other names must stop the query, not mix up columns.
        reader = reader.option("enforceSchema", "false")
    read = _loaded(reader, source.path)
    records = read.withColumns({FILE: F.col("_metadata.file_path"), BLOCK: F.col("_metadata.file_block_start")})
    if source.dead_letters is not None:
        return Source(records.where(F.col(CORRUPT).isNull()).drop(*_OWN_COLUMNS), records)
    where = F.concat(F.lit("A record of "), F.col(FILE), F.lit(" does not fit [source] schema: "))
    what = F.lit("mend the file, or set dead_letters in [source] to put such records aside.")
    return Source(records.where(_sound_or_stop(F.concat(where, what))).drop(*_OWN_COLUMNS))


def _socket_rows(spark: SparkSession, source: SourceDescription) -> DataFrame:
    lines = _loaded(spark.readStream.format("socket").options(**source.options))
    if source.schema is None:
        return lines
    schema = _schema(source.schema)
    with_corrupt = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "timeZone": "UTC"}
    parsed = lines.select(F.from_json("value", with_corrupt, options).alias("record")).select("record.*")
    message = F.lit("A line from the socket is not JSON of [source] schema: mend the sender.")
    return parsed.where(_sound_or_stop(message)).drop(CORRUPT)


def _sound_or_stop(message: Column) -> Column:
    """Return a condition that is true for sound rows and stops the query at any other.

    The message must not hold the record: messages go to logs, and records may hold what must not be there.
    """
    return F.when(F.col(CORRUPT).isNull(), F.lit(True)).otherwise(F.raise_error(message).cast("boolean"))


def _file_reader(spark: SparkSession, source: SourceDescription) -> DataStreamReader:
    reader = spark.readStream.format(source.format).options(**source.options)
    if source.max_files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
    return reader


def _schema(text: str) -> StructType:
    """Return the columns that a text names; the session that is there parses it."""
    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise InvalidSettingError(
            f'[source] schema is not a list of columns such as "product_id BIGINT, quantity INT": '
            f"{first_sentence(error)}"
        ) from None
    if not isinstance(schema, StructType):
        raise InvalidSettingError('[source] schema must be a list of columns, such as "product_id BIGINT".')
    names = [name.lower() for name in schema.names]
    for name in names:
        if names.count(name) > 1 or name.startswith("_semistream") or name == "_metadata":
            raise InvalidSettingError(f"[source] schema cannot have the column {name!r} in this way: rename it.")
    return schema


def _schema_of_files(spark: SparkSession, source: SourceDescription) -> StructType:
    try:
        return spark.read.options(**source.options).parquet(source.path or "").schema
    except PySparkException as error:
        raise InvalidSettingError(
            f"[source] path has no Parquet files to take the columns from ({first_sentence(error)}): give schema."
        ) from None


def _loaded(reader: DataStreamReader, path: str | None = None) -> DataFrame:
    try:
        return reader.load(path) if path is not None else reader.load()
    except PySparkException as error:
        raise InvalidSettingError(f"[source] cannot be opened: {first_sentence(error)}") from None
