"""Measures the sustainable rate of the retail pipeline (examples/retail), and how long orders take at that rate.

A rate is sustained if the backlog grows by at most 1% of the load while orders arrive for `--length` seconds: its
slope, by least squares, is compared with the rate. A search with `--scout` seconds a rate comes first: the rate is
doubled until it is no longer sustained, then searched between the two. What it has found is measured for the whole
length, and a tenth less for as long as that is not sustained. Between two rates the backlog is worked off, so that
every rate begins with none. The pipeline runs all the time, with the mirror of customers refreshed every two seconds
while 230 of them change a second.

The latency of an order is from the time at which Kafka's producer stamps it to the commit of Delta that has it, by the
time of the commit's file; all orders count that were committed while the rate was measured.

Orders are made by a Spark process of its own (`--load`), which needs far less processor time for a message than a
client in Python; it shares the machine with servers and pipeline.

    python benchmarks/retail_rate.py
    python benchmarks/retail_rate.py --length 20 --scout 5 --first 1000 --steps 1     # short
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from kafka import KafkaConsumer, TopicPartition

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "retail"))

from driver import Driver
from screen import Screen
from shop import CUSTOMERS, PRODUCTS, TOPIC
from shop_servers import PARTITIONS, PIPELINE, ShopServers
from warehouse import Statistics, Warehouse

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SLOPE = 0.01
_WARM_SECONDS = 10.0
_MAX_SECONDS = 1800.0
_CLOSE_ENOUGH = 1.1
_MAX_CONFIRMED = 4


@dataclass(frozen=True)
class Measured:
    """What a rate has shown."""

    rate: int
    sent_per_second: float
    slope_per_second: float
    """How fast the backlog grew."""
    sustained: bool
    p50_seconds: float
    p99_seconds: float
    orders: int


def main() -> None:
    """Search the rate, and say what it is."""
    options = _options()
    if options.load is not None:
        _make_orders(options.load)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers have to be stopped then, too
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="semistream-retail-")))
        rates = stack.enter_context(_Rates.opened(folder, options.first))
        scouted = _searched(rates, options.first, options.steps, options.scout)
        found = _confirmed(rates, max((each.rate for each in scouted if each.sustained), default=0), options.length)
    if not found or not found[-1].sustained:
        sys.exit(f"{(found or scouted)[-1].rate:,} orders a second are not sustained: begin with less, by --first.")
    best = found[-1]
    print(f"\nsustained: {best.rate:,} orders a second; event to commit: {_latency(best)}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in [*scouted, *found]], indent=1) + "\n")


def _confirmed(rates: _Rates, rate: int, length: float) -> list[Measured]:
    """Measure a rate for the whole length, and a tenth less until one is sustained."""
    found: list[Measured] = []
    while rate and len(found) < _MAX_CONFIRMED:
        found.append(rates.measure(rate, length))
        if found[-1].sustained:
            break
        rate = rate * 9 // 10
    return found


def _searched(rates: _Rates, first: int, steps: int, length: float) -> list[Measured]:
    """Double the rate until it is too much, then halve the distance, so many times."""
    low, high, rate = 0, 0, first
    found: list[Measured] = []
    for _ in range(steps):
        found.append(rates.measure(rate, length))
        if found[-1].sustained:
            low = rate
        else:
            high = rate
        if not low or (high and high / low < _CLOSE_ENOUGH):
            if not low and rate > 1:
                rate = max(1, rate // 2)
                continue
            break
        rate = low * 2 if not high else (low + high) // 2
    return found


class _Rates:
    """The running pipeline, to which orders come at one rate after the other."""

    def __init__(self, folder: Path, servers: ShopServers, driver: Driver) -> None:
        self._folder = folder
        self._servers = servers
        self._driver = driver
        self._warehouse = Warehouse(folder / "warehouse" / "orders")
        self._statistics = Statistics(folder / "state" / "statistics.jsonl")
        self._consumer = KafkaConsumer(bootstrap_servers=servers.kafka.servers)
        self._partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, first: int) -> Iterator[_Rates]:
        """Start servers and pipeline, and let customers change."""
        with ShopServers(Screen()) as servers, ExitStack() as stack:
            shutil.copy(PIPELINE, folder / PIPELINE.name)
            driver = Driver(folder / PIPELINE.name, folder / "pipeline.log", servers.environment)
            stack.callback(driver.kill)
            stack.enter_context(_customers_change(servers))
            rates = cls(folder, servers, driver)
            print(f"\nWarming up with {first:,} orders a second.", flush=True)
            with rates._load(first):
                rates._until(lambda: rates._warehouse.rows > 0, "the first orders")
                rates._sleep(_WARM_SECONDS)
            rates._drain()
            yield rates

    def measure(self, rate: int, length: float) -> Measured:
        """Let orders come at a rate for so many seconds, and return what it has shown."""
        with self._load(rate) as load:
            before = self._sent()
            self._until(lambda: self._sent() > before, "orders", load)
            self._sleep(_WARM_SECONDS, load)
            began, moments, sent, backlog = time.time(), [], [], []
            while time.time() < began + length:
                self._check(load)
                self._look()
                count = self._sent()
                moments.append(time.time() - began)
                sent.append(count)
                backlog.append(count - self._warehouse.rows - self._statistics.sum("parked"))
                time.sleep(0.5)
            ended = time.time()
        slope = float(np.polyfit(moments, backlog, 1)[0])
        came = (sent[-1] - sent[0]) / (moments[-1] - moments[0])
        latencies = self._latencies(began, ended)
        p50, p99 = np.quantile(latencies, (0.5, 0.99)) if len(latencies) else (np.inf, np.inf)
        # A load that the machine cannot make is not sustained, either.
        sustained = slope <= MAX_SLOPE * rate and came >= 0.95 * rate
        measured = Measured(rate, came, slope, sustained, float(p50), float(p99), len(latencies))
        print(
            f"{rate:>8,}: {came:,.0f} came, backlog {slope:+,.0f} a second, {_latency(measured)}: "
            f"{'sustained' if sustained else 'NOT sustained'}",
            flush=True,
        )
        self._drain()
        return measured

    def _latencies(self, began: float, ended: float) -> np.ndarray[Any, Any]:
        """Return how long each order took that was committed between two moments."""
        found = []
        for batch, moment in self._warehouse.commits.items():
            if began <= moment <= ended:
                for name in self._warehouse.files[batch]:
                    rows = pq.read_table(self._warehouse.folder / name, columns=["ordered_at"], partitioning=None)
                    stamped = rows["ordered_at"].to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6
                    found.append(moment - stamped)
        return np.concatenate(found) if found else np.empty(0)

    @contextmanager
    def _load(self, rate: int) -> Iterator[subprocess.Popen[bytes]]:
        """Let orders come while the block runs."""
        log = self._folder / "load.log"
        with log.open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, __file__, "--load", str(rate)],
                env=self._servers.environment,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
            )
        try:
            yield process
        finally:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _sent(self) -> int:
        """Return how many orders Kafka has."""
        return sum(self._consumer.end_offsets(self._partitions).values())

    def _drain(self) -> None:
        """Wait until nothing is left but what is parked."""

        def is_empty() -> bool:
            return self._sent() <= self._warehouse.rows + self._statistics.sum("parked")

        self._until(is_empty, "the end of the backlog")

    def _until(self, reached: Any, what: str, load: subprocess.Popen[bytes] | None = None) -> None:
        limit = time.monotonic() + _MAX_SECONDS
        while True:
            self._look()
            if reached():
                return
            self._check(load)
            if time.monotonic() > limit:
                sys.exit(f"Waiting for {what} took more than {_MAX_SECONDS:g} seconds.")
            time.sleep(0.2)

    def _sleep(self, seconds: float, load: subprocess.Popen[bytes] | None = None) -> None:
        end = time.monotonic() + seconds
        self._until(lambda: time.monotonic() >= end, "", load)

    def _check(self, load: subprocess.Popen[bytes] | None) -> None:
        if self._driver.has_ended:
            sys.exit(f"The pipeline has ended: {self._driver.said()[-2000:]}")
        if load is not None and load.poll() is not None:
            sys.exit(f"The load has ended: {(self._folder / 'load.log').read_text(errors='replace')[-2000:]}")

    def _look(self) -> None:
        self._warehouse.look()
        self._statistics.look()


@contextmanager
def _customers_change(servers: ShopServers) -> Iterator[None]:
    """Change customers ten times a second while the block runs."""
    stop = threading.Event()

    def change() -> None:
        while not stop.wait(0.1):
            servers.customers.change()

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _make_orders(rate: int) -> None:
    """Send orders of known customers and products, some far more often than others, until standard input ends."""
    from pyspark.sql import functions as F  # noqa: N812

    from semistream.pipeline.jars import settings_with_jars
    from semistream.spark.spark_session import make_session

    with tempfile.TemporaryDirectory(prefix="semistream-load-") as folder:
        settings = settings_with_jars({"kafka"}, {"spark.ui.enabled": "false", "spark.driver.memory": "512m"})
        spark = make_session("load", "local[1]", settings)
        ticks = spark.readStream.format("rate").options(rowsPerSecond=rate, numPartitions=1).load()
        uniform = "pmod(xxhash64(value, {seed}), 1000003) / 1000003D"
        favourite = "CAST(pow({count}D, {uniform}) AS BIGINT) - 1"
        customer = favourite.format(count=CUSTOMERS, uniform=uniform.format(seed=1))
        product = favourite.format(count=PRODUCTS, uniform=uniform.format(seed=2))
        orders = ticks.selectExpr(
            "value AS order_id",
            f"{customer} AS customer_id",
            f"format_string('SKU-%07d', pmod(({product}) * 7919, {PRODUCTS})) AS sku",
            "CAST(1 + value % 4 AS INT) AS quantity",
        )
        messages = orders.select(F.to_json(F.struct("*")).alias("value"))
        writer = messages.writeStream.format("kafka").option("topic", TOPIC)
        writer = writer.option("kafka.bootstrap.servers", os.environ["KAFKA_SERVERS"])
        query = writer.option("checkpointLocation", folder).trigger(processingTime="1 second").start()
        sys.stdin.read()
        query.stop()
        spark.stop()


def _latency(measured: Measured) -> str:
    return f"p50 {measured.p50_seconds:.1f} s, p99 {measured.p99_seconds:.1f} s"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=float, default=120, help="how long the rate is measured, in seconds")
    parser.add_argument("--scout", type=float, default=30, help="seconds a rate of the search that comes first")
    parser.add_argument("--first", type=int, default=2_000, help="the rate to begin with, in orders a second")
    parser.add_argument("--steps", type=int, default=9, help="at most so many rates")
    parser.add_argument("--json", type=Path, help="write what was measured, as a list of flat objects")
    parser.add_argument("--load", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
