"""Compares the build of a master table by Spark with what Spark takes to write the same rows sorted by key as Parquet.

The rows are about 110 bytes, come from Parquet files in no order, and have distinct integer keys. Both are done in
turns in one session, and what was written is removed in between.

    python benchmarks/build_by_spark.py --rows 32000000 --turns 2
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

import semistream as ss

WORDS = "'of a product that is described by some words, of which there are many'"


def session(folder: Path, cores: int, memory: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session whose temporary files are in a folder."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.memory", memory)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        **(settings or {}),
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def rows_in(spark: SparkSession, folder: Path, count: int) -> DataFrame:
    """Return so many rows in files; their keys are in no order."""
    path = str(folder / "rows")
    spark.range(count).selectExpr(
        f"pmod(id * 2654435761, {count}) * 3 AS product_id",
        "id % 5000 AS supplier_id",
        "CAST(id % 100000 / 100.0 AS DOUBLE) AS price",
        f"concat('name ', id, ' ', {WORDS}) AS description",
    ).write.parquet(path)
    return spark.read.parquet(path)


ALLOWED = 1.25


def timed(what: Callable[[], object], path: Path) -> tuple[float, int]:
    """Return the seconds that something takes and the bytes that it writes, and remove what it wrote."""
    began = time.perf_counter()
    what()
    took = time.perf_counter() - began
    written = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    shutil.rmtree(path)
    return took, written


def main() -> None:
    """Measure in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=32_000_000)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="Spark's memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="semistream-build-") as name:
        folder = Path(name)
        spark = session(folder, options.cores, options.memory)
        rows = rows_in(spark, folder, options.rows)
        small = rows_in(spark, folder / "small", 200_000)
        parquet, table = folder / "sorted", folder / "table"

        def write(frame: DataFrame) -> tuple[float, int]:
            return timed(lambda: frame.orderBy("product_id").write.parquet(str(parquet)), parquet)

        def build(frame: DataFrame) -> tuple[float, int]:
            return timed(lambda: ss.MasterTable.build(frame, table, key="product_id"), table)

        write(small), build(small)  # compiles what has to be compiled
        ratios, ways = [], {"sorted Parquet": write, "build": build}
        for turn in range(options.turns):
            both = {way: way(rows) for way in ((write, build) if turn % 2 == 0 else (build, write))}
            ratios.append(both[build][0] / both[write][0])
            shown = (f"{name} {both[way][0]:.1f} s ({both[way][1] / 1e6:,.0f} MB)" for name, way in ways.items())
            print(f"turn {turn + 1}: {', '.join(shown)}, {ratios[-1]:.2f} times as long", flush=True)
        kept = "yes" if median(ratios) <= ALLOWED else "NO"
        print(f"{options.rows:,} rows, median of {options.turns}: {median(ratios):.2f}; at most {ALLOWED}: {kept}")
        spark.stop()


if __name__ == "__main__":
    main()
