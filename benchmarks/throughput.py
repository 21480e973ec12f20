"""Measures how fast the engine is where neither disk nor stream is the limit.

The master table is in memory (R rows of 100 bytes of payload), keys are drawn before the clock starts (Zipf). Three
things are measured after the warm-up: keys joined per second, stream rows with their payload gathered into Arrow
batches per second, and how many cores a join keeps busy. CPU seconds are given beside wall seconds, because a shared
machine stretches the latter.

    python benchmarks/throughput.py --algorithm hybridjoin,cachejoin,p-cachejoin,op-cachejoin --memory 50MB
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from semistream.algorithms.registry import algorithm_named
from semistream.core.arrays import Int64Array
from semistream.core.budget import MemoryBudget
from semistream.core.clock import WallClock
from semistream.engine.assembly import Assembly
from semistream.engine.phases.stream_input import KeyInput
from semistream.generator import ZipfKeys
from semistream.joining import join
from semistream.store.contract import MasterStore
from semistream.store.memory import MemoryStore

BATCH_ROWS = 65_536
WARM_UP_SHARE = 0.3


def master(rows: int, *, strings: bool) -> MemoryStore:
    """Return a table of consecutive keys with 100 bytes of payload, as one string or of fixed width."""
    noise = np.random.default_rng(7).integers(33, 126, rows * 100, dtype=np.uint8)
    if strings:
        offsets = pa.py_buffer(np.arange(0, rows * 100 + 1, 100, dtype=np.int32))
        payload = pa.Array.from_buffers(pa.string(), rows, [None, offsets, pa.py_buffer(noise)])
    else:
        payload = pa.Array.from_buffers(pa.binary(100), rows, [None, pa.py_buffer(noise)])
    keys = np.arange(1, rows + 1, dtype=np.int64)
    return MemoryStore(pa.table({"key": keys, "payload": payload}), "key", rows_per_page=72, row_bytes=112)


def join_keys(store: MasterStore, algorithm: str, memory: str, keys: Int64Array) -> dict[str, float]:
    """Join bare keys and return the rates after the warm-up."""
    clock = WallClock()
    assembly = Assembly(algorithm_named(algorithm), store, MemoryBudget(memory), clock)
    size = assembly.sizes.chunk_rows
    chunks = ((keys[start : start + size], None) for start in range(0, len(keys), size))
    loop, _ = assembly.start(lambda reader: KeyInput(chunks, reader.locate, clock))
    return _rates(_counts(loop.rounds(), assembly), len(keys))


def _counts(rounds: Iterator[None], assembly: Assembly) -> Iterator[int]:
    for _ in rounds:
        yield assembly.stats.tuples_out


def join_rows(store: MasterStore, algorithm: str, memory: str, keys: Int64Array) -> dict[str, float]:
    """Join stream rows of 20 bytes and return the rates after the warm-up."""
    number = np.arange(len(keys), dtype=np.int64)
    stream = pa.table({"key": keys, "number": number, "quantity": (number % 7).astype(np.int32)})
    batches = stream.to_batches(max_chunksize=BATCH_ROWS)
    joined = join(batches, store, on="key", algorithm=algorithm, memory=memory)
    out = 0

    def counts() -> Iterator[int]:
        nonlocal out
        for batch in joined:
            out += batch.num_rows
            yield out

    return _rates(counts(), len(keys))


def _rates(counts: Iterator[int], total: int) -> dict[str, float]:
    started: tuple[int, float, float] | None = None
    done = 0
    for done in counts:
        if started is None and done >= WARM_UP_SHARE * total:
            started = done, time.perf_counter(), time.process_time()
    assert started is not None
    wall, cpu = time.perf_counter() - started[1], time.process_time() - started[2]
    joined = done - started[0]
    return {
        "tuples": joined,
        "per_wall_second": round(joined / wall),
        "per_cpu_second": round(joined / cpu),
        "cores": round(cpu / wall, 2),
    }


def main() -> None:
    """Print one line of JSON for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithm", default="hybridjoin,cachejoin,p-cachejoin,op-cachejoin")
    parser.add_argument("--memory", default="50MB")
    parser.add_argument("--master-rows", type=int, default=2_000_000)
    parser.add_argument("--tuples", type=int, default=20_000_000)
    parser.add_argument("--zipf", type=float, default=1.0)
    parser.add_argument("--ranks", default="shuffled", choices=["sorted", "shuffled"])
    options = parser.parse_args()
    keys = ZipfKeys(options.master_rows, options.zipf, seed=1, ranks=options.ranks).draw(options.tuples)
    settings = {"memory": options.memory, "master_rows": options.master_rows, "zipf": options.zipf}
    for payload in ("none", "fixed", "string"):
        store = master(options.master_rows, strings=payload == "string")
        for algorithm in options.algorithm.split(","):
            run = join_keys if payload == "none" else join_rows
            rates = run(store, algorithm, options.memory, keys)
            print(json.dumps({"algorithm": algorithm, "payload": payload, **settings, **rates}), flush=True)


if __name__ == "__main__":
    main()
