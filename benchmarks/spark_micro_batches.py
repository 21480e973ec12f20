"""Measures the claims about micro-batches on Spark with the peers of `semistream lab peers`.

Three comparisons take turns, so that all see the same machine: all peers at a large master table, `enrich` at a small
one, and `enrich` against the identity with large batches. Each ratio is of the medians over all turns.

    python benchmarks/spark_micro_batches.py --master-rows 8000000 --small-master-rows 500000 --json FILE
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from semistream.core.flat_json import Scalar, as_json
from semistream_lab.cost.machine import this_machine
from semistream_lab.peers import peer_results
from semistream_lab.peers.comparison import TurnPlan, compare
from semistream_lab.peers.contract import Bench
from semistream_lab.peers.data import PeerData, Situation
from semistream_lab.peers.peer_session import peers_session
from semistream_lab.peers.peers_by_name import Addresses, chosen_peers

Place = tuple[str, int, int]
"""A peer, the rows of its master table and the rows of a batch."""

_LARGE_BATCHES = "identity,enrich"


def main() -> None:
    """Run all comparisons and print what each ratio should be and is."""
    options = _options()
    settings = {"spark.sql.streaming.checkpointFileManagerClass": options.checkpoints} if options.checkpoints else {}
    rows: list[dict[str, Scalar]] = []
    with tempfile.TemporaryDirectory(prefix="semistream-benchmark-") as temporary:
        folder = Path(options.data or temporary)
        with peers_session(options.cores, options.memory, settings) as spark:
            for turn in range(options.turns):
                for names, master_rows, batch_rows in _comparisons(options):
                    situation = Situation.of(master_rows, batch_rows, options.memory, 1.0, options.cores)
                    plan = TurnPlan(1, options.batches, options.slow_batches, options.dropped)
                    peers = chosen_peers(names, Addresses()).peers
                    compared = compare(peers, Bench(PeerData(situation, folder), spark), plan, lambda *_: None)
                    for name, error in compared.failures.items():
                        print(f"{name}: {error}")
                    rows += peer_results.rows(compared.results, this_machine(folder), spark.version)
                    for result in compared.results:
                        place = f"{result.peer}, {master_rows:,} master rows, {batch_rows:,} a batch"
                        print(f"turn {turn + 1}: {place}: {result.median_ms:,.0f} ms, addBatch {result.add_batch_ms}")
    for claim in _claims(rows, options):
        print(claim)
    if options.json:
        Path(options.json).write_text(as_json(rows), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master-rows", type=int, default=8_000_000)
    parser.add_argument("--small-master-rows", type=int, default=500_000)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--large-batch-rows", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=20, help="measured batches of a turn")
    parser.add_argument("--slow-batches", type=int, default=5, help="measured batches of a turn of Spark's own joins")
    parser.add_argument("--dropped", type=int, default=10, help="first batches of a turn that do not count")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--memory", default="64MB")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default="identity,enrich,native,broadcast,cached", help="at the large master table")
    parser.add_argument("--checkpoints", help="a class that writes checkpoints, in place of Spark's default")
    parser.add_argument("--data", help="folder to keep the master tables in")
    parser.add_argument("--json")
    return parser.parse_args()


def _comparisons(options: argparse.Namespace) -> list[tuple[str, int, int]]:
    """Return the names of the peers, the rows of the master table and the rows of a batch."""
    return [
        (options.only, options.master_rows, options.batch_rows),
        ("enrich", options.small_master_rows, options.batch_rows),
        (_LARGE_BATCHES, options.master_rows, options.large_batch_rows),
    ]


def _claims(rows: list[dict[str, Scalar]], options: argparse.Namespace) -> Iterator[str]:
    times: dict[Place, list[float]] = defaultdict(list)
    for row in rows:
        assert isinstance(row["median_ms"], float)
        times[str(row["peer"]), int(row["master_rows"] or 0), int(row["batch_rows"] or 0)].append(row["median_ms"])

    def ratio(text: str, above: Place, below: Place, limit: float, *, least: bool) -> Iterator[str]:
        if above in times and below in times:
            value = median(times[above]) / median(times[below])
            kept = value >= limit if least else value <= limit
            yield f"{text}: {value:.2f} ({'at least' if least else 'at most'} {limit}: {'yes' if kept else 'NO'})"

    large, small, batch, large_batch = (
        options.master_rows,
        options.small_master_rows,
        options.batch_rows,
        options.large_batch_rows,
    )
    ours = ("enrich", large, batch)
    identity, many = ("identity", large, batch), ("identity", large, large_batch)
    yield from ratio("faster than the native left join", ("native", large, batch), ours, 15, least=True)
    yield from ratio("faster than broadcast(stream)", ("broadcast", large, batch), ours, 2.5, least=True)
    yield from ratio("faster than the cached master", ("cached", large, batch), ours, 2.5, least=True)
    yield from ratio("against the identity", ours, identity, 1.15, least=False)
    yield from ratio("large against small master", ours, ("enrich", small, batch), 1.15, least=False)
    yield from ratio("rows per second of the identity", many, ("enrich", large, large_batch), 0.72, least=True)


if __name__ == "__main__":
    main()
