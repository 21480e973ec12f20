"""Proves that the warehouse holds exactly what Spark's own join makes of the same sales and products."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.failures import first_sentence
from semistream.spark.sales_options import FORMAT
from semistream.spark.sales_source import register


@dataclass(frozen=True)
class Proof:
    """What a comparison of all rows, each as often as it occurs, has shown."""

    expected_rows: int = 0
    found_rows: int = 0
    missing_rows: int = 0
    """Rows that Spark's join has and the warehouse lacks."""
    unexpected_rows: int = 0
    """Rows that the warehouse has and Spark's join lacks."""
    problem: str | None = None
    """Why the rows could not be compared."""

    @property
    def holds(self) -> bool:
        """Whether both have the same rows; a warehouse without rows proves nothing."""
        same = self.missing_rows == self.unexpected_rows == 0 and self.expected_rows == self.found_rows
        return self.problem is None and same and self.found_rows > 0

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        if self.problem is not None:
            return f"The proof failed: {self.problem}"
        if self.holds:
            return (
                f"Proved: the {self.found_rows:,} rows of the warehouse are exactly those of Spark's own join of the "
                f"same sales with the product master."
            )
        if not self.found_rows and not self.expected_rows:
            return "The proof failed: there are no rows to compare."
        return (
            f"The proof failed: {self.missing_rows:,} of the {self.expected_rows:,} rows of Spark's own join are "
            f"missing, and {self.unexpected_rows:,} of the {self.found_rows:,} rows of the warehouse are not its rows."
        )


def prove(spark: SparkSession, description: PipelineDescription, products: Path) -> Proof:
    """Compare the warehouse of a finished demo with a batch join, and return what came out.

    The source gives the same sales again for the same positions. The products are read from the file that the master
    table was built from, so that the table itself is proved, too.
    """
    warehouse, checkpoint = Path(description.sink.path or ""), Path(description.checkpoint)
    try:
        sold = written_sales(warehouse, checkpoint)
    except (OSError, ValueError, LookupError, TypeError):
        return Proof(problem="the logs of the warehouse and the checkpoint do not say which sales were written.")
    register(spark)
    try:
        sales = spark.read.format(FORMAT).options(**{**description.sources[0].options, "rows": str(sold)}).load()
        return _compared(_joined(sales, spark.read.parquet(str(products))), spark.read.parquet(str(warehouse)))
    except (PySparkException, Py4JError) as error:
        return Proof(problem=f"the rows cannot be read ({first_sentence(error).rstrip('.')}).")


def written_sales(warehouse: Path, checkpoint: Path) -> int:
    """Return how many sales, from the first on, are in the warehouse by the logs of Spark.

    The log of the warehouse says which batch was the last, the log of the checkpoint where that batch ended. It may not
    be among the finished ones: a query can be stopped between the two.
    """
    last = max(int(entry.name.split(".")[0]) for entry in (warehouse / "_spark_metadata").iterdir() if _is_entry(entry))
    # The first line is the version of the format, the second about the batch, each other one the end of a source.
    offset = json.loads((checkpoint / "offsets" / str(last)).read_text(encoding="utf-8").splitlines()[2])
    return int(offset["position"])


def _is_entry(entry: Path) -> bool:
    return entry.name.split(".")[0].isdigit()


def _joined(sales: DataFrame, products: DataFrame) -> DataFrame:
    """Return what the pipeline is to make of sales, made by Spark's own join."""
    return sales.join(products, "product_id", "left").select(
        "sale_id",
        "surrogate_key",
        "quantity",
        "sale_date",
        "supplier_id",
        "sale_price",
        (F.col("quantity") * F.col("sale_price")).alias("total"),
    )


def _compared(expected: DataFrame, warehouse: DataFrame) -> Proof:
    """Compare two bags of rows exactly: each row is counted on both sides, and the counts must be the same."""
    wanted, written = (
        {field.name: field.dataType.simpleString() for field in rows.schema} for rows in (expected, warehouse)
    )
    if wanted != written:
        return Proof(problem=f"the warehouse has the columns {_columns(written)}, not {_columns(wanted)}.")
    names = expected.columns
    ours = expected.select(*names, F.lit(1).alias("wanted"), F.lit(0).alias("written"))
    theirs = warehouse.select(*names, F.lit(0).alias("wanted"), F.lit(1).alias("written"))
    both = ours.unionAll(theirs).groupBy(*names)
    counted = both.agg(F.sum("wanted").alias("wanted"), F.sum("written").alias("written"))
    more = F.col("wanted") - F.col("written")
    row = counted.agg(
        F.sum("wanted").alias("expected"),
        F.sum("written").alias("found"),
        F.sum(F.greatest(more, F.lit(0))).alias("missing"),
        F.sum(F.greatest(-more, F.lit(0))).alias("unexpected"),
    ).first()
    assert row is not None
    return Proof(row["expected"] or 0, row["found"] or 0, row["missing"] or 0, row["unexpected"] or 0)


def _columns(types: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types.items())
