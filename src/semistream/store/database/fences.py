"""Where the pages of a table in a database begin: codes that divide all keys, whatever rows come and go."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np

from semistream.core.arrays import Int64Array

_SHARE = 0.01
"""Passes over all keys take about this share of the time, at most."""


@dataclass(frozen=True)
class Fences:
    """The first codes of pages, and how many rows each page had when its keys were looked at.

    The first page begins below all keys and the last one does not end, so that every key is on one page for ever; what
    changes as rows come and go is how many rows a page has.
    """

    first_codes: Int64Array
    rows: Int64Array
    row_bytes: int
    """What a row is taken to have."""
    made: float
    took_seconds: float

    @property
    def row_count(self) -> int:
        """How many rows there were."""
        return int(self.rows.sum())

    def range_of(self, first_page: Int64Array, last_page: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the lowest and highest code of ranges of pages."""
        limits = np.iinfo(np.int64)
        lows = np.where(first_page == 0, limits.min, self.first_codes[first_page])
        after = np.append(self.first_codes, limits.max)[last_page + 1]
        highs = np.where(last_page == len(self.first_codes) - 1, limits.max, after - 1)
        return lows, highs


class FencesBook:
    """The fences of the tables that this process has opened, since finding them costs a pass over all keys.

    They are right for ever, but pages become uneven: they are found again when the pass has become cheap compared with
    the time since the last one.
    """

    def __init__(self) -> None:
        self._known: dict[object, Fences] = {}
        self._lock = Lock()

    def of(self, table: object, find: Callable[[], Fences]) -> Fences:
        """Return the fences of a table; an empty one is looked at again each time."""
        known = self._known.get(table)
        if known is not None and known.row_count and time.monotonic() - known.made < known.took_seconds / _SHARE:
            return known
        with self._lock:
            again = self._known.get(table)
            if again is not known and again is not None and again.row_count:
                return again
            found = find()
            self._known[table] = found
            return found


FENCES = FencesBook()
"""Those of this process."""
