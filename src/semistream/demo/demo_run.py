"""Prepares the demo's master table and pipeline, and lets the stream flow for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.budget import parse_bytes
from semistream.demo.folder import DemoFolder
from semistream.generator.sales import PRODUCTS_SCHEMA, products
from semistream.generator.settings import positive_number, whole_number
from semistream.master_table import MasterTable
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.failures import as_own_error
from semistream.pipeline.reading import read_description
from semistream.pipeline.running import run_pipeline
from semistream.spark.batch_progress import BatchProgress
from semistream.spark.enrichment import enrich
from semistream.spark.sales_options import FORMAT
from semistream.spark.sales_source import register

Progress: TypeAlias = Callable[[str, int, int | None], None]

SEED = 1
_SECONDS_OF_STREAM_IN_A_BATCH = 5
_MIN_BATCHES = 3
_PIPELINE = """\
# The pipeline of `semistream demo`. `semistream run` on this file goes on where the demo has stopped: the shop has sold
# on meanwhile, so that the first batches take what has piled up.

[pipeline]
name = "sales"
checkpoint = "{checkpoint}"

[source]
format = "sales"
options = {{ products = {products}, rate = {rate}, arrivals = "bursty", seed = {seed}, maxRowsPerBatch = {max_rows} }}

[enrich]
memory = {memory_bytes}
algorithm = "{algorithm}"

[[dimension]]
table = "{master}"
on = "product_id"
how = "left"
replace = {{ product_id = "surrogate_key" }}
columns = ["supplier_id", "sale_price"]

[[transform]]
set = {{ total = "quantity * sale_price" }}

[sink]
format = "parquet"
path = "{warehouse}"

[trigger]
every = "1 second"

[statistics]
json_lines = "{statistics}"
"""


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """What the demo shows: `rate` is the mean number of sales a second, `memory` the budget of a worker."""

    products: int = 8_000_000
    seconds: float = 40.0
    memory: int | str = "32MB"
    rate: int = 20_000
    algorithm: str = DEFAULT_ALGORITHM

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        whole_number("products", self.products, minimum=1)
        positive_number("seconds", self.seconds)
        whole_number("rate", self.rate, minimum=1)
        parse_bytes(self.memory)
        algorithm_named(self.algorithm)


def prepare(folder: DemoFolder, settings: DemoSettings, progress: Progress) -> PipelineDescription:
    """Generate the products, build the master table from them, and write the pipeline; needs no Spark."""
    done = 0
    with pq.ParquetWriter(folder.products, PRODUCTS_SCHEMA) as file:
        for batch in products(settings.products, seed=SEED):
            progress("Generating products", done, settings.products)
            file.write_batch(batch)
            done += batch.num_rows
    MasterTable.build(
        folder.products,
        folder.master,
        key="product_id",
        progress=lambda what, done, total: progress(f"Master table: {what} rows", done, total),
    )
    text = _PIPELINE.format(
        products=settings.products,
        rate=settings.rate,
        seed=SEED,
        max_rows=settings.rate * _SECONDS_OF_STREAM_IN_A_BATCH,
        memory_bytes=parse_bytes(settings.memory),
        algorithm=settings.algorithm,
        master=folder.master.name,
        checkpoint=folder.checkpoint.name,
        warehouse=folder.warehouse.name,
        statistics=folder.statistics.name,
    )
    folder.pipeline.write_text(text, encoding="utf-8")
    return read_description(folder.pipeline)


def warm_up(spark: SparkSession, description: PipelineDescription) -> None:
    """Enrich one sale a task, so that Java and the workers are ready when the clock of the stream starts."""
    register(spark)
    tasks = spark.sparkContext.defaultParallelism
    sales = spark.read.format(FORMAT).options(**{**description.sources[0].options, "rows": str(tasks)}).load()
    (dimension,) = description.dimensions
    warm = enrich(
        sales,
        dimension.table,
        on="product_id",
        memory=description.enrich.memory_bytes,
        algorithm=description.enrich.algorithm,
        replace=dimension.replace,
        columns=dimension.columns,
    )
    try:
        warm.write.format("noop").mode("overwrite").save()
    except PySparkException as error:
        raise as_own_error(error) from error


def stream_sales(
    spark: SparkSession, description: PipelineDescription, seconds: float, on_batch: Callable[[BatchProgress], None]
) -> list[BatchProgress]:
    """Run the pipeline until so many seconds after its first batch, and return its batches that had rows.

    `on_batch` is called from another thread. However slow the machine, a few batches are waited for, so that there is
    something to show.
    """
    batches: list[BatchProgress] = []
    over, stop = threading.Event(), threading.Event()

    def stop_if_over() -> None:
        if over.is_set() and len(batches) >= _MIN_BATCHES:
            stop.set()

    def time_is_over() -> None:
        over.set()
        stop_if_over()

    timer = threading.Timer(seconds, time_is_over)
    timer.daemon = True

    def add(batch: BatchProgress) -> None:
        if batch.rows_in:
            if not batches:
                timer.start()
            batches.append(batch)
            on_batch(batch)
            stop_if_over()

    try:
        run_pipeline(description, add, spark=spark, stop=stop)
    finally:
        timer.cancel()
    return batches
