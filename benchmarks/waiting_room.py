"""Measures what a waiting room changes: requests a row, latency, and the rate that a short trigger keeps up with.

The master table is in an S3 server (moto) on loopback, behind a proxy that adds 20 ms to each request and lets 200 MB/s
through. Three ways take turns in one session: a trigger of 1 s, one of 10 s, and one of 1 s with a room in which rows
wait for up to 10 s. The latency of a row is the time from its event to the end of the micro-batch with which it leaves.

    make servers
    python benchmarks/waiting_room.py --master-rows 8000000 --rate 10000 --seconds 60 --turns 2
    python benchmarks/waiting_room.py --master-rows 8000000 --ramp 320 --rate 40000

With `--ramp` the rate rises from nothing to `--rate` within so many seconds, once for each of the ways with a trigger
of 1 s: a way keeps up as long as within half a minute nine of ten seconds see a micro-batch begin.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F  # noqa: N812
from slow_store import BUCKET, copied, latency_ms, served, slow_store, taken_by_proxy

import semistream as ss
from semistream.core.flat_json import Scalar, as_json
from semistream_lab.peers.data import PeerData, Situation
from semistream_lab.peers.paged_master import paged_master
from semistream_lab.peers.peer_session import peers_session
from semistream_lab.peers.spark_stream import spark_key
from semistream_lab.python_workers import own_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_REQUESTS, MAX_LATENCY, MIN_RATE = 1.2, 1 / 3, 1.5
_QUANTILES = [number / 100 for number in range(101)]
_WINDOW_SECONDS, _BEGUN = 30.0, 0.9


@dataclass(frozen=True)
class Way:
    """A trigger, and how long rows may wait."""

    name: str
    trigger_seconds: float
    max_wait: str | None = None


WAYS = (Way("1 s", 1.0), Way("10 s", 10.0), Way("1 s, room of 10 s", 1.0, "10 seconds"))


def main() -> None:
    """Run all turns, and print medians and what was promised."""
    options = _options()
    if options.serve:
        served(options.serve)
        return
    rows: list[dict[str, Scalar]] = []
    with tempfile.TemporaryDirectory(prefix="semistream-benchmark-") as temporary, slow_store(__file__, options.server):
        folder = Path(options.data or temporary)
        situation = Situation.of(options.master_rows, 10_000, options.memory, 1.0, options.cores)
        with peers_session(options.cores, options.memory) as spark:
            remote = f"s3://{BUCKET}/{options.master_rows}"
            copied(str(paged_master(PeerData(situation, folder), spark)), remote)
            taken_by_proxy(remote)
            print(f"a small request takes {latency_ms(remote):.1f} ms", flush=True)
            run = _Run(spark, situation, remote)
            if options.ramp:
                _ramped(run, options)
                return
            for turn in range(options.turns):
                for way in WAYS:
                    row = run.measured(way, options.rate, options.seconds + way.trigger_seconds * 2)
                    rows.append({**row, "turn": turn})
                    print(f"turn {turn + 1}, {way.name}: {_shown(row)}", flush=True)
    _claims(rows)
    if options.json:
        Path(options.json).write_text(as_json(rows), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master-rows", type=int, default=8_000_000)
    parser.add_argument("--rate", type=int, default=10_000, help="rows a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long a way is measured in a turn")
    parser.add_argument("--ramp", type=int, help="find the rate that a trigger keeps, by one that rises for so long")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--memory", default="64MB")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--data", help="folder to keep the master table in")
    parser.add_argument("--server", help="moto_server; by default the one that `make servers` installs")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json")
    return parser.parse_args()


class _Run:
    """Runs queries whose rows come at a rate."""

    def __init__(self, spark: SparkSession, situation: Situation, address: str) -> None:
        self._spark = spark
        self._situation = situation
        self._address = address
        self._first_row = 0

    def measured(self, way: Way, rate: int, seconds: float, warm_seconds: float = 25.0) -> dict[str, Scalar]:
        """Return what the micro-batches after the warm-up have done."""
        reports = self._reports(way, {"rowsPerSecond": rate}, warm_seconds + seconds)
        begin = _seconds(reports[0].timestamp) + warm_seconds
        return _row(way, rate, [report for report in reports if _seconds(report.timestamp) >= begin])

    def kept_rate(self, way: Way, rate: int, ramp_seconds: int) -> float:
        """Return the rate at which micro-batches stop beginning in time, if it rises to `rate`.

        It is the rate in the middle of the first half a minute in which too few begin, less its rise in the wait of a
        room, for all ways alike.
        """
        rising = {"rowsPerSecond": rate, "rampUpTime": f"{ramp_seconds}s"}
        reports = self._reports(way, rising, ramp_seconds)
        begun = np.array([_seconds(report.timestamp) for report in reports])
        begun -= begun[0]
        for report, at in zip(reports, begun, strict=True):
            seconds = report.durationMs["triggerExecution"] / 1000
            passing = f"{at / ramp_seconds * rate:,.0f} rows a second"
            print(f"{way.name}: {passing}, {report.numInputRows:,} rows, {seconds:.2f} s", flush=True)
        firsts = np.arange(_WINDOW_SECONDS, ramp_seconds - _WINDOW_SECONDS, way.trigger_seconds)
        counts = np.searchsorted(begun, firsts + _WINDOW_SECONDS) - np.searchsorted(begun, firsts)
        late = firsts[counts < _BEGUN * _WINDOW_SECONDS / way.trigger_seconds]
        if not len(late):
            return float(rate)
        return float(late[0] + _WINDOW_SECONDS / 2 - WAYS[1].trigger_seconds) / ramp_seconds * rate

    def _reports(self, way: Way, arriving: dict[str, Any], seconds: float) -> list[Any]:
        """Run a query for so long, and return what Spark says of its micro-batches that had work."""
        self._first_row += 50_000_000
        spark = self._spark
        temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # a query that ends may still write
        with own_workers(spark, f"room-{self._first_row}"), temporary as folder:
            rows = spark.readStream.format("rate").options(**arriving)
            source = rows.option("numPartitions", self._situation.cores).load()
            key = spark_key(F.col("value") + F.lit(self._first_row), self._situation)
            room: dict[str, Any] = {"room": f"{folder}/room", "max_wait": way.max_wait} if way.max_wait else {}
            joined = ss.enrich(
                source.select(key.alias("key"), "value", "timestamp"),
                self._address,
                on="key",
                how="left",
                memory=self._situation.memory_bytes,
                name="measured",
                **room,
            )
            moments = F.percentile_approx(F.unix_millis("timestamp"), F.array(*map(F.lit, _QUANTILES)), 10_000)
            counted = joined.observe("events", F.count(F.lit(1)).alias("rows"), moments.alias("moments"))
            writer = counted.writeStream.format("noop").option("checkpointLocation", f"{folder}/state")
            query = writer.trigger(processingTime=f"{way.trigger_seconds} seconds").start()
            try:
                time.sleep(seconds)
                reports = [report for report in query.recentProgress if "addBatch" in report.durationMs]
                if query.exception() is not None:
                    raise SystemExit(f"{way.name} failed: {query.exception()}")
            finally:
                query.stop()
        return reports


def _row(way: Way, rate: int, reports: list[Any]) -> dict[str, Scalar]:
    latencies: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for report in reports:
        events = report.observedMetrics["events"]
        if events["rows"]:
            end = _seconds(report.timestamp) + report.durationMs["triggerExecution"] / 1000
            moments = np.array(events["moments"]) / 1000
            latencies.append(end - (moments[1:] + moments[:-1]) / 2)
            weights.append(np.full(len(moments) - 1, events["rows"]))
    taken, weight = np.concatenate(latencies), np.concatenate(weights)
    order = np.argsort(taken)
    share = np.cumsum(weight[order]) / weight.sum()
    counted = [one for report in reports for one in ss.progress(report)[0].enrichments]
    rows = sum(one.rows_out for one in counted)
    times = [report.durationMs["triggerExecution"] / 1000 for report in reports]
    return {
        "way": way.name,
        "rate": rate,
        "batches": len(reports),
        "rows": rows,
        "median_seconds": median(times),
        "longest_seconds": max(times),
        "in_time": sum(seconds <= way.trigger_seconds for seconds in times) / len(times),
        "requests_a_row": sum(one.remote_requests for one in counted) / max(1, rows),
        "bytes_a_row": sum(one.remote_bytes for one in counted) / max(1, rows),
        "latency_p50": float(taken[order][np.searchsorted(share, 0.5)]),
        "latency_p99": float(taken[order][np.searchsorted(share, 0.99)]),
        "waiting": max((one.waiting for one in counted), default=0),
        "longest_wait_seconds": max((one.max_latency_seconds for one in counted), default=0.0),
    }


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _shown(row: dict[str, Scalar]) -> str:
    return (
        f"{row['batches']} micro-batches of {row['median_seconds']:.2f} s (longest {row['longest_seconds']:.2f}, "
        f"{100 * float(row['in_time'] or 0):.0f}% in time), {row['requests_a_row']:.4f} requests and "
        f"{row['bytes_a_row']:,.0f} bytes a row, latency {row['latency_p50']:.2f} s (p99 {row['latency_p99']:.2f} s), "
        f"{row['waiting']:,} rows wait, at most {row['longest_wait_seconds']:.1f} s"
    )


def _claims(rows: list[dict[str, Scalar]]) -> None:
    def middle(way: Way, field: str) -> float:
        return median(float(row[field] or 0) for row in rows if row["way"] == way.name)

    _, slow, room = WAYS
    requests = middle(room, "requests_a_row") / middle(slow, "requests_a_row")
    latency = middle(room, "latency_p50") / middle(slow, "latency_p50")
    print(f"requests a row, room / 10 s: {requests:.2f} (at most {MAX_REQUESTS}: {_kept(requests <= MAX_REQUESTS)})")
    print(f"median latency, room / 10 s: {latency:.2f} (at most {MAX_LATENCY:.2f}: {_kept(latency <= MAX_LATENCY)})")


def _ramped(run: _Run, options: argparse.Namespace) -> None:
    """Find the rate that a trigger of 1 s keeps up with, without a room and with one."""
    kept = {way.name: run.kept_rate(way, options.rate, options.ramp) for way in (WAYS[0], WAYS[2])}
    for name, rate in kept.items():
        print(f"{name}: keeps up with {rate:,.0f} rows a second")
    ratio = kept[WAYS[2].name] / max(1.0, kept[WAYS[0].name])
    print(f"rate of 1 s with a room / without: {ratio:.2f} (at least {MIN_RATE}: {_kept(ratio >= MIN_RATE)})")


def _kept(kept: bool) -> str:
    return "yes" if kept else "NO"


if __name__ == "__main__":
    main()
