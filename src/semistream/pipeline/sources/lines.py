"""Lines from a port, for trials: they cannot be read a second time."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.types import StringType, StructField, StructType

from semistream.pipeline.description import SourceDescription
from semistream.pipeline.sources.contract import (
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

_OPTIONS = ("host", "port")
_CORRUPT = own("corrupt")


class LinesFromPort(SourceKind):
    """Lines of text, or of JSON if the file gives a schema."""

    keys = ("schema", "options")
    tells_columns = False

    def describe(self, table: TomlTable, format_name: str, folder: Path) -> SourceDescription:  # noqa: ARG002
        """Return what the file says."""
        schema = table.optional_text("schema")
        if schema is not None:
            WrittenSchema.read(table, "schema", schema)
        options = read_options(table, format_name, _OPTIONS, required=_OPTIONS)
        return SourceDescription(where=table.name, format=format_name, schema=schema, options=options)

    def identity(self, source: SourceDescription) -> dict[str, str]:
        """Return the address."""
        return {"format": "socket", "address": f"{source.options['host']}:{source.options['port']}"}

    def columns(self, source: SourceDescription) -> tuple[str, ...]:
        """Return the columns of the schema, or the one that Spark gives lines."""
        return WrittenSchema.names(source.schema) if source.schema else ("value",)

    def open(self, spark: SparkSession, source: SourceDescription) -> Source:
        """Return the stream of lines."""
        lines = loaded(source, spark.readStream.format("socket").options(**source.options))
        if source.schema is None:
            return Source(lines)
        schema = parsed_schema(source, source.schema)
        with_corrupt = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "timeZone": "UTC"}
        parsed = lines.select(F.from_json("value", with_corrupt, options).alias("record")).select("record.*")
        message = F.lit(f"A line from the socket is not JSON of {source.where} schema: mend the sender.")
        return Source(parsed.where(sound_or_stop(F.col(_CORRUPT).isNull(), message)).drop(_CORRUPT))
