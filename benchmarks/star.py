"""Compares a star in one operator with as many `enrich` calls in a row, with the same memory in all.

Each dimension has R rows of about 60 bytes; the keys of the stream are Zipf-like (exponent 1), each of its own. The two
ways take turns, each with Python workers of its own, and every turn is a query of its own: the first micro-batches of a
turn do not count. Before the turns both ways join the same rows, and what they put out is compared. The table has
medians over all turns: time of a micro-batch, time inside `addBatch`, rows per second, and processor seconds of Spark
and the workers for a million rows.

    python benchmarks/star.py --master-rows 1000000 --batch-rows 200000,10000 --turns 4 --batches 15 --dropped 10
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import semistream as ss
from semistream.core.budget import parse_bytes
from semistream_lab.peers.peer_session import peers_session
from semistream_lab.python_workers import own_workers

Way = Callable[[DataFrame, Sequence[Path], int], DataFrame]


def build(folder: Path, rows: int, count: int) -> list[Path]:
    """Build master tables of so many rows and return their paths."""
    tables = []
    keys = np.arange(rows)
    for number in range(count):
        path = folder / f"dimension{number}"
        if not path.exists():
            texts = [f"dimension {number} row {key:>30}" for key in keys.tolist()]
            columns = {f"k{number}": keys, f"price{number}": keys % 997 / 10, f"text{number}": texts}
            ss.MasterTable.build(pa.table(columns), path, f"k{number}")
        tables.append(path)
    return tables


def with_keys(numbers: DataFrame, rows: int, count: int) -> DataFrame:
    """Return a stream whose keys follow from the number of each row."""
    columns = [F.col("value").alias("sale_id")]
    for number in range(count):
        uniform = f"pmod(xxhash64(value, {number}), 9007199254740992) / 9007199254740992D"
        rank = f"CAST(floor(exp({uniform} * {log(rows)!r})) AS BIGINT) - 1"
        columns.append(F.expr(f"pmod(({rank}) * 7919, {rows})").alias(f"k{number}"))
    return numbers.select(*columns)


def star(stream: DataFrame, tables: Sequence[Path], memory_bytes: int) -> DataFrame:
    """Return the stream with all dimensions, joined in one operator."""
    dimensions = [ss.Dimension(table, on=f"k{number}", how="left") for number, table in enumerate(tables)]
    return ss.enrich(stream, dimensions, memory=memory_bytes)


def chain(stream: DataFrame, tables: Sequence[Path], memory_bytes: int) -> DataFrame:
    """Return the stream with all dimensions, joined one after the other with an equal part of the memory each."""
    for number, table in enumerate(tables):
        stream = ss.enrich(stream, table, on=f"k{number}", how="left", memory=memory_bytes // len(tables))
    return stream


WAYS: dict[str, Way] = {"one operator": star, "one after the other": chain}


@dataclass
class Measured:
    """What the micro-batches of one way took."""

    batch_ms: list[float] = field(default_factory=list)
    add_batch_ms: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    """For a million rows, a turn each."""
    hit_rates: list[float] = field(default_factory=list)


def checksum(rows: DataFrame) -> tuple[int, int]:
    """Return the number of rows and a sum over all that is in them."""
    hashed = rows.select(F.xxhash64(*(F.col(name) for name in rows.columns)).alias("h"))
    counted: Any = hashed.agg(F.count("*"), F.sum(F.col("h").cast("decimal(38,0)"))).first()
    return int(counted[0]), int(counted[1])


def turn(enriched: DataFrame, folder: Path, options: argparse.Namespace, rows: int, into: Measured) -> None:
    """Run a query for some micro-batches and add what they took."""
    checkpoint = tempfile.mkdtemp(dir=folder)
    writer = enriched.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        _await_batches(query, options.dropped)
        before, first = _cpu_seconds(), query.lastProgress.batchId
        _await_batches(query, options.dropped + options.batches)
        after, last = _cpu_seconds(), query.lastProgress.batchId
        progress = list(query.recentProgress)[options.dropped : options.dropped + options.batches]
    finally:
        query.stop()
    into.cpu_seconds.append((after - before) / ((last - first) * rows) * 1e6)
    into.batch_ms += [each.durationMs["triggerExecution"] for each in progress]
    into.add_batch_ms += [each.durationMs["addBatch"] for each in progress]
    for batch in ss.progress(query)[-options.batches :]:
        into.hit_rates += [one.hit_rate for one in batch.enrichments]


def _await_batches(query: Any, count: int) -> None:
    while len(query.recentProgress) < count:
        if query.awaitTermination(0.05):
            raise SystemExit(f"The query has ended: {query.exception()}")


def _cpu_seconds() -> float:
    """Return the processor time of this process, of Spark and of all workers that have lived."""
    here = psutil.Process()
    total = 0.0
    for process in (here, *here.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def main() -> None:
    """Measure and print."""
    options = _options()
    memory_bytes = parse_bytes(options.memory)
    with tempfile.TemporaryDirectory(prefix="semistream-star-") as temporary:
        folder = Path(options.data or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        tables = build(folder, options.master_rows, options.dimensions)
        with peers_session(options.cores, memory_bytes) as spark:
            _compare(spark, tables, memory_bytes, options)
            for rows in (int(text) for text in options.batch_rows.split(",")):
                measured = {name: Measured() for name in WAYS}
                for number in range(options.turns):
                    for name in list(WAYS)[:: -1 if number % 2 else 1]:
                        numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
                        stream = with_keys(
                            numbers.option("numPartitions", options.cores).load(), options.master_rows, len(tables)
                        )
                        with own_workers(spark, name):
                            enriched = WAYS[name](stream, tables, memory_bytes)
                        turn(enriched, Path(temporary), options, rows, measured[name])
                _print(rows, measured)


def _compare(spark: SparkSession, tables: Sequence[Path], memory_bytes: int, options: argparse.Namespace) -> None:
    numbers = with_keys(spark.range(200_000).withColumnRenamed("id", "value"), options.master_rows, len(tables))
    sums = {name: checksum(way(numbers, tables, memory_bytes)) for name, way in WAYS.items()}
    if len(set(sums.values())) != 1:
        raise SystemExit(f"The ways do not put out the same: {sums}")
    print(f"Both ways put out the same {next(iter(sums.values()))[0]:,} rows.")


def _print(rows: int, measured: dict[str, Measured]) -> None:
    print(f"\n{rows:,} rows a micro-batch\n")
    print(
        "| | batch, ms | addBatch, ms | rows/s | processor s per million | hit rate |\n|---|---:|---:|---:|---:|---:|"
    )
    rates = {}
    for name, one in measured.items():
        batch_ms = median(one.batch_ms)
        rates[name] = rows / batch_ms * 1000
        print(
            f"| {name} | {batch_ms:,.0f} | {median(one.add_batch_ms):,.0f} | {rates[name]:,.0f} "
            f"| {median(one.cpu_seconds):.2f} | {median(one.hit_rates):.2f} |"
        )
    star_rate, chain_rate = rates.values()
    print(f"\nOne operator has {star_rate / chain_rate:.2f} times the rows per second of one after the other.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master-rows", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=3)
    parser.add_argument("--batch-rows", default="200000,10000")
    parser.add_argument("--batches", type=int, default=15, help="measured micro-batches of a turn")
    parser.add_argument("--dropped", type=int, default=10, help="first micro-batches of a turn that do not count")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--memory", default="128MB")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--data", help="folder to keep the master tables in")
    return parser.parse_args()


if __name__ == "__main__":
    main()
