"""Operators to stand beside `enrich` in queries of tests: they fail, kill workers, or do nothing at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark import cloudpickle

# Workers cannot import the modules of tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class FailsOnce:
    """Hands rows on, but fails at a sale unless a file exists."""

    def __init__(self, sale_id: int, allowed: Path) -> None:
        self.sale_id = sale_id
        self.allowed = allowed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        for batch in batches:
            if self.sale_id in batch["sale_id"].to_pylist() and not self.allowed.exists():
                raise RuntimeError("this sale cannot be written yet")
            yield batch


class KillsTheOthers:
    """Hands rows on, but at a sale kills the other Python workers once, among them the one of `enrich`."""

    def __init__(self, sale_id: int, killed: Path) -> None:
        self.sale_id = sale_id
        self.killed = killed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        for batch in batches:
            if self.sale_id in batch["sale_id"].to_pylist() and not self.killed.exists():
                self.killed.touch()
                for other in _other_workers():
                    other.kill()
            yield batch


def _other_workers() -> list[psutil.Process]:
    """Return the workers of all daemons of this session, because joins have a daemon of their own."""
    daemons = psutil.Process(os.getppid()).parent().children()
    return [worker for daemon in daemons for worker in daemon.children() if worker.pid != os.getpid()]


class LoadsKernels:
    """Hands rows on, after a join of a few rows has loaded all that a worker of `enrich` needs."""

    def __init__(self, table: Path) -> None:
        self.table = table

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        import semistream as ss
        import semistream.spark.worker

        assert semistream.spark.worker.WORKER
        rows = pa.table({"k": [1, 2, 3]})
        assert ss.join(rows, self.table, on="k", how="left", memory="4MB").read_all().num_rows == 3
        yield from batches
