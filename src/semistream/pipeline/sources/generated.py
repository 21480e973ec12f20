"""Generated sales, for trials and demonstrations."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from semistream.pipeline.description import SourceDescription
from semistream.pipeline.sources.contract import Source, SourceKind, loaded, read_options
from semistream.pipeline.toml_table import TomlTable
from semistream.spark.sales_options import SalesOptions

_OPTIONS = (
    *("products", "exponent", "ranks", "stride", "absent", "seed", "rate", "arrivals", "stepSeconds", "onSeconds"),
    *("offSeconds", "start", "rows", "rowsPerBatch", "maxRowsPerBatch", "partitions"),
)


class GeneratedSales(SourceKind):
    """Sales that are made while they are read, the same for the same options."""

    keys = ("options",)
    uses_python = True
    tells_columns = False

    def describe(self, table: TomlTable, format_name: str, folder: Path) -> SourceDescription:  # noqa: ARG002
        """Return what the file says."""
        options = read_options(table, format_name, _OPTIONS, required=("products",))
        return SourceDescription(where=table.name, format=format_name, options=options)

    def identity(self, source: SourceDescription) -> dict[str, str]:
        """Return the options; the offsets carry the same fingerprint, but only the running query looks at them."""
        return {"format": "sales", "options": SalesOptions.parse(source.options, 1).fingerprint}

    def open(self, spark: SparkSession, source: SourceDescription) -> Source:
        """Return the stream of sales."""
        from semistream.spark.sales_source import register

        register(spark)
        return Source(loaded(source, spark.readStream.format("semistream-sales").options(**source.options)))
