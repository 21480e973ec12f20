"""Several sets of pages as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.engine.rows.gather import concatenate
from semistream.store.contract import PageSet


class JoinedPages(PageSet):
    """The rows of sets of pages, one set after the other.

    Where `continues` says so, the first range of a set goes on with the last range of the set before: together they
    are one range. `take` costs a copy more than that of a single set.
    """

    def __init__(self, parts: Sequence[PageSet], continues: Sequence[bool]) -> None:
        self._parts = parts
        self._firsts = np.cumsum([0, *(len(part.codes) for part in parts)])
        self.codes = np.concatenate([part.codes for part in parts])
        bounds = [
            part.bounds[1 if goes_on else 0 : -1] + first
            for part, first, goes_on in zip(parts, self._firsts[:-1].tolist(), continues, strict=True)
        ]
        self.bounds = np.append(np.concatenate(bounds), self._firsts[-1])

    @property
    def size_bytes(self) -> int:
        """The memory of all sets, and of the codes of their rows once more."""
        return sum(part.size_bytes for part in self._parts) + self.codes.nbytes + self.bounds.nbytes

    def take(self, rows: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the named columns of these rows."""
        part_of = np.searchsorted(self._firsts[1:-1], rows, side="right")
        if _ascends(part_of):
            return self._take_ascending(rows, part_of, columns)
        order = np.argsort(part_of, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return self._take_ascending(rows[order], part_of[order], columns).take(pa.array(back))

    def take_within(self, rows: Int64Array, columns: Sequence[str], limit_bytes: int) -> tuple[pa.RecordBatch, int]:
        """Return the named columns of the first of these rows that fit the limit, at least of one, and their bytes."""
        part_of = np.searchsorted(self._firsts[1:-1], rows, side="right")
        cuts = [0, *(np.flatnonzero(np.diff(part_of)) + 1).tolist(), len(rows)]
        taken: list[pa.RecordBatch] = []
        left_bytes = limit_bytes
        for start, end in pairwise(cuts):
            part = int(part_of[start]) if len(rows) else 0
            piece, size_bytes = self._parts[part].take_within(rows[start:end] - self._firsts[part], columns, left_bytes)
            if taken and size_bytes > left_bytes:
                break
            taken.append(piece)
            left_bytes -= size_bytes
            if piece.num_rows < end - start:
                break
        return concatenate(taken), limit_bytes - left_bytes

    def _take_ascending(self, rows: Int64Array, part_of: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        cuts = np.searchsorted(part_of, np.arange(len(self._parts) + 1)).tolist()
        taken = [
            part.take(rows[cuts[index] : cuts[index + 1]] - self._firsts[index], columns)
            for index, part in enumerate(self._parts)
            if cuts[index] < cuts[index + 1]
        ]
        return concatenate(taken) if taken else self._parts[0].take(rows, columns)


def _ascends(numbers: Int64Array) -> bool:
    later: BoolArray = numbers[1:] >= numbers[:-1]
    return bool(later.all())
