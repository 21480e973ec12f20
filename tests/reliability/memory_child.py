"""One join in a process of its own, whose memory the kernel watches.

The process warms up by a small join of the same kind, gives back what it has freed, and lets the kernel forget its
high-water mark. How far the mark is above that base when the join has ended is what the join has grown by.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_WARM_UP_BYTES = 4_000_000


@dataclass(frozen=True)
class Run:
    """What is joined with what, in how much memory."""

    path: str
    table: str
    stream: str
    exponent: float
    algorithm: str
    memory_bytes: int
    tuples: int
    how: str = "inner"
    parameters: dict[str, float] | None = None


def measure(run: Run, timeout_seconds: float = 600, *, again: int = 2) -> dict[str, Any]:
    """Join in another process and return its figures; an error of the join is raised here.

    A join for which kernels were compiled, because it does what the warm-up did not, is done again.
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
        raise AssertionError(f"the join failed: {done.stderr.strip().splitlines()[-1]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if figures["compiled"] and again:  # what the compiler takes is not the join's; next time the kernels are there
        return measure(run, timeout_seconds, again=again - 1)
    return figures


def _join(run: Run) -> dict[str, Any]:
    from memory_data import many_key, stream_batches

    from semistream.joining import join

    refused = many = 0

    def count(rows: Any, _: str) -> None:
        nonlocal refused
        refused += rows.num_rows

    def stream() -> Iterator[Any]:
        nonlocal many
        for batch in stream_batches(run.stream, run.table, run.memory_bytes, run.exponent, run.tuples, 2):
            many += int((batch.column(0).to_numpy() == many_key(run.table, run.memory_bytes)).sum())
            yield batch

    started = time.perf_counter()
    joined = join(
        stream(),
        run.path,
        on="key",
        how=run.how,
        algorithm=run.algorithm,
        memory=run.memory_bytes,
        parameters=run.parameters,
        dead_letters=count,
        suffix="_master",
    )
    rows_out = bytes_out = largest = batches = 0
    for batch in joined:
        rows_out += batch.num_rows
        bytes_out += batch.nbytes
        largest = max(largest, batch.nbytes)
        batches += 1
        del batch
    return {
        "rows_out": rows_out,
        "tuples_out": joined.stats.tuples_out,
        "bytes_out": bytes_out,
        "batches": batches,
        "largest_batch_bytes": largest,
        "refused": refused,
        "many": many,
        "seconds": round(time.perf_counter() - started, 2),
        "parts": joined.stats.memory_bytes,
    }


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def _start_again() -> int:
    """Give back what is free, reset the high-water mark, and return what is in use."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmHWM")


def main() -> None:
    """Do the run that comes as JSON from the input, and print what it took."""
    from memory_data import build
    from numba.core.event import install_recorder

    run = Run(**json.load(sys.stdin))
    with tempfile.TemporaryDirectory() as folder:
        small = build(run.table, _WARM_UP_BYTES // 10, Path(folder))
        few = min(run.tuples, 20 if run.stream == "300 kB" else 4_000)
        _join(Run(**{**asdict(run), "path": str(small), "memory_bytes": _WARM_UP_BYTES, "tuples": few}))
    base = _start_again()
    with install_recorder("numba:compile") as compiled:
        figures = _join(run)
    grown = _memory("VmHWM") - base
    figures |= {
        "compiled": len(compiled.buffer),
        "base_bytes": base,
        "grown_bytes": grown,
        "share": round(grown / run.memory_bytes, 3),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
