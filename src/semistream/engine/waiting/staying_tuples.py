"""The tuples that stay when the input of a run has ended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.engine.rows.stream_rows import StreamRows
from semistream.engine.waiting.waiting_tuples import Drained
from semistream.policies.contract import Staying

_MICROSECONDS = 1e-6


class StayingTuples:
    """Keeps the rows of tuples that a policy lets stay, in their slots, until they are taken.

    The column `since` of a row is when it first came, in microseconds. Belongs to the disk phase until the run has
    ended, then to whoever started the run.
    """

    def __init__(self, policy: Staying, rows: StreamRows, since: str, page_group_count: int) -> None:
        self._policy = policy
        self._rows = rows
        self._since_at = rows.schema.get_field_index(since)
        self._page_group_count = page_group_count
        self._slots: list[Int64Array] = []

    @property
    def count(self) -> int:
        """How many tuples stay."""
        return sum(map(len, self._slots))

    def keep(self, page_groups: Int64Array, drained: Drained) -> Drained:
        """Keep the tuples that stay; return the others, in their order."""
        if not len(page_groups):
            return drained
        since = self._rows.take(drained.references, [self._since_at]).column(0)
        micros = since.cast(pa.int64()).to_numpy(zero_copy_only=False)
        oldest = np.minimum.reduceat(micros, drained.bounds[:-1]) * _MICROSECONDS
        due = self._policy.due(page_groups, oldest, self._page_group_count)
        counts = np.diff(drained.bounds)
        leaving = np.repeat(due, counts)
        if not due.all():
            self._slots.append(drained.references[~leaving])
        return Drained(drained.codes[leaving], drained.references[leaving], np.append(0, np.cumsum(counts[due])))

    def take(self, max_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows that stay, about so many bytes at a time, and free their slots."""
        slots = np.concatenate(self._slots) if self._slots else np.empty(0, dtype=np.int64)
        self._slots = []
        step = max(1, min(len(slots), 4096))
        for begin in range(0, len(slots), step):
            part = slots[begin : begin + step]
            sizes = self._rows.variable_bytes(part) + self._rows.sizes.fixed_bytes
            for chosen in np.array_split(part, max(1, -(-int(sizes.sum()) // max(1, max_bytes)))):
                if len(chosen):
                    yield self._rows.take(chosen)
                    self._rows.free(chosen)
