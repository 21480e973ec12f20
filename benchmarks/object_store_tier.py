"""Measures micro-batches with the master table in an object store: with a tier on the local disk, and with none.

An S3 server (moto) on loopback behind a proxy that adds 20 ms to each request and lets 200 MB/s through, both in
processes of their own. A local folder, `disk="2GB"`, `disk="256MB"` and no tier take turns in one session; the first
turn of the large tier is cold. A latency is what a small request takes, measured in the same run.

    make servers
    python benchmarks/object_store_tier.py --master-rows 8000000 --turns 2 --batches 20 --json FILE
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import semistream as ss
from semistream.core.flat_json import Scalar, as_json
from semistream.spark.batch_progress import BatchProgress
from semistream.store.places.choice import place_of
from semistream_lab.cost.machine import this_machine
from semistream_lab.peers.data import PeerData, Situation
from semistream_lab.peers.paged_master import paged_master
from semistream_lab.peers.peer_memory import own_workers
from semistream_lab.peers.peer_session import peers_session
from semistream_lab.peers.spark_stream import spark_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATENCY_SECONDS, BYTES_PER_SECOND = 0.02, 200e6
MAX_COLD_SECONDS, MAX_RATIO, LATENCIES = 5.0, 1.2, 3
BUCKET = "lake"
_COPIED_BYTES = 8 << 20
_STRIDE = 50_000_000  # so that no turn sees the rows of another


def main() -> None:
    """Run all turns and print medians and what was promised."""
    options = _options()
    if options.serve:
        _serve(options.serve)
        return
    rows: list[dict[str, Scalar]] = []
    with tempfile.TemporaryDirectory(prefix="semistream-benchmark-") as temporary, _slow_store(options.server):
        folder = Path(options.data or temporary)
        situation = Situation.of(options.master_rows, options.batch_rows, options.memory, 1.0, options.cores)
        with peers_session(options.cores, options.memory) as spark:
            local = str(paged_master(PeerData(situation, folder), spark))
            remote = f"s3://{BUCKET}/{options.master_rows}"
            _copy(local, remote)
            latency_ms = _latency_ms(remote)
            print(f"a small request takes {latency_ms:.1f} ms")
            contenders = {
                "folder": (local, None),
                "disk=2GB": (remote, "2GB"),
                "disk=256MB": (remote, "256MB"),
                "no tier": (remote, None),
            }
            for turn in range(options.turns):
                for name, (address, disk) in contenders.items():
                    if name not in options.only.split(","):
                        continue
                    count = options.dropped + (options.slow_batches if name == "no tier" else options.batches)
                    batches = _run(spark, situation, address, disk, f"{name}-{turn}", (turn + 1) * _STRIDE, count)
                    rows += [_row(name, turn, batch, options.dropped) for batch in batches]
                    _print(name, turn, [row for row in rows if row["contender"] == name and row["turn"] == turn])
            machine = this_machine(folder)
    _claims(rows, latency_ms)
    if options.json:
        described = [{**row, "latency_ms": latency_ms, **machine} for row in rows]
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
        f"and {total['remote_bytes'] / total['rows']:,.0f} bytes a row; tier {max(_of(rows, 'tier_bytes')) / 1e6:,.0f} MB, "
        f"{total['tier_hits']:,.0f} hits, {total['tier_misses']:,.0f} misses",
        flush=True,
    )


def _claims(rows: list[dict[str, Scalar]], latency_ms: float) -> None:
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
    cold = [row for row in rows if row["contender"] == "disk=2GB" and row["turn"] == 0]
    if cold:
        longest = max(_of(cold, "seconds"))
        print(
            f"longest cold micro-batch {longest:.2f} s; at most 5 s: {'yes' if longest <= MAX_COLD_SECONDS else 'NO'}"
        )
    print(f"(a request took {latency_ms:.1f} ms)")


@contextmanager
def _slow_store(server: str | None) -> Iterator[None]:
    """Run the server and the proxy, and put what reaches them into the environment."""
    from servers.s3 import S3Server
    from servers.server_process import ServerProcess, free_port, server_folder

    command = server or os.environ.get("SEMISTREAM_MOTO_SERVER") or ".servers/moto/bin/moto_server"
    moto = S3Server(free_port(), BUCKET)
    process = ServerProcess([command, "-H", "127.0.0.1", "-p", str(moto.port)], server_folder("s3", None))
    process.start(moto.answers)
    proxy = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(moto.port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert proxy.stdout is not None
        behind = S3Server(int(proxy.stdout.readline()), BUCKET)
        os.environ.update(behind.settings)
        yield
    finally:
        proxy.kill()
        proxy.wait()
        process.stop()


def _serve(target_port: int) -> None:
    from servers.proxy import Proxy

    with Proxy(target_port, LATENCY_SECONDS, BYTES_PER_SECOND, keeps=lambda path: "data-" in path) as proxy:
        print(proxy.port, flush=True)
        while True:
            time.sleep(60)
            proxy.requests.clear()


def _copy(local: str, remote: str) -> None:
    """Put the objects of a table under another address, as they are."""
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2]))
    connection.request("PUT", f"/{BUCKET}")
    connection.getresponse().read()
    source, target = place_of(local), place_of(remote)
    for name in sorted(source.names(), key=lambda name: name.startswith("manifest")):
        if name.startswith(("data-", "index-", "manifest-")):
            copy = target.new_object(name)
            with source.stream(name) as file:
                while block := file.read(_COPIED_BYTES):
                    copy.write(block)
            copy.finish()


def _latency_ms(address: str) -> float:
    place, taken = place_of(address), []
    for _ in range(20):
        began = time.perf_counter()
        place.status("manifest-00000001.json")
        taken.append(1000 * (time.perf_counter() - began))
    return median(taken)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    main()
