"""A job for spark-submit: builds a master table with Spark, enriches a stream of files, and tells what happened.

Arguments: a folder that the driver and all executors reach. In it lie `products.parquet` and the files of the stream in
`incoming`; the job writes the table `products`, the rows `warehouse` and `report.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import semistream as ss
from semistream.spark.statistics import of_progress


def main(folder: Path) -> None:
    """Run the job; where it runs is for spark-submit to say."""
    spark = SparkSession.builder.appName("cluster job").getOrCreate()
    ss.MasterTable.build(spark.read.parquet(str(folder / "products.parquet")), folder / "products", key="product_id")
    sales = spark.readStream.schema("sale_id BIGINT, product_id BIGINT").option("maxFilesPerTrigger", 2)
    enriched = ss.enrich(
        sales.parquet(str(folder / "incoming")),
        folder / "products",
        on="product_id",
        how="left",
        memory="16MB",
        name="products",
    )
    query = (
        enriched.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "warehouse"))
    )
    query.awaitTermination()
    batches = [counted for progress in query.recentProgress for counted in of_progress(progress.observedMetrics)]
    report = {
        "master": spark.sparkContext.master,
        "executors": sorted(_executors(spark)),
        "batches": [batch.as_dict() for batch in batches if batch.tuples_in],
    }
    (folder / "report.json").write_text(json.dumps(report))
    spark.stop()


def _executors(spark: SparkSession) -> list[str]:
    """Return the ids of the executors besides the driver."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    ids = [executors.apply(index).id() for index in range(executors.size())]
    return [name for name in ids if name != "driver"]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
