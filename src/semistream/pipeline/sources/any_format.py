"""Any format that Spark knows as a stream, with its options passed on."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

from semistream.pipeline import places
from semistream.pipeline.description import SourceDescription
from semistream.pipeline.sources.contract import Source, SourceKind, loaded, parsed_schema, read_options
from semistream.pipeline.sources.files import normal_place
from semistream.pipeline.toml_table import TomlTable
from semistream.pipeline.written_schema import WrittenSchema

_FORMAT = re.compile(r"[A-Za-z][\w.$-]{0,199}")
# What moves or removes files of the source, and where Spark would keep its progress.
_REFUSED_OPTIONS = ("cleansource", "sourcearchivedir", "checkpointlocation")


class AnyFormat(SourceKind):
    """A stream of which only Spark knows what it is."""

    keys = ("path", "table", "schema", "options")

    def describe(self, table: TomlTable, format_name: str, folder: Path) -> SourceDescription:
        """Return what the file says."""
        if not _FORMAT.fullmatch(format_name):
            raise table.wrong("format", f"cannot be {format_name[:60]!r}: give the name of a format that Spark knows")
        options = read_options(table, format_name, None)
        for key in options:
            if key.lower() in _REFUSED_OPTIONS:
                raise table.wrong(f"options.{key}", "is not taken: a pipeline leaves its source as it is")
            if key.lower() == "path":
                raise table.wrong(f"options.{key}", f"is not taken: give path in {table.name}")
        name, schema = table.optional_text("table"), table.optional_text("schema")
        for key in ("path", "schema"):
            if name is not None and key in table:
                raise table.wrong(key, "is not taken beside table: the catalog knows it")
        if schema is not None:
            WrittenSchema.read(table, "schema", schema)
        path = places.read_place(table, "path", folder) if "path" in table else None
        return SourceDescription(table.name, format_name, path=path, table=name, schema=schema, options=options)

    def identity(self, source: SourceDescription) -> dict[str, str]:
        """Return the format, and its path or table if it has one: what options mean, only Spark knows."""
        at = {"table": source.table} if source.table else {"path": normal_place(source.path)} if source.path else {}
        return {"format": source.format, **at}

    def columns(self, source: SourceDescription) -> tuple[str, ...] | None:
        """Return the columns if the file says them."""
        return WrittenSchema.names(source.schema) if source.schema else None

    def connectors(self, source: SourceDescription) -> tuple[str, ...]:
        """Return the format: whether Spark has it, only Spark knows."""
        return (source.format,)

    def open(self, spark: SparkSession, source: SourceDescription) -> Source:
        """Return the stream as Spark gives it."""
        reader = spark.readStream.format(source.format).options(**source.options)
        if source.schema is not None:
            reader = reader.schema(parsed_schema(source, source.schema))
        return Source(loaded(source, reader, source.path))
