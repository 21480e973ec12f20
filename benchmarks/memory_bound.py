"""Measures from outside whether a join keeps to its memory budget.

For each budget M a master table of ten times M is built on disk, and a process of its own joins a stream with it. This
process samples the resident memory of the other; the most it grows above its baseline (libraries loaded, kernels
compiled, stream generated batch by batch) must stay within 1.15 times M.

    python benchmarks/memory_bound.py --memory 16MB,50MB,250MB --algorithm hybridjoin,cachejoin
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from semistream.core.budget import parse_bytes
from semistream.joining import join
from semistream.store.master_table import MasterTable
from semistream.workload import ZipfKeys

ROW_BYTES = 120
BATCH_ROWS = 10_000
ALLOWED = 1.15


def master_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield master rows of about 120 bytes: a key, numbers and a string."""
    for start in range(0, rows, 100_000):
        count = min(100_000, rows - start)
        keys = np.arange(start + 1, start + count + 1, dtype=np.int64)
        names = pa.array([f"product {key:>80}" for key in keys.tolist()])
        yield pa.record_batch({"key": keys, "supplier": keys % 1000, "price": keys * 0.01, "name": names})


def stream_batches(rows: int, tuples: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield stream rows of 20 bytes."""
    keys = ZipfKeys(rows, 1.0, seed=seed, ranks="shuffled")
    for start in range(0, tuples, BATCH_ROWS):
        drawn = keys.draw(min(BATCH_ROWS, tuples - start))
        number = np.arange(start, start + len(drawn), dtype=np.int64)
        yield pa.record_batch({"key": drawn, "number": number, "quantity": (number % 7).astype(np.int32)})


def child(path: str, algorithm: str, memory: str, rows: int, tuples: int) -> None:
    """Join, after saying that the baseline can be taken."""
    with tempfile.TemporaryDirectory() as folder:
        small = MasterTable.build(master_batches(100_000), Path(folder) / "small", key="key")
        for _ in join(stream_batches(100_000, 4 * BATCH_ROWS, 1), small, on="key", algorithm=algorithm, memory="4MB"):
            pass
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.perf_counter()
    joined = join(stream_batches(rows, tuples, 2), path, on="key", algorithm=algorithm, memory=memory)
    out = sum(batch.num_rows for batch in joined)
    print(json.dumps({"rows_out": out, "seconds": time.perf_counter() - started}), flush=True)
    sys.stdin.readline()


def measure(path: str, algorithm: str, memory: str, rows: int, tuples: int) -> dict[str, object]:
    """Run the child and sample it until it is done."""
    command = [sys.executable, __file__, "--child", path, algorithm, memory, str(rows), str(tuples)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018
        process.stdout.readline()
        watched = psutil.Process(process.pid)
        baseline = peak = watched.memory_info().rss
        process.stdin.write("go\n")
        process.stdin.flush()
        while True:
            time.sleep(0.005)
            peak = max(peak, watched.memory_info().rss)
            if watched.status() == psutil.STATUS_SLEEPING and _has_line(process.stdout):
                break
        result = json.loads(process.stdout.readline())
        process.stdin.write("done\n")
        process.stdin.flush()
    budget = parse_bytes(memory)
    return {
        "algorithm": algorithm,
        "memory_bytes": budget,
        "master_bytes": rows * ROW_BYTES,
        "tuples": tuples,
        "baseline_bytes": baseline,
        "grown_bytes": peak - baseline,
        "share_of_budget": round((peak - baseline) / budget, 3),
        "kept": peak - baseline <= ALLOWED * budget,
        **result,
    }


def _has_line(stream: object) -> bool:
    import select

    return bool(select.select([stream], [], [], 0)[0])


def main() -> None:
    """Print one line of JSON for each run."""
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        path, algorithm, memory, rows, tuples = sys.argv[2:]
        child(path, algorithm, memory, int(rows), int(tuples))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", default="16MB,50MB,250MB")
    parser.add_argument("--algorithm", default="hybridjoin,cachejoin")
    parser.add_argument("--tuples", type=int, default=3_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for memory in options.memory.split(","):
            rows = 10 * parse_bytes(memory) // ROW_BYTES
            path = str(Path(folder) / f"master-{memory}")
            MasterTable.build(master_batches(rows), path, key="key")
            for algorithm in options.algorithm.split(","):
                print(json.dumps(measure(path, algorithm, memory, rows, options.tuples)), flush=True)


if __name__ == "__main__":
    main()
