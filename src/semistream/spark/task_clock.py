"""The time that a task spends on its own, and the time that it spends with Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa


class Stopwatch(Iterator[pa.RecordBatch]):
    """Measures the time a task spends on its own, in taking batches from Spark, and in handing rows on."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.input_seconds = 0.0
        """The time in which batches were taken."""
        self.output_seconds = 0.0
        """The time in which rows were handed on."""
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time that the task has spent on its own so far."""
        return time.perf_counter() - self._start - self.input_seconds - self.output_seconds

    def __next__(self) -> pa.RecordBatch:
        began = time.perf_counter()
        try:
            return next(self._batches)
        finally:
            self.input_seconds += time.perf_counter() - began

    def handing_on(self) -> HandingOn:
        """Return a context in which rows are handed on."""
        return HandingOn(self)


class HandingOn:
    """Time that a task does not spend on its own."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._stopwatch.output_seconds += time.perf_counter() - self._since
