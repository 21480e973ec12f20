"""A program that tries `enrich` on a session of Spark Connect and prints what came of it as one JSON object.

Its argument is a folder for its files.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Enrich a batch, a stream, a stream with a watermark, and batches in an action of a stream."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from enrich_runs import SalesStream, build, finish, multiset, products, sales, spark_join, statistics
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812

    import semistream as ss

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    table = build(folder)
    source = SalesStream(spark, folder / "stream")
    source.arrive(*(sales(number * 300, 300) for number in range(3)))
    settings: dict[str, Any] = {"on": "product_id", "how": "left", "memory": "4MB"}
    checks: dict[str, Any] = {}

    batch = source.batch()
    expected = multiset(spark_join(batch, spark.createDataFrame(products()), {"product_id": "product_id"}, "left"))
    checks["batch"] = multiset(ss.enrich(batch, table, **settings)) == expected
    checks["shuffled"] = multiset(ss.enrich(batch, table, partitioning=2, **settings)) == expected

    query = source.run(ss.enrich(source.stream(), table, name="sales", **settings))
    checks["stream"] = multiset(source.written()) == expected
    checks["pinned"] = [path.name for path in (table / "pins").iterdir()] == [query.id]

    try:
        checks["statistics"] = [batch.tuples_in for batch in statistics(query)["sales"]]
    except Exception as error:
        checks["statistics"] = repr(error)

    timed = source.stream().withColumn("at", F.timestamp_seconds("sale_id")).withWatermark("at", "10 seconds")
    windows = ss.enrich(timed, table, **settings).groupBy(F.window("at", "20 seconds")).count()
    writer = windows.writeStream.format("memory").queryName("windows").outputMode("append").trigger(availableNow=True)
    finish(writer.option("checkpointLocation", str(folder / "windows")).start())
    checks["closed windows"] = spark.table("windows").count()

    seen = folder / "seen"
    seen.mkdir()

    def action(rows: Any, number: int) -> None:
        import semistream as ss

        counted = ss.enrich(rows, table, pin=("loader", number), **settings).count()
        (seen / str(number)).write_text(str(counted))

    print(json.dumps(checks))  # a worker of actions that starts too slowly ends the program
    writer = source.stream().writeStream.foreachBatch(action).trigger(availableNow=True)
    finish(writer.option("checkpointLocation", str(folder / "actions")).start())
    checks["actions"] = {path.name: int(path.read_text()) for path in sorted(seen.iterdir())}
    checks["pins of actions"] = sorted(path.name for path in (table / "pins" / "loader").iterdir())
    spark.stop()
    print(json.dumps(checks))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
