"""Measures Nexmark's q13, bids joined with a side input, against q0, which passes bids through.

    q0:  SELECT auction, bidder, price, dateTime, extra FROM bid
    q13: SELECT auction, bidder, price, dateTime, value FROM bid JOIN side_input ON mod(auction, R) = key

R is the number of rows of the side input: 10,000 as published, and 10 million. The figure is the rate of q13 divided by
that of q0, each by the median time of micro-batches of `--batch-rows` bids in turns, so that all see the same machine.
With `--spark` Spark's own join of stream and Parquet file is measured, too. Where Flink is installed (`peers.md`, "With
Flink"), it runs both queries in the same turns, with as much memory for its cache (`nexmark_flink.py`).

Bids are made as Nexmark's generator makes them, by Spark's own functions from the number of an event: of 50 events one
is a person, three are auctions and 46 are bids; every second bid is for the hot auction, the others for one of the last
hundred; three of four bidders are the hot one; prices are 10^(6 u + 2) cents; channel and URL are one of four in every
second bid; `extra` fills a bid up to about 100 bytes. Random numbers are hashes of that number.

    python benchmarks/nexmark_q13.py
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from nexmark_flink import NexmarkOnFlink

import semistream as ss
from semistream.core.budget import parse_bytes
from semistream_lab.peers.peer_session import peers_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SIDE = pa.schema([pa.field("key", pa.int64(), nullable=False), pa.field("value", pa.string())])
_BUILT_AT_ONCE = 1 << 20
_BASE_TIME_MS, _EVENTS_PER_MS = 1_436_918_400_000, 10


def main() -> None:
    """Measure all queries in turns, and print the ratios."""
    options = _options()
    with (
        tempfile.TemporaryDirectory(prefix="semistream-benchmark-") as folder,
        _flink(options) as flink,
        peers_session(options.cores, options.memory) as spark,
    ):
        queries = [_Query(spark, Path(folder), options, "q0", None)]
        for rows in options.side_rows:
            queries.append(_Query(spark, Path(folder), options, "q13 by enrich", rows))
            if options.spark:
                queries.append(_Query(spark, Path(folder), options, "q13 by Spark's join", rows))
        times: dict[_Query, list[float]] = {query: [] for query in queries}
        others: dict[str, list[float]] = {}
        for turn in range(options.turns):
            for query in queries:
                times[query] += query.run(options.batches, options.dropped)
                print(f"turn {turn + 1}, {query.shown}: {1000 * median(times[query]):,.0f} ms", flush=True)
            for rows in [None, *options.side_rows] if flink is not None else []:
                assert flink is not None
                shown = "q0 by Flink" if rows is None else f"q13 by Flink, R = {rows:,}"
                others.setdefault(shown, []).append(flink.rate(rows, options.flink_warm, options.flink_seconds))
                print(f"turn {turn + 1}, {shown}: {others[shown][-1]:,.0f} bids/s", flush=True)
        print()
        _show({query.shown: options.batch_rows / median(found) for query, found in times.items()})
        _show({shown: median(found) for shown, found in others.items()})


def _show(rates: dict[str, float]) -> None:
    """Print rates, the first of which is that of q0."""
    for shown, rate in rates.items():
        print(f"{shown:<45} {rate:>12,.0f} bids/s   {rate / next(iter(rates.values())):.2f} of q0")


@contextmanager
def _flink(options: argparse.Namespace) -> Iterator[NexmarkOnFlink | None]:
    installation = NexmarkOnFlink.installed()
    if isinstance(installation, str):
        print(f"without Flink: {installation}", flush=True)
        yield None
        return
    flink = NexmarkOnFlink(installation, options.cores, parse_bytes(options.memory), _BASE_TIME_MS)
    try:
        for rows in options.side_rows:
            flink.fill(rows)
        yield flink
    finally:
        flink.close()


def bids(events: DataFrame) -> DataFrame:
    """Return the bid for each `value`, the number of a bid."""
    epoch, within = "(value div 46)", "value % 46"
    last_auction, last_person = f"({epoch} * 3 + 2)", epoch
    hot_auction = f"({last_auction} div 100) * 100"
    oldest = f"greatest({last_auction} - 100, 0)"
    other_auction = f"{oldest} + {_random(2)} % ({last_auction} - {oldest} + 11)"
    hot_bidder = f"({last_person} div 100) * 100 + 1"
    active = f"least({last_person}, 1000)"
    other_bidder = f"{last_person} - {active} + {_random(4)} % ({active} + 11)"
    channels = "array('Google', 'Facebook', 'Baidu', 'Apple')"
    is_hot = f"{_random(6)} % 2 = 0"
    return events.selectExpr(
        f"1000 + IF({_random(1)} % 2 > 0, {hot_auction}, {other_auction}) AS auction",
        f"1000 + IF({_random(3)} % 4 > 0, {hot_bidder}, {other_bidder}) AS bidder",
        f"CAST(pow(10D, {_random(5)} % 1000000 / 1000000D * 6) * 100 AS BIGINT) AS price",
        f"IF({is_hot}, element_at({channels}, CAST(1 + {_random(7)} % 4 AS INT)), "
        f"concat('channel-', {_random(7)} % 10000)) AS channel",
        f"concat('https://www.nexmark.com/', hex(IF({is_hot}, {_random(7)} % 4, {_random(8)} % 100000)), "
        "'/item.htm?query=1') AS url",
        f"timestamp_millis({_BASE_TIME_MS} + ({epoch} * 50 + 4 + {within}) div {_EVENTS_PER_MS}) AS dateTime",
        f"substr(hex(xxhash64(value, 9)), 1, CAST({_random(9)} % 16 AS INT)) AS extra",
    )


def _random(seed: int) -> str:
    """Return a random number that is not negative, as SQL."""
    return f"(xxhash64(value, {seed}) & 9223372036854775807)"


@dataclass(eq=False)
class _Query:
    """A query that goes on where it was stopped."""

    spark: SparkSession
    folder: Path
    options: argparse.Namespace
    name: str
    side_rows: int | None

    def __post_init__(self) -> None:
        self.shown = self.name if self.side_rows is None else f"{self.name}, R = {self.side_rows:,}"
        self._state = self.folder / self.shown.replace(" ", "-").replace("'", "")

    def run(self, batches: int, dropped: int) -> list[float]:
        """Run so many micro-batches after some that do not count, and return their times."""
        writer = self._rows().writeStream.format("noop").option("checkpointLocation", str(self._state))
        query = writer.start()
        try:
            while True:
                assert query.isActive, query.exception()
                done = query.recentProgress
                if len(done) >= batches + dropped:
                    return [batch["durationMs"]["triggerExecution"] / 1000 for batch in done[dropped:][:batches]]
                time.sleep(0.1)
        finally:
            query.stop()

    def _rows(self) -> DataFrame:
        source = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.options.batch_rows)
        bid = bids(source.option("numPartitions", self.options.cores).load())
        if self.side_rows is None:
            return bid.select("auction", "bidder", "price", "dateTime", "extra")
        keyed = bid.selectExpr("auction", "bidder", "price", "dateTime", f"auction % {self.side_rows} AS key")
        wanted = ["auction", "bidder", "price", "dateTime", "value"]
        if self.name.endswith("enrich"):
            return ss.enrich(keyed, self._table(), on="key", how="inner", memory=self.options.memory).select(wanted)
        return keyed.join(self.spark.read.parquet(str(self._file())), "key").select(wanted)

    def _table(self) -> ss.MasterTable:
        path = self.folder / f"side-{self.side_rows}"
        if path.exists():
            return ss.MasterTable(path)
        return ss.MasterTable.build(self._file(), path, key="key")

    def _file(self) -> Path:
        assert self.side_rows is not None
        file = self.folder / f"side-{self.side_rows}.parquet"
        if not file.exists():
            with pq.ParquetWriter(file, _SIDE) as writer:
                for batch in _side_input(self.side_rows):
                    writer.write_batch(batch)
        return file


def _side_input(rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, _BUILT_AT_ONCE):
        keys = np.arange(first, min(first + _BUILT_AT_ONCE, rows))
        values: Any = pa.array(keys).cast(pa.string())
        yield pa.record_batch([pa.array(keys), values], schema=_SIDE)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side-rows", type=int, nargs="+", default=[10_000, 10_000_000])
    parser.add_argument("--batch-rows", type=int, default=500_000)
    parser.add_argument("--memory", default="64MB")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--dropped", type=int, default=5)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--flink-warm", type=float, default=20, help="seconds before a measurement of Flink")
    parser.add_argument("--flink-seconds", type=float, default=20)
    parser.add_argument("--spark", action="store_true", help="measure Spark's own join, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
