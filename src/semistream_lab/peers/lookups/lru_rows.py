"""A cache of the rows that were used last, bounded by memory."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from semistream.core.errors import InvalidSettingError

Row = tuple[int, float, int, str]
"""The payload of a master row."""

_ENTRY_BYTES = 200  # of an OrderedDict, with the table of a dict that is half empty after it has grown


def row_bytes(key: int, row: Row) -> int:
    """Return what a row and its key take in the cache."""
    return _ENTRY_BYTES + sys.getsizeof(key) + sys.getsizeof(row) + sum(map(sys.getsizeof, row))


class LruRows:
    """Keeps rows by key and drops those that were not used for longest; never more than fit into its memory.

    Rows are all as large as the sample that it is made with. A row is found or added in constant time.
    """

    def __init__(self, memory_bytes: int, sample: Row) -> None:
        self.max_rows = memory_bytes // row_bytes(sys.maxsize, sample)
        if self.max_rows < 1:
            raise InvalidSettingError("The memory is below one row of the look-up's cache: give more.")
        self._rows: OrderedDict[int, Row] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def rows_of(self, keys: Iterable[int]) -> dict[int, Row]:
        """Return the rows of those keys that are here, and count them as used."""
        rows, moved = self._rows, self._rows.move_to_end
        cached = {}
        for key in keys:
            row = rows.get(key)
            if row is not None:
                moved(key)
                cached[key] = row
        return cached

    def add(self, new: Mapping[int, Row]) -> None:
        """Take rows in and drop as many as are too many."""
        rows = self._rows
        for key, row in new.items():
            if key not in rows and len(rows) >= self.max_rows:
                rows.popitem(last=False)
            rows[key] = row
            rows.move_to_end(key)

    def _check(self) -> None:
        assert len(self._rows) <= self.max_rows
