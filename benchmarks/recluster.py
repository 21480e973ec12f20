"""Measures on the model clock what a master table in the order of its use saves, and what its index takes.

A table is joined three times with the same algorithm: shuffled (hot rows all over it), reclustered (by counts of a
sample of the stream, drawn before the measurement), and sorted by the true frequencies, which nobody knows. What the
index of the reclustered table takes more than that of the others is taken from its memory.

    python benchmarks/recluster.py --rows 2000000 --memory 50MB --sample 4000000
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import parse_bytes
from semistream.core.costs import profile_named
from semistream.generator import Workload, ZipfKeys
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream_lab.measurement import measure

PAYLOAD_BYTES = 112
"""With the key, rows have the 120 bytes of the papers."""
_ROWS_AT_ONCE = 1 << 16


def main() -> None:
    """Print one line of JSON for each join."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--memory", default="50MB")
    parser.add_argument("--exponent", type=float, default=1.0)
    parser.add_argument("--sample", type=int, default=4_000_000, help="tuples that are counted before the table is put")
    parser.add_argument("--kept-keys", type=int, help="only the most frequent keys of the sample, as caches save them")
    parser.add_argument("--page-bytes", type=int, default=8192)
    parser.add_argument("--algorithm", default="optimised-x-hybridjoin,x-hybridjoin-tuned,hybridjoin,demandjoin")
    parser.add_argument("--index-memory", help="what the map of hot keys may take; by default half of the keys are hot")
    parser.add_argument("--read-bytes", type=int, help="of HYBRIDJOIN and its relatives, instead of the papers'")
    parser.add_argument("--profile", default="papers")
    parser.add_argument("--tuples", type=int, default=1_000_000)
    parser.add_argument("--queues", type=float, default=4.0)
    parser.add_argument("--max-tuples", type=int, default=20_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = MasterTable.build(_rows(options.rows), Path(folder) / "master", "key", page_bytes=options.page_bytes)
        table.recluster(_counts(options), index_memory=options.index_memory, memory="1GB")
        _report(table, options)


def _report(table: MasterTable, options: argparse.Namespace) -> None:
    with table.open(1) as plain, table.open(2) as by_use:
        more_bytes = by_use.index_bytes - plain.index_bytes
        by_use_facts = table.info(2)["by_use"]
        print(
            json.dumps(
                {
                    "rows": plain.row_count,
                    "pages": plain.page_count,
                    "index_bytes": plain.index_bytes,
                    "index_bytes_by_use": by_use.index_bytes,
                    "hot_keys": by_use_facts["keys"],
                    "pages_of_classes": by_use_facts["pages"],
                }
            ),
            flush=True,
        )
        for algorithm in options.algorithm.split(","):
            for order, store, memory in (
                ("shuffled", plain, parse_bytes(options.memory)),
                ("reclustered", by_use, parse_bytes(options.memory) - more_bytes),
                ("sorted", plain, parse_bytes(options.memory)),
            ):
                print(
                    json.dumps(
                        {"algorithm": algorithm, "order": order, **_joined(algorithm, order, store, memory, options)}
                    ),
                    flush=True,
                )


def _joined(
    algorithm: str, order: str, store: MasterStore, memory: int, options: argparse.Namespace
) -> dict[str, float]:
    keys = _keys(options, "sorted" if order == "sorted" else "shuffled")
    keys.seek(options.sample)  # behind the tuples that were counted
    recipe = algorithm_named(algorithm)
    has_reads = options.read_bytes is not None and "read_bytes" in recipe.parameters
    measured = measure(
        recipe,
        store,
        Workload(keys),
        memory=memory,
        tuples=options.tuples,
        queues=options.queues,
        profile=profile_named(options.profile),
        accounting="papers",
        parameters={"read_bytes": options.read_bytes} if has_reads else None,
        max_tuples=options.max_tuples,
    )
    stats = measured.stats
    return {
        "tuples_per_second": round(measured.service_rate),
        "pages_per_1000_tuples": round(1000 * stats.page_reads / stats.tuples_out, 3),
        "requests_per_1000_tuples": round(1000 * stats.read_requests / stats.tuples_out, 3),
        "cache_hit_share": round(stats.cache_hits / stats.tuples_out, 4),
        "tuples": stats.tuples_out,
        "wall_seconds": round(measured.wall_seconds, 1),
    }


def _keys(options: argparse.Namespace, ranks: str) -> ZipfKeys:
    return ZipfKeys(options.rows, options.exponent, seed=1, ranks="sorted" if ranks == "sorted" else "shuffled")


def _counts(options: argparse.Namespace) -> pa.Table:
    keys, counts = np.unique(_keys(options, "shuffled").draw(options.sample), return_counts=True)
    if options.kept_keys is not None:
        kept = np.argsort(-counts, kind="stable")[: options.kept_keys]
        keys, counts = keys[kept], counts[kept]
    return pa.table({"key": keys, "count": counts})


def _rows(count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, _ROWS_AT_ONCE):
        keys = np.arange(start, min(start + _ROWS_AT_ONCE, count), dtype=np.int64) + 1
        payload = pa.py_buffer(np.zeros(len(keys) * PAYLOAD_BYTES, dtype=np.uint8))
        values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(PAYLOAD_BYTES), len(keys), [None, payload])
        yield pa.record_batch({"key": pa.array(keys), "payload": values})


if __name__ == "__main__":
    main()
