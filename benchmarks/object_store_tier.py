"""Measures micro-batches with the master table in an object store: with a tier on the local disk, and with none.

An S3 server (moto) on loopback behind a proxy that adds 20 ms to each request and lets 200 MB/s through, both in
processes of their own. A local folder, `disk="2GB"`, `disk="256MB"` and no tier take turns in one session. In the first
turn everything is cold, tier and memory, but kernels are compiled and the proxy has the objects in its memory. Pins go
to the server; requests and bytes a row are those for pages.

    make servers
    python benchmarks/object_store_tier.py --master-rows 8000000 --turns 2 --batches 20 --json FILE
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from slow_store import BUCKET, LATENCY_SECONDS, copied, latency_ms, served, slow_store, taken_by_proxy

import semistream as ss
from semistream.core.flat_json import Scalar, as_json
from semistream.spark.batch_progress import BatchProgress
from semistream.store.paged.format.layout import HOT_NAME
from semistream.store.places.choice import place_of
from semistream_lab.cost.machine import this_machine
from semistream_lab.peers.data import PeerData, Situation, master_rows
from semistream_lab.peers.paged_master import paged_master
from semistream_lab.peers.peer_session import peers_session
from semistream_lab.peers.spark_stream import spark_stream
from semistream_lab.python_workers import own_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_COLD_SECONDS, MAX_RATIO, LATENCIES = 5.0, 1.2, 3
_PAUSE_SECONDS = 3.0
"""What a stopped query leaves behind, tasks and workers, must not slow down the first micro-batch of the next."""
_STRIDE = 50_000_000  # so that nobody sees the rows of another, which workers may have saved


def main() -> None:
    """Run all turns and print medians and what was promised."""
    options = _options()
    if options.serve:
        served(options.serve)
        return
    rows: list[dict[str, Scalar]] = []
    with tempfile.TemporaryDirectory(prefix="semistream-benchmark-") as temporary, slow_store(__file__, options.server):
        folder = Path(options.data or temporary)
        situation = Situation.of(options.master_rows, options.batch_rows, options.memory, 1.0, options.cores)
        with peers_session(options.cores, options.memory) as spark:
            local = str(paged_master(PeerData(situation, folder), spark))
            remote = f"s3://{BUCKET}/{options.master_rows}"
            copied(local, remote)
            request_ms = latency_ms(remote)
            _warm_up(spark, situation, remote)
            print(f"a small request takes {request_ms:.1f} ms")
            contenders = {
                "folder": (local, None),
                "disk=2GB": (remote, "2GB"),
                "disk=256MB": (remote, "256MB"),
                "no tier": (remote, None),
            }
            for turn in range(options.turns):
                for place, (name, (address, disk)) in enumerate(contenders.items()):
                    if name not in options.only.split(","):
                        continue
                    if address == remote and not turn:
                        _forget_hot_rows(remote)
                    count = options.dropped + (options.slow_batches if name == "no tier" else options.batches)
                    first_row = (1 + turn * len(contenders) + place) * _STRIDE
                    batches = _run(spark, situation, address, disk, f"{name}-{turn}", first_row, count)
                    rows += [_row(name, turn, batch, options.dropped) for batch in batches]
                    _print(name, turn, [row for row in rows if row["contender"] == name and row["turn"] == turn])
            machine = this_machine(folder)
    _claims(rows, request_ms)
    if options.json:
        described = [{**row, "latency_ms": request_ms, **asdict(machine)} for row in rows]
        Path(options.json).write_text(as_json(described), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master-rows", type=int, default=8_000_000)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=20, help="measured batches of a turn")
    parser.add_argument("--slow-batches", type=int, default=5, help="measured batches of a turn without a tier")
    parser.add_argument("--dropped", type=int, default=10, help="first batches of a turn that do not count when warm")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--memory", default="64MB")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default="folder,disk=2GB,disk=256MB,no tier")
    parser.add_argument("--data", help="folder to keep the master table in")
    parser.add_argument("--server", help="moto_server; by default the one that `make servers` installs")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json")
    return parser.parse_args()


def _run(
    spark: SparkSession,
    situation: Situation,
    address: str,
    disk: str | None,
    name: str,
    first_row: int,
    count: int,
) -> list[BatchProgress]:
    """Run a query in workers of its own, whose caches are empty, and return what its batches have done."""
    with own_workers(spark, name), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        stream = spark_stream(spark, situation, first_row)
        enriched = ss.enrich(
            stream, address, on="key", how="left", memory=situation.memory_bytes, disk=disk, name="measured"
        )
        query = enriched.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        try:
            while query.isActive:
                last = query.lastProgress
                if last is not None and last.batchId + 1 >= count:
                    break
                time.sleep(0.3)
            if query.exception() is not None:
                raise SystemExit(f"{name} failed: {query.exception()}")
            return [batch for batch in ss.progress(query) if batch.rows_in][:count]
        finally:
            query.stop()
            time.sleep(_PAUSE_SECONDS)


def _row(name: str, turn: int, batch: BatchProgress, dropped: int) -> dict[str, Scalar]:
    (counted,) = batch.enrichments
    return {
        "contender": name,
        "turn": turn,
        "batch": batch.batch_id,
        "is_measured": batch.batch_id >= dropped,
        "seconds": batch.seconds,
        "operator_seconds": counted.seconds,
        "rows": counted.tuples_in,
        "cache_hits": counted.cache_hits,
        "remote_requests": counted.remote_requests,
        "remote_bytes": counted.remote_bytes,
        "tier_hits": counted.tier_hits,
        "tier_misses": counted.tier_misses,
        "tier_blocks": counted.tier_blocks,
        "tier_failures": counted.tier_failures,
        "tier_bytes": counted.tier_bytes,
    }


def _of(rows: list[dict[str, Scalar]], field: str) -> list[float]:
    return [float(row[field] or 0) for row in rows]


def _print(name: str, turn: int, rows: list[dict[str, Scalar]]) -> None:
    measured = [row for row in rows if row["is_measured"]]
    total = {field: sum(_of(measured, field)) for field in measured[0] if field not in ("contender", "turn")}
    print(
        f"turn {turn + 1}, {name}: median {1000 * median(_of(measured, 'seconds')):,.0f} ms (operator "
        f"{1000 * median(_of(measured, 'operator_seconds')):,.0f}), first {_of(rows, 'seconds')[0]:.2f} s, longest of "
        f"the others {max(_of(rows, 'seconds')[1:]):.2f} s; {total['remote_requests'] / total['rows']:.4f} requests "
        f"and {total['remote_bytes'] / total['rows']:,.0f} bytes a row; "
        f"tier {max(_of(rows, 'tier_bytes')) / 1e6:,.0f} MB, {total['tier_hits']:,.0f} hits, "
        f"{total['tier_misses']:,.0f} misses",
        flush=True,
    )


def _claims(rows: list[dict[str, Scalar]], request_ms: float) -> None:
    last = max(int(row["turn"] or 0) for row in rows)

    def medians(name: str) -> list[float]:
        chosen = [row for row in rows if row["contender"] == name and row["is_measured"]]
        warm = [row for row in chosen if row["turn"] or not last]
        return [1000 * value for value in _of(warm, "seconds")]

    folder, tier = medians("folder"), medians("disk=2GB")
    if folder and tier:
        limit = MAX_RATIO * median(folder) + LATENCIES * 1000 * LATENCY_SECONDS
        kept = "yes" if median(tier) <= limit else "NO"
        print(f"warm tier {median(tier):,.0f} ms; at most {limit:,.0f} ms ({MAX_RATIO} × folder + 60 ms): {kept}")
    for name in sorted({str(row["contender"]) for row in rows} - {"folder"}):
        cold = [row for row in rows if row["contender"] == name and row["turn"] == 0]
        longest = max(_of(cold, "seconds"))
        kept = "yes" if longest <= MAX_COLD_SECONDS else "NO"
        print(f"longest cold micro-batch, {name}: {longest:.2f} s; at most {MAX_COLD_SECONDS:g} s: {kept}")
    small, none = medians("disk=256MB"), medians("no tier")
    if small and none:
        kept = "yes" if median(small) <= median(none) else "NO"
        print(
            f"a tier of a quarter of the table {median(small):,.0f} ms; at most {median(none):,.0f} ms (none): {kept}"
        )
    print(f"(a request took {request_ms:.1f} ms)")


def _warm_up(spark: SparkSession, situation: Situation, remote: str) -> None:
    """Let kernels be compiled by a small table of the same kind, and the proxy fetch the objects of the large one."""
    small = f"s3://{BUCKET}/small"
    ss.MasterTable.build(master_rows(np.arange(50_000)), small, "key")
    for disk in ("16MB", None):
        _run(spark, replace(situation, master_rows=50_000), small, disk, "small", 0, 4)
    taken_by_proxy(remote)


def _forget_hot_rows(remote: str) -> None:
    """Remove what workers have saved of their caches."""
    place = place_of(remote)
    for name in place.names(HOT_NAME):
        place.remove(f"{HOT_NAME}/{name}")


if __name__ == "__main__":
    main()
