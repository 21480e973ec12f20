"""Lets the dimensions of a star read side by side what a chunk of rows needs of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import pyarrow as pa

from semistream.core.side_by_side import all_at_once
from semistream.joining.ordered_session import OrderedSession

if TYPE_CHECKING:
    from semistream.spark.task_run import DimensionRun

_MIN_WAIT_SECONDS = 2e-3
"""What a thread costs is little compared with this."""
_ALONE_EVERY = 16
"""One chunk in so many is read in turn, because reads that disturb each other look as if they waited."""
_MIN_KEPT_SHARE = 0.5
"""Where earlier dimensions keep fewer rows, too much would be read for nothing."""


class SharedReads:
    """Reads ahead for all dimensions whose keys a chunk has, if at least two of them wait for their stores.

    Whether a store makes one wait is measured, by the latest read of each dimension: pages in memory and on a quick
    disk cost processor time alone, and threads would only get in each other's way.
    """

    def __init__(self, runs: Sequence[DimensionRun], place: int) -> None:
        self._asked: list[tuple[DimensionRun, OrderedSession]] = []
        for at, run in enumerate(runs):
            kept = prod(min(1.0, before.held.kept_share) for before in runs[place:at])
            if run.task.asked_from == place and kept >= _MIN_KEPT_SHARE and isinstance(run.session, OrderedSession):
                self._asked.append((run, run.session))

    def before(self, chunk: Sequence[pa.RecordBatch]) -> None:
        """Read what the rows of a chunk need, or nothing; what fails is read again where it is needed."""
        self.end()
        waiting = [(run, session) for run, session in self._asked if _waits(session)]
        if len(waiting) < 2 or waiting[0][1].stats.iterations % _ALONE_EVERY == 0:
            return
        all_at_once([partial(_fetch, run, session, chunk) for run, session in waiting])

    def end(self) -> None:
        """Forget what was read."""
        for _, session in self._asked:
            session.forget_ahead()


def _waits(session: OrderedSession) -> bool:
    waited, worked = session.read_seconds
    return waited >= _MIN_WAIT_SECONDS and waited > worked


def _fetch(run: DimensionRun, session: OrderedSession, chunk: Sequence[pa.RecordBatch]) -> None:
    columns = run.task.asked_columns
    with suppress(Exception):
        session.fetch_ahead([[batch.column(column) for column in columns] for batch in chunk])
