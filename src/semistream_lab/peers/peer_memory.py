"""How much memory the processes of one peer take, seen from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK = "SEMISTREAM_PEER"
"""The variable in whose value a process says to which peer it belongs."""
_PROCESSES = Path("/proc")


@contextmanager
def own_workers(spark: SparkSession, peer: str) -> Iterator[str]:
    """Let operators that are planned in the block have Python workers of their own, and return their mark.

    Spark shares workers between all queries with the same environment. A variable in it keeps the caches of one peer
    out of the processes of another, and tells whose process one is.
    """
    environment = spark.sparkContext.environment
    mark = f"{peer}-{os.getpid()}"
    environment[MARK] = mark
    try:
        yield mark
    finally:
        del environment[MARK]


def peaks_of_workers(mark: str) -> list[int]:
    """Return the most memory that each worker with the mark has ever had, in bytes."""
    wanted = f"{MARK}={mark}".encode()
    peaks: list[int] = []
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                peaks += peaks_of(process)
        except OSError:  # ended meanwhile, or of another user
            continue
    return peaks


def peaks_of(process: Path) -> list[int]:
    """Return the most memory that a process has ever had, in bytes; empty where the system does not tell."""
    status = process / "status"
    lines = status.read_text().splitlines() if status.exists() else []
    return [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
