"""Which requests bring scattered pages, and what passes side by side, on the model clock."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.costs import CostProfile
from semistream.store.contract import MasterStore

_BLOCK_BYTES = 3 << 18
"""A request brings no more than such a block, as those to an object store do."""


def requested_ranges(pages: Int64Array, costs: CostProfile, store: MasterStore) -> tuple[Int64Array, Int64Array]:
    """Return first and last pages of the requests that bring ascending pages, as a store with such costs asks for them.

    Pages between two that are needed are brought, too, where their bytes take less time than a request of its own,
    with as many of them under way as overlap. That is what object stores are asked for in real time.
    """
    page_bytes = store.range_bytes(0, store.page_count - 1) / max(1, store.page_count)
    gap_seconds = costs.seek_seconds / costs.max_in_flight if costs.shares_bandwidth else costs.seek_seconds
    gap_bytes = gap_seconds * costs.bytes_per_second
    gap_pages = int(min(_BLOCK_BYTES, gap_bytes) // page_bytes)
    block_pages = max(1, int(_BLOCK_BYTES // page_bytes))
    blocks = pages // block_pages
    starts = np.flatnonzero((np.diff(pages, prepend=pages[:1]) > gap_pages + 1) | (np.diff(blocks, prepend=-1) > 0))
    return pages[starts], pages[np.append(starts[1:], len(pages)) - 1]


def overlapped(requests: int, size_bytes: float, in_flight: int, costs: CostProfile) -> tuple[float, float]:
    """Return the latencies and the bytes that pass one after the other, so many requests being sent side by side."""
    side_by_side = min(in_flight, costs.max_in_flight)
    return requests / side_by_side, size_bytes if costs.shares_bandwidth else size_bytes / side_by_side
