"""A program that enriches a stream in a session of its own and prints what came of it as one JSON object.

Its arguments are the URL of the master of Spark, a folder for its files, and "kill" if workers are to be killed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyspark


def main(url: str, folder: Path, kill: bool) -> None:
    """Run the stream and print whether its rows are those of a join in a batch."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    from enrich_operators import KillsTheOthers
    from enrich_runs import SalesStream, build, multiset, products, sales, spark_join, statistics
    from pyspark.sql import SparkSession

    import semistream as ss

    spark = (
        SparkSession.builder.master(url)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    table = build(folder)
    source = SalesStream(spark, folder / "stream", files_per_batch=2)
    source.arrive(*(sales(number * 300, 300) for number in range(6)))
    stream = source.stream()
    if kill:
        stream = stream.mapInArrow(KillsTheOthers(605, folder / "killed"), stream.schema)
    query = source.run(ss.enrich(stream, table, on="product_id", how="left", memory="4MB", name="sales"))
    expected = spark_join(source.batch(), spark.createDataFrame(products()), {"product_id": "product_id"}, "left")
    counters = statistics(query)["sales"]
    rows = {
        "equal": multiset(source.written()) == multiset(expected),
        "rows": source.written().count(),
        "tuples_in": [batch.tuples_in for batch in counters],
        "rows_out": [batch.rows_out for batch in counters],
        "killed": (folder / "killed").exists(),
    }
    spark.stop()
    print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), "kill" in sys.argv[3:])
