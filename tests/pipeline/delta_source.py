"""Reads a Delta table as a stream, in a process of its own, since a session has the jars that it began with.

Called with the folder of a pipeline whose file is pipeline.toml; SEMISTREAM_JARS names where the jars are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from semistream.core.errors import SemistreamError
from semistream.pipeline import read_description
from semistream.pipeline.planning import plan_pipeline
from semistream.pipeline.running import run_pipeline, session_of


def main() -> None:
    """Let the table grow and change, and look at what the pipeline makes of it."""
    folder = Path(sys.argv[1])
    description = read_description(folder / "pipeline.toml")
    table = str(folder / "sales")
    with session_of(description) as spark:

        def append(first: int, *more: str) -> None:
            rows = spark.range(first, first + 10).selectExpr("id AS sale_id", "id % 4 AS product_id", *more)
            rows.write.format("delta").mode("append").option("mergeSchema", "true").save(table)

        def written() -> list[tuple[int, str | None]]:
            rows = spark.read.parquet(str(folder / "warehouse"))
            assert rows.columns == ["sale_id", "product_id", "name", "price"]
            return sorted((row["sale_id"], row["name"]) for row in rows.collect())

        names = [None, "pen", "ink", "nib"]
        append(0)
        run_pipeline(description, spark=spark)
        append(10)
        append(20)
        assert run_pipeline(description, spark=spark).rows_in == 20
        assert written() == [(sale, names[sale % 4]) for sale in range(30)]
        append(30, "'red' AS colour")
        run_pipeline(description, spark=spark)
        assert written() == [(sale, names[sale % 4]) for sale in range(40)], "an added column is left out"
        assert plan_pipeline(spark, description).steps[0].schema.names == ["sale_id", "product_id"]
        other = spark.range(5).selectExpr("CAST(id AS STRING) AS sale_id", "id AS product_id")
        other.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table)
        with pytest.raises(SemistreamError, match="sale_id"):
            run_pipeline(description, spark=spark)
        assert len(written()) == 40


if __name__ == "__main__":
    main()
