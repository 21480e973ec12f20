"""How much memory the Python workers of one peer take, seen from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARK = "SEMISTREAM_PEER"
_PROCESSES = Path("/proc")


@contextmanager
def own_workers(spark: SparkSession, peer: str) -> Iterator[str]:
    """Let operators that are planned in the block have Python workers of their own, and return their mark.

    Spark shares workers between all queries with the same environment. A variable in it keeps the caches of one peer
    out of the processes of another, and tells whose process one is.
    """
    environment = spark.sparkContext.environment
    mark = f"{peer}-{os.getpid()}"
    environment[_MARK] = mark
    try:
        yield mark
    finally:
        del environment[_MARK]


def peak_bytes(mark: str) -> int | None:
    """Return the most memory that the largest worker with the mark has ever had; None if there is none to be seen."""
    wanted = f"{_MARK}={mark}".encode()
    peaks = []
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                peaks += _peak(process)
        except OSError:  # ended meanwhile, or of another user
            continue
    return max(peaks, default=None)


def _peak(process: Path) -> Iterator[int]:
    for line in (process / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            yield int(value.split()[0]) * 1024
