"""Ends a stream for a while where rows that were cached for it would become too old."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pyarrow as pa


class FreshBatches:
    """Hands out the batches of a stream in turns: a turn ends before the first batch that comes when its time is over.

    Each turn is for a session of its own, so that no row is answered by what was read longer ago than a turn takes and
    what waits at its end.
    """

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch | None],
        max_age_seconds: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._batches = batches
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._next: pa.RecordBatch | None = None
        self.has_ended = False

    def turn(self) -> Iterator[pa.RecordBatch | None]:
        """Yield batches until they have become too many or all are handed out; the next turn goes on from there."""
        began = self._clock()
        if self._next is not None:
            first, self._next = self._next, None
            yield first
            del first
        for batch in self._batches:
            is_late = self._max_age_seconds is not None and self._clock() - began >= self._max_age_seconds
            if batch is not None and is_late:
                self._next = batch
                return
            yield batch
            del batch  # while the next one is awaited
        self.has_ended = True
