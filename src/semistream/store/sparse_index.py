"""Finds the page of a key code among the first codes of all pages."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel


class SparseIndex:
    """The first code of each page, with a table that leads to the right page in about one step.

    The table divides the range of codes into equal buckets and says where each bucket's pages start, so evenly spread
    codes (row numbers, hashes) are found at once and clustered ones by a binary search inside their bucket.
    Costs 12 to 16 bytes a page; a look-up is some nanoseconds.
    """

    def __init__(self, first_codes: Int64Array) -> None:
        self.first_codes = np.ascontiguousarray(first_codes, dtype=np.int64)
        pages = len(self.first_codes)
        low, high = (int(self.first_codes[0]), int(self.first_codes[-1])) if pages else (0, 0)
        self._low = np.uint64(low & 0xFFFFFFFFFFFFFFFF)
        self._shift = 0
        while ((high - low) >> self._shift) > max(pages, 1):
            self._shift += 1
        buckets = ((high - low) >> self._shift) + 1
        edges = [low + (bucket << self._shift) for bucket in (0, buckets)]
        starts = low + (np.arange(buckets + 1, dtype=object) << self._shift) if edges[1] > 2**62 else None
        if starts is None:
            bounds = low + (np.arange(buckets + 1, dtype=np.int64) << self._shift)
        else:
            bounds = np.minimum(starts, 2**63 - 1).astype(np.int64)
        self._table = np.searchsorted(self.first_codes, bounds, side="left").astype(np.int32)

    @property
    def size_bytes(self) -> int:
        """The memory the index takes."""
        return self.first_codes.nbytes + self._table.nbytes

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return for each code the last page whose first code is not above it, or page 0."""
        pages = np.zeros(len(codes), dtype=np.int32)
        if len(self.first_codes) > 1:
            _locate(self.first_codes, self._table, self._low, np.uint64(self._shift), codes, pages)
        return pages


@kernel
def _locate(
    first_codes: Int64Array,
    table: Int32Array,
    low: np.uint64,
    shift: np.uint64,
    codes: Int64Array,
    pages: Int32Array,
) -> None:
    last_page = first_codes.shape[0] - 1
    for index in range(codes.shape[0]):
        code = codes[index]
        if code <= first_codes[0]:
            continue
        if code >= first_codes[last_page]:
            pages[index] = last_page
            continue
        bucket = np.int64((np.uint64(code) - low) >> shift)
        # The page is among those that start inside the bucket, or it is the last one that starts before it.
        below = table[bucket] - 1
        above = table[bucket + 1]
        while above - below > 1:
            middle = (below + above) >> 1
            if first_codes[middle] <= code:
                below = middle
            else:
                above = middle
        pages[index] = below
