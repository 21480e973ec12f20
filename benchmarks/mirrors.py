"""Measures a mirror of a table of PostgreSQL: its first load, a refresh, refreshes while a stream runs, and kills.

The server is started on loopback with a temporary folder. First load: by Spark, and with --alone by one connection,
too. Refresh: 10,000 scattered rows have changed. Stream: 10,000 rows a micro-batch, Zipf exponent 1, 64 MB, while so
many refreshes of 1,000 changed rows each happen; every micro-batch is compared with the join with its version. Kills:
processes that refresh are killed at random moments, and the mirror is refreshed again and compared with the table.

    python benchmarks/mirrors.py --rows 8000000 --refreshes 100 --kills 20
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from build_by_spark import session
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.mirrors.refreshing import build_mirror
from semistream.spark.statistics import of_progress

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reliability"))

from killed_refreshes import killed_after

from servers import postgresql

WORDS = "'of a product that is described by some words, of which there are many'"
BATCH_ROWS = 10_000
EVERY = "500 milliseconds"
REFRESHES_ALONE, CHANGED_ALONE = 5, 10_000
PAGES_AT_ONCE = 10_000


class Products:
    """The table: `stamp` grows with each row that is written, and then with each change of many rows."""

    def __init__(self, server: postgresql.PostgresqlServer, rows: int) -> None:
        self.server = server
        self.rows = rows
        self.stamp = rows
        self._sql("CREATE TABLE products (id bigint, supplier bigint, stamp bigint NOT NULL, words text)")
        self._sql(
            f"INSERT INTO products SELECT n, n % 5000, n, concat('name ', n, ' ', {WORDS}) "
            f"FROM generate_series(0, {rows - 1}) AS numbers(n)"
        )
        self._sql("ALTER TABLE products ADD PRIMARY KEY (id)")
        self._sql("CREATE INDEX ON products (stamp)")
        self._sql("VACUUM ANALYZE products")

    @property
    def source(self) -> ss.DatabaseSource:
        """What the mirror follows."""
        address = self.server.address("products").replace("&key=id", "")
        return ss.DatabaseSource(address, grows="stamp", overlap=0, compare_every="never")

    def change(self, count: int) -> np.ndarray[Any, Any]:
        """Change so many scattered rows, and return their keys."""
        self.stamp += 1
        keys = random.Random(self.stamp).sample(range(self.rows), count)
        self._sql("UPDATE products SET stamp = %s, supplier = supplier + 1 WHERE id = ANY(%s)", self.stamp, keys)
        return np.array(keys)

    def content(self) -> np.ndarray[Any, Any]:
        """Return supplier and stamp of all rows, by id."""
        content = np.full((self.rows, 2), -1, dtype=np.int64)
        with self.server.connect() as connection, connection.transaction(), connection.cursor("all") as cursor:
            cursor.execute("SELECT id, supplier, stamp FROM products")
            while found := cursor.fetchmany(100_000):
                rows = np.array(found)
                content[rows[:, 0]] = rows[:, 1:]
        return content

    def _sql(self, text: str, *values: object) -> None:
        with self.server.connect() as connection:
            connection.execute(text, values or None)


def first_load(products: Products, folder: Path, spark: SparkSession | None) -> float:
    """Build the mirror and return the seconds."""
    began = time.perf_counter()
    build_mirror(products.source, ss.MasterTable(folder).address, "id", spark=spark)
    return time.perf_counter() - began


def measure_refresh(products: Products, mirror: ss.MasterTable, built_seconds: float) -> None:
    """Print what refreshes of 10,000 changed rows take."""
    took = []
    for _ in range(REFRESHES_ALONE):
        products.change(CHANGED_ALONE)
        done = mirror.refresh()
        assert done.rows_upserted == CHANGED_ALONE
        took.append(done.seconds)
    print(f"refreshes of {CHANGED_ALONE:,} rows: {', '.join(f'{seconds:.2f}' for seconds in took)} s", end="; ")
    print(
        f"median {median(took) / built_seconds:.1%} of a first load, longest {max(took) / built_seconds:.1%}", end=" "
    )
    print("(allowed: 5%)", flush=True)


def sales(spark: SparkSession, rows: int) -> DataFrame:
    """Return an endless stream with Zipf's law, exponent 1."""
    stream = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=BATCH_ROWS, numPartitions=2).load()
    rank = f"CAST(pow({rows}D, pmod(xxhash64(value), 10000019) / 10000019D) AS BIGINT)"
    return stream.selectExpr("value AS sale_id", f"pmod({rank} * 2654435761, {rows}) AS id")


def measure_stream(spark: SparkSession, products: Products, mirror: ss.MasterTable, refreshes: int) -> None:
    """Run a stream beside refreshes, and print how long micro-batches took and whether all were right."""
    stamps = np.arange(products.rows, dtype=np.int64)
    with mirror.open() as store:
        version = store.version
    # What earlier refreshes have changed.
    for stamp in range(products.rows + 1, products.stamp + 1):
        stamps[random.Random(stamp).sample(range(products.rows), CHANGED_ALONE)] = stamp
    changes, spans = {version: (np.zeros(0, dtype=np.int64), 0)}, []
    enriched = ss.enrich(sales(spark, products.rows), mirror, on="id", columns=["stamp"], memory="64MB")
    query = enriched.writeStream.format("memory").queryName("written").trigger(processingTime=EVERY).start()
    while query.lastProgress is None or query.lastProgress.batchId < 20:
        time.sleep(0.1)

    def refresh() -> None:
        for _ in range(refreshes):
            keys = products.change(1_000)
            began = time.time()
            done = mirror.refresh()
            spans.append((began, time.time()))
            changes[done.version] = (keys, products.stamp)
            time.sleep(0.5)

    thread = threading.Thread(target=refresh)
    thread.start()
    thread.join()
    time.sleep(2)
    progresses = [progress for progress in query.recentProgress if progress.batchId >= 10]
    assert query.isActive, "the query has ended"
    spark.sparkContext.setLogLevel("FATAL")  # a micro-batch that is cut off by the stop is an error in Spark's log
    query.stop()
    _report(progresses, spans)
    _check(progresses, spark.table("written").toArrow(), changes, stamps)


def _report(progresses: list[Any], spans: list[tuple[float, float]]) -> None:
    seconds = np.array([progress.batchDuration / 1000 for progress in progresses])
    begins = [datetime.fromisoformat(progress.timestamp).timestamp() for progress in progresses]
    during = np.array(
        [
            any(begin < end and begin + took > start for start, end in spans)
            for begin, took in zip(begins, seconds, strict=True)
        ]
    )
    usual = float(np.median(seconds))
    took = [end - start for start, end in spans]
    print(f"{len(spans)} refreshes of 1,000 rows, median {median(took):.2f} s, longest {max(took):.2f} s")
    print(f"{len(seconds)} micro-batches, median {usual:.3f} s; {int(during.sum())} during a refresh, median", end=" ")
    print(f"{float(np.median(seconds[during])):.3f} s, others {float(np.median(seconds[~during])):.3f} s")
    slow = seconds > 3 * usual
    print(f"the longest took {seconds[during].max() / usual:.2f} medians during a refresh, and", end=" ")
    print(f"{seconds[~during].max() / usual:.2f} otherwise;", end=" ")
    print(f"{int((slow & during).sum())} longer than 3 medians during a refresh (allowed: 0)", flush=True)


def _check(
    progresses: list[Any], written: pa.Table, changes: dict[int, tuple[np.ndarray[Any, Any], int]], stamps: Any
) -> None:
    """Compare every micro-batch with the table of the version that it was joined with."""
    versions = {
        progress.batchId: counted.version
        for progress in progresses
        for counted in of_progress(progress.observedMetrics)
    }
    written = written.sort_by("sale_id")
    # Sales are numbered through, so that each micro-batch has a range of numbers.
    assert (written["sale_id"].to_numpy() == np.arange(written.num_rows)).all(), "a sale is missing, or there twice"
    ids, found = written["id"].to_numpy(), written["stamp"].to_numpy()
    checked, at = 0, min(changes)
    for batch, version in sorted(versions.items()):
        while at < version:
            at += 1
            keys, stamp = changes[at]
            stamps[keys] = stamp
        assert at == version, "versions went back"
        rows = slice(batch * BATCH_ROWS, (batch + 1) * BATCH_ROWS)
        assert (found[rows] == stamps[ids[rows]]).all(), f"batch {batch} differs"
        checked += 1
    print(f"{checked} micro-batches are equal to the join with their version; {len(set(versions.values()))} versions")


def measure_kills(products: Products, mirror: ss.MasterTable, kills: int) -> None:
    """Kill refreshes at random moments; each time the next one must do what is left, and nothing twice."""
    chance, typical, applied = random.Random(1), 0.5, 0
    for kill in range(kills):
        before = _content(mirror)
        keys = products.change(CHANGED_ALONE)
        after = before.copy()
        after[keys, 0] += 1
        after[keys, 1] = products.stamp
        version = mirror.version
        killed_after(str(mirror.address), chance.uniform(0, 1.5 * typical))
        is_applied = mirror.version != version
        assert (_content(mirror) == (after if is_applied else before)).all(), "the mirror is neither old nor new"
        done = mirror.refresh()
        assert done.rows_upserted == (0 if is_applied else CHANGED_ALONE), "something was applied twice, or lost"
        assert mirror.version == version + 1, "there is a version too many"
        assert (_content(mirror) == after).all(), "the mirror differs from its table"
        typical = typical if is_applied else done.seconds
        applied += is_applied
        print(f"kill {kill + 1}: {'after' if is_applied else 'before'} the commit", flush=True)
    assert (_content(mirror) == products.content()).all(), "the mirror differs from its table"
    print(f"{kills} kills, {applied} of them after the commit: the mirror equals its table, nothing was applied twice")


def _content(mirror: ss.MasterTable) -> np.ndarray[Any, Any]:
    """Return supplier and stamp of all rows, by id."""
    with mirror.open() as store:
        content = np.full((store.row_count, 2), -1, dtype=np.int64)
        for first in range(0, store.page_count, PAGES_AT_ONCE):
            pages = store.read(np.array([first]), np.array([min(first + PAGES_AT_ONCE, store.page_count) - 1]))
            rows = pages.take(np.arange(len(pages.codes)), ["supplier", "stamp"])
            content[pages.codes] = np.column_stack([rows.column(0).to_numpy(), rows.column(1).to_numpy()])
    return content


def main() -> None:
    """Measure one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--refreshes", type=int, default=100, help="while a stream runs")
    parser.add_argument("--kills", type=int, default=0, help="of processes that refresh")
    parser.add_argument("--alone", action="store_true", help="also load by one connection")
    options = parser.parse_args()
    os.environ["PGPASSWORD"] = postgresql.PASSWORD
    server = postgresql.new_server("shared_buffers=512MB", "max_wal_size=8GB")
    try:
        with tempfile.TemporaryDirectory(prefix="semistream-mirrors-") as name:
            folder = Path(name)
            products = Products(server, options.rows)
            spark = session(folder, 2, "2g", {"spark.sql.streaming.numRecentProgressUpdates": "100000"})
            built = first_load(products, folder / "mirror", spark)
            print(f"first load of {options.rows:,} rows by Spark: {built:.1f} s", flush=True)
            if options.alone:
                alone = first_load(products, folder / "alone", None)
                print(f"first load by one connection: {alone:.1f} s", flush=True)
            mirror = ss.MasterTable(folder / "mirror")
            measure_refresh(products, mirror, built)
            if options.refreshes:
                measure_stream(spark, products, mirror, options.refreshes)
            spark.stop()
            if options.kills:
                measure_kills(products, mirror, options.kills)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
