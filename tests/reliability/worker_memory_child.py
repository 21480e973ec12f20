"""One enrichment on Spark in a process of its own, whose Python worker the kernel watches.

The worker warms up by a small enrichment of the same kind; then the kernel forgets its high-water mark. How far the
mark is above that base when the large enrichment has ended is what the worker has grown by.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil
from memory_data import build, hottest_key, row_count

ARROW_ROWS = 10_000
ROW_BYTES = {"20 bytes": 20, "200 bytes": 200, "300 kB": 300_000, "one key": 20}
_WARM_UP_BYTES = 4_000_000


@dataclass(frozen=True)
class SparkRun:
    """What is enriched from what, in how much memory."""

    path: str
    table: str
    stream: str
    algorithm: str
    order: str
    memory_bytes: int
    rows: int


def measure(run: SparkRun, timeout_seconds: float = 900, *, again: int = 2) -> dict[str, Any]:
    """Enrich in another process and return its figures; an error is raised here.

    An enrichment for which the worker compiled kernels, because none had needed them before, is done again.
    """
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(asdict(run)),
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"the enrichment failed: {done.stderr.strip()[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if figures["compiled"] and again:  # what the compiler takes is not the join's; next time the kernels are there
        return measure(run, timeout_seconds, again=again - 1)
    return figures


def _enrich(spark: Any, run: SparkRun, dead_letters: str) -> tuple[int, float]:
    import semistream as ss

    keys = row_count(run.table, run.memory_bytes)
    # The key of which the tables with many matches have many rows, or one that has a fat row.
    only = hottest_key(keys, 1.0) if run.table == "hot fat rows" else keys // 2
    key = f"{only}L" if run.stream == "one key" else f"1 + floor(exp(rand(7) * {math.log(keys)}))"
    columns = [f"CAST({key} AS BIGINT) AS key", "id AS number"]
    if ROW_BYTES[run.stream] > 20:
        columns.append(f"repeat('y', {ROW_BYTES[run.stream] - 20}) AS note")
    rows = spark.range(0, run.rows, 1, 1).selectExpr(*columns)
    started = time.perf_counter()
    enriched = ss.enrich(
        rows,
        run.path,
        on="key",
        memory=run.memory_bytes,
        algorithm=run.algorithm,
        order=run.order,
        suffix="_master",
        partitioning="none",
        dead_letters=dead_letters,
    )
    count: int = enriched.selectExpr("count(*) AS n", "sum(number) AS s").collect()[0]["n"]
    return count, time.perf_counter() - started


def _only_worker() -> psutil.Process:
    daemons = [child for java in psutil.Process().children() if "java" in java.name() for child in java.children()]
    (worker,) = [worker for daemon in daemons for worker in daemon.children()]
    return worker


def _high_water(worker: psutil.Process) -> int:
    lines = Path(f"/proc/{worker.pid}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def _compiled_kernels() -> int:
    """Return how many kernels have been compiled so far, by whichever process."""
    import semistream

    folders = [Path(semistream.__file__).parent, *map(Path, filter(None, [os.environ.get("NUMBA_CACHE_DIR")]))]
    return sum(1 for folder in folders for _ in folder.rglob("*.nbc"))


def main() -> None:
    """Do the run that comes as JSON from the input, and print what it took."""
    from semistream.spark.spark_session import make_session

    run = SparkRun(**json.load(sys.stdin))
    before = _compiled_kernels()
    with tempfile.TemporaryDirectory() as folder:
        spark = make_session("memory", "local[1]", memory=run.memory_bytes)
        small = build(run.table, _WARM_UP_BYTES // 10, Path(folder))
        few = min(run.rows, 20 if run.stream == "300 kB" else 2_000)
        warm_up = replace(run, path=str(small), memory_bytes=_WARM_UP_BYTES, rows=few)
        _enrich(spark, warm_up, folder + "/dead")
        worker = _only_worker()
        Path(f"/proc/{worker.pid}/clear_refs").write_text("5")
        base = _high_water(worker)
        count, seconds = _enrich(spark, run, folder + "/dead")
        after = _only_worker()
        assert after.pid == worker.pid, "the worker was replaced"
        grown = _high_water(worker) - base
        spark.stop()
    arrow_bytes = min(ARROW_ROWS * ROW_BYTES[run.stream], min(16_000_000, run.memory_bytes // 4))
    figures = {
        "rows_out": count,
        "seconds": round(seconds, 1),
        "base_bytes": base,
        "grown_bytes": grown,
        "compiled": _compiled_kernels() - before,
        "share": round((grown - 2 * arrow_bytes) / run.memory_bytes, 3),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
