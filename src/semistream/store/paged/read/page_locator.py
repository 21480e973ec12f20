"""Finds the page of a key code, in a table in one order as well as in one that is ordered by use."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.store.paged.versions.heat_classes import class_bounds
from semistream.store.paged.versions.page_index import PageIndex
from semistream.store.sparse_index import SparseIndex


class PageLocator:
    """A sparse index of each heat class, or of the whole table if it has none."""

    def __init__(self, entries: PageIndex) -> None:
        self._classes = entries.classes
        self._bounds = class_bounds(entries.classes, len(entries))
        self._last_page = max(0, len(entries) - 1)
        self._indexes = [
            SparseIndex(entries.first_codes[first:after]) for first, after in pairwise(self._bounds.tolist())
        ]

    @property
    def size_bytes(self) -> int:
        """The memory of the indexes and of the map of hot keys."""
        size_bytes = sum(index.size_bytes for index in self._indexes)
        return size_bytes + (self._classes.heat_map.size_bytes if self._classes is not None else 0)

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the page of each code; of a class without pages it is any, because no row has the code."""
        if self._classes is None:
            return self._indexes[0].locate(codes)
        pages = np.empty(len(codes), dtype=np.int32)
        classes = self._classes.heat_map.class_of(codes)
        for number in np.flatnonzero(np.bincount(classes)).tolist():
            chosen = np.flatnonzero(classes == number)
            first = min(int(self._bounds[number]), self._last_page)
            pages[chosen] = self._indexes[number].locate(codes[chosen]) + np.int32(first)
        return pages
