"""The pages of a table that is ordered by use: classes of heat, the hottest first, each in the order of its codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.store.paged.format.heat_map import HeatMap


@dataclass(frozen=True)
class HeatClasses:
    """How many pages each class has, and which class a key is of.

    A key is in its class for as long as the table is ordered so: rows that are changed stay in it, and new rows go to
    where the map leads, which is the coldest class but for few.
    """

    page_counts: Int64Array
    heat_map: HeatMap

    @property
    def bounds(self) -> Int64Array:
        """The first page of each class, and at the end the number of pages."""
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.page_counts)])

    def of_pages(self, pages: Int32Array | Int64Array) -> UInt8Array:
        """Return the class of each page."""
        return (np.searchsorted(self.bounds, pages, side="right") - 1).astype(np.uint8)


def class_bounds(classes: HeatClasses | None, page_count: int) -> Int64Array:
    """Return the first page of each class, and at the end the number of pages; a table in one order has one class."""
    return np.array([0, page_count], dtype=np.int64) if classes is None else classes.bounds
