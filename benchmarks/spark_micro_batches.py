"""Measures micro-batches on Spark: enrichment by semistream against Spark's own joins and against doing nothing.

All contenders get the same stream (Zipf exponent 1, shuffled ranks), the same session settings, checkpoints of their
own on the same disk and the noop sink. They run in turns (A-B-C-A-B-C), the first ten batches of each turn are dropped,
and medians are over the batches of all turns, of which `addBatch` is the part that Spark spends on the rows.

    python benchmarks/spark_micro_batches.py --master-rows 8000000 --small-master-rows 500000 --json FILE

- identity: mapInArrow that hands every batch back: what a Python operator costs in any case
- native: the left join of stream and Parquet as it comes
- broadcast: an inner join with broadcast(stream), the best that is known for small batches
- cached: the master repartitioned by key and cached in Spark's memory, joined with the stream
- semistream, semistream (small master): `enrich`, left join, with the memory that --memory says
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import semistream as ss
from semistream.spark.session import make_session
from semistream.spark.statistics import of_progress

DROPPED_BATCHES = 10
_SCRAMBLE = 2_654_435_761
_FILE_ROWS = 1_000_000


def main() -> None:
    """Run all contenders and print a table."""
    options = _options()
    folder = Path(options.data or tempfile.mkdtemp(prefix="semistream-benchmark-"))
    spark = make_session("micro-batches", f"local[{options.cores}]", _settings(options), memory=options.memory)
    try:
        rows = []
        for batch_rows, names in ((options.batch_rows, None), (options.large_batch_rows, ("identity", "semistream"))):
            if batch_rows:
                rows += _measure(spark, folder, batch_rows, names, options)
        _print(rows)
        for claim in _claims(rows, options):
            print(claim)
        if options.json:
            Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    finally:
        spark.stop()
        if not options.data:
            shutil.rmtree(folder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master-rows", type=int, default=8_000_000)
    parser.add_argument("--small-master-rows", type=int, default=500_000)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--large-batch-rows", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=20, help="measured batches of a turn")
    parser.add_argument("--slow-batches", type=int, default=5, help="measured batches of a turn of Spark's own joins")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--memory", default="64MB")
    parser.add_argument("--algorithm", default=None)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--fast-checkpoints", action="store_true", help="the checkpoint manager that `run` uses")
    parser.add_argument("--without", default="", help="contenders to leave out, separated by commas")
    parser.add_argument("--data", help="folder to keep the master tables in")
    parser.add_argument("--json")
    return parser.parse_args()


def _settings(options: argparse.Namespace) -> dict[str, str]:
    settings = {"spark.driver.memory": "6g", "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    if options.fast_checkpoints:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        )
    return settings


def _measure(
    spark: SparkSession, folder: Path, batch_rows: int, names: tuple[str, ...] | None, options: argparse.Namespace
) -> list[dict[str, Any]]:
    contenders = _contenders(spark, folder, batch_rows, options)
    chosen = {
        name: make
        for name, make in contenders.items()
        if (names is None or name in names) and name not in options.without.split(",")
    }
    taken: dict[str, list[Any]] = {name: [] for name in chosen}
    for turn in range(options.turns):
        for name, make in chosen.items():
            count = options.slow_batches if name in ("native", "broadcast", "cached") else options.batches
            with tempfile.TemporaryDirectory(dir=folder) as checkpoint:
                taken[name] += _turn(make(), checkpoint, DROPPED_BATCHES, count)
            print(f"  turn {turn + 1}: {name}, {batch_rows:,} rows a batch: {_median_ms(taken[name][-count:]):.0f} ms")
    return [_row(name, progress, batch_rows, options) for name, progress in taken.items()]


def _contenders(
    spark: SparkSession, folder: Path, batch_rows: int, options: argparse.Namespace
) -> dict[str, Callable[[], DataFrame]]:
    large, small = options.master_rows, options.small_master_rows
    for rows in (large, small):
        _build(folder, rows)
    parquet = str(folder / f"parquet-{large}")
    settings = {"memory": options.memory, **({"algorithm": options.algorithm} if options.algorithm else {})}

    def stream(rows: int) -> DataFrame:
        arriving = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", batch_rows)
        values = arriving.option("numPartitions", options.cores).load()
        # The rank is drawn with probability 1/rank: the logarithm of a Zipf rank of exponent 1 is uniform.
        rank = F.floor(F.pow(F.lit(float(rows)), F.rand(1)))
        return values.select(F.pmod(rank * F.lit(_SCRAMBLE), F.lit(rows)).alias("key"), "value", "timestamp")

    def identity() -> DataFrame:
        arriving = stream(large)
        return arriving.mapInArrow(_unchanged, arriving.schema)

    def cached() -> DataFrame:
        master = spark.read.parquet(parquet).repartition(options.cores, "key").cache()
        master.count()
        return stream(large).join(master, "key", "left")

    return {
        "identity": identity,
        "native": lambda: stream(large).join(spark.read.parquet(parquet), "key", "left"),
        "broadcast": lambda: F.broadcast(stream(large)).join(spark.read.parquet(parquet), "key", "inner"),
        "cached": cached,
        "semistream": lambda: ss.enrich(
            stream(large), folder / f"master-{large}", on="key", how="left", name="large", **settings
        ),
        "semistream (small master)": lambda: ss.enrich(
            stream(small), folder / f"master-{small}", on="key", how="left", name="small", **settings
        ),
    }


def _unchanged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _build(folder: Path, rows: int) -> None:
    """Write a master table of rows of about 120 bytes, in Parquet and in pages, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    parquet = folder / f"parquet-{rows}"
    if not parquet.exists():
        parquet.mkdir()
        for start in range(0, rows, _FILE_ROWS):
            keys = np.arange(start, min(rows, start + _FILE_ROWS), dtype=np.int64)
            noise = np.random.default_rng(start).integers(97, 123, len(keys) * 72, dtype=np.uint8)
            offsets = pa.py_buffer(np.arange(0, len(noise) + 1, 72, dtype=np.int32))
            text = pa.Array.from_buffers(pa.string(), len(keys), [None, offsets, pa.py_buffer(noise)])
            table = pa.table({"key": keys, "supplier": keys % 1000, "price": keys / 7, "stock": keys * 3, "text": text})
            pq.write_table(table, parquet / f"part-{start:010d}.parquet")
    master = folder / f"master-{rows}"
    if not master.exists():
        ss.MasterTable.build(parquet, master, "key")


def _turn(df: DataFrame, checkpoint: str, dropped: int, count: int) -> list[Any]:
    """Run a query until it has done so many batches, and return the progress of those that are not dropped."""
    query = df.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        while True:
            done = [progress for progress in query.recentProgress if progress.numInputRows]
            if len(done) >= dropped + count:
                return done[dropped : dropped + count]
            if not query.isActive:
                raise RuntimeError(str(query.exception()))
            time.sleep(0.2)
    finally:
        query.stop()
        df.sparkSession.catalog.clearCache()


def _median_ms(progress: list[Any], part: str = "triggerExecution") -> float:
    return float(median(one.durationMs[part] for one in progress))


def _row(name: str, progress: list[Any], batch_rows: int, options: argparse.Namespace) -> dict[str, Any]:
    durations = sorted(one.durationMs["triggerExecution"] for one in progress)
    row = {
        "contender": name,
        "batch_rows": batch_rows,
        "master_rows": options.small_master_rows if "small" in name else options.master_rows,
        "batches": len(progress),
        "median_ms": _median_ms(progress),
        "add_batch_ms": _median_ms(progress, "addBatch"),
        "p90_ms": durations[int(0.9 * (len(durations) - 1))],
        "rows_per_second": batch_rows * 1000 / _median_ms(progress),
        "memory": options.memory,
        "checkpoints": "fast" if options.fast_checkpoints else "default",
        "machine": f"{platform.machine()}, {options.cores} cores",
    }
    statistics = [batch for one in progress for batch in of_progress(one.observedMetrics)]
    if statistics:
        tuples = sum(batch.tuples_in for batch in statistics)
        row["hit_rate"] = sum(batch.cache_hits for batch in statistics) / tuples
        row["pages_per_batch"] = sum(batch.page_reads for batch in statistics) / len(statistics)
        row["resident_mb"] = max(batch.resident_bytes for batch in statistics) / 1e6
    return row


def _print(rows: list[dict[str, Any]]) -> None:
    print(f"\n{'':28}{'rows/batch':>12}{'median ms':>11}{'addBatch':>10}{'p90':>8}{'rows/s':>12}{'hits':>7}")
    for row in rows:
        hits = f"{row['hit_rate']:.0%}" if "hit_rate" in row else ""
        print(
            f"{row['contender']:28}{row['batch_rows']:>12,}{row['median_ms']:>11.0f}{row['add_batch_ms']:>10.0f}"
            f"{row['p90_ms']:>8.0f}{row['rows_per_second']:>12,.0f}{hits:>7}"
        )


def _claims(rows: list[dict[str, Any]], options: argparse.Namespace) -> Iterator[str]:
    found = {(row["contender"], row["batch_rows"]): row["median_ms"] for row in rows}
    small, large = options.batch_rows, options.large_batch_rows

    def ratio(text: str, above: tuple[str, int], below: tuple[str, int], limit: float, *, least: bool) -> Iterator[str]:
        if above in found and below in found:
            value = found[above] / found[below]
            kept = value >= limit if least else value <= limit
            yield f"{text}: {value:.2f} ({'at least' if least else 'at most'} {limit}: {'yes' if kept else 'NO'})"

    ours = ("semistream", small)
    yield from ratio("faster than the native left join", ("native", small), ours, 15, least=True)
    yield from ratio("faster than broadcast(stream)", ("broadcast", small), ours, 2.5, least=True)
    yield from ratio("faster than the cached master", ("cached", small), ours, 2.5, least=True)
    yield from ratio("against the identity", ours, ("identity", small), 1.5, least=False)
    yield from ratio("large against small master", ours, ("semistream (small master)", small), 1.15, least=False)
    yield from ratio("rows per second of the identity", ("identity", large), ("semistream", large), 0.5, least=True)


if __name__ == "__main__":
    main()
