"""Measures what parked rows cost: micro-batches with a million of them and with none, and their release.

Two queries take turns in one session, each with a room and micro-batches of `--batch-rows` rows whose keys the master
table has: one with no parked rows, one that has parked `--parked` rows before. Then a merge brings the keys of
`--released` parked rows, and the micro-batches are counted until all of them have left.

    python benchmarks/parked_rows.py --parked 1000000 --released 10000
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F  # noqa: N812

import semistream as ss
from semistream_lab.peers.data import Situation, master_rows
from semistream_lab.peers.peer_session import peers_session
from semistream_lab.peers.spark_stream import spark_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_RATIO, MAX_BATCHES = 1.2, 5


def main() -> None:
    """Run both queries in turns, then the release."""
    options = _options()
    situation = Situation.of(options.master_rows, options.batch_rows, "64MB", 1.0, options.cores)
    with (
        tempfile.TemporaryDirectory(prefix="semistream-benchmark-") as folder,
        peers_session(options.cores, "64MB") as spark,
    ):
        table = ss.MasterTable.build(master_rows(np.arange(options.master_rows)), f"{folder}/master", key="key")
        queries = {count: _Query(spark, situation, table, Path(folder), count) for count in (0, options.parked)}
        for query in queries.values():
            query.run(options.dropped)
        times: dict[int, list[float]] = {count: [] for count in queries}
        for turn in range(options.turns):
            for count, query in queries.items():
                times[count] += query.run(options.batches)
                print(f"turn {turn + 1}, {count:,} parked: median {1000 * median(times[count]):,.0f} ms", flush=True)
        ratio = median(times[options.parked]) / median(times[0])
        print(f"with parked rows / without: {ratio:.2f} (at most {MAX_RATIO}: {'yes' if ratio <= MAX_RATIO else 'NO'})")
        queries[options.parked].release(options.released)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master-rows", type=int, default=1_000_000)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--parked", type=int, default=1_000_000)
    parser.add_argument("--released", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batches", type=int, default=15)
    parser.add_argument("--dropped", type=int, default=10)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    return parser.parse_args()


class _Query:
    """A query whose first micro-batches bring rows that are parked; it goes on where it was stopped."""

    def __init__(
        self, spark: SparkSession, situation: Situation, table: ss.MasterTable, folder: Path, parked: int
    ) -> None:
        self._spark = spark
        self._situation = situation
        self._table = table
        self._folder = folder / f"parked-{parked}"
        self._parked = parked
        self._started: Any = None

    def run(self, batches: int) -> list[float]:
        """Run so many more micro-batches after those that park, and return their times."""
        query = self._start()
        try:
            first = None
            while True:
                assert query.isActive, query.exception()
                done = [batch for batch in ss.progress(query) if batch.batch_id >= self._parking_batches]
                if done:
                    first = done[0].batch_id if first is None else first
                    if done[-1].batch_id - first >= batches + 3:
                        return [batch.seconds for batch in done[3 : 3 + batches]]  # the first ones start workers
                time.sleep(0.2)
        finally:
            query.stop()

    def release(self, count: int) -> None:
        """Merge keys of parked rows, and count micro-batches until all rows have left."""
        query = self._start()
        try:
            self._wait(query, lambda done: len(done) > 5)
            keys = np.arange(self._situation.master_rows, self._situation.master_rows + count)
            before = ss.progress(query)[-1].batch_id
            self._table.merge(master_rows(keys))
            done = self._wait(query, lambda done: sum(b.enrichments[0].released for b in done) >= count)
            released = [batch for batch in done if batch.enrichments[0].released]
            kept, longest = "yes" if len(released) <= MAX_BATCHES else "NO", max(batch.seconds for batch in released)
            print(f"{count:,} of {self._parked:,} parked rows left in {len(released)} micro-batches")
            print(f"at most {MAX_BATCHES}: {kept}; the longest took {longest:.2f} s")
            print(f"the last came {released[-1].batch_id - before} micro-batches after the merge", flush=True)
        finally:
            query.stop()

    @property
    def _parking_batches(self) -> int:
        return -(-self._parked // (self._situation.batch_rows * 10))

    def _start(self) -> Any:
        rows = ss.enrich(
            self._stream(),
            self._table,
            on="key",
            memory="64MB",
            room=self._folder / "room",
            unmatched="park",
            name="parking",
        )
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(self._folder / "state"))
        return writer.start()

    def _stream(self) -> DataFrame:
        """Return micro-batches whose first ones are ten times as large and have keys that no master row has yet."""
        size, last = self._situation.batch_rows * 10, self._situation.master_rows
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", size)
        rows = source.option("numPartitions", self._situation.cores).load()
        parking = F.col("value") < F.lit(self._parking_batches * size)
        key = F.when(parking, F.col("value") + F.lit(last)).otherwise(spark_key(F.col("value"), self._situation))
        return rows.where(parking | (F.col("value") % 10 == 0)).select(key.alias("key"), "value")

    def _wait(self, query: Any, reached: Any) -> list[Any]:
        limit = time.monotonic() + 300
        while True:
            assert query.isActive, query.exception()
            done = ss.progress(query)
            if reached(done):
                return done
            assert time.monotonic() < limit, "took too long"
            time.sleep(0.2)


if __name__ == "__main__":
    main()
