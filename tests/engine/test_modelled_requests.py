"""Scattered pages on the model clock come by the requests that an object store is asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.costs import FAR_REMOTE, SSD
from semistream.engine.reading.modelled_requests import requested_ranges
from semistream.store.memory import MemoryStore

PAGE_BYTES = 8192
STORE = MemoryStore.of_codes(68 * 400, row_bytes=120, page_bytes=PAGE_BYTES)
BLOCK_PAGES = (3 << 18) // (68 * 120)


def expected(pages: list[int], gap_pages: int) -> list[tuple[int, int]]:
    """Return the requests, found page by page."""
    ranges: list[tuple[int, int]] = []
    for page in pages:
        if ranges:
            first, last = ranges[-1]
            if page - last - 1 <= gap_pages and page // BLOCK_PAGES == last // BLOCK_PAGES:
                ranges[-1] = (first, page)
                continue
        ranges.append((page, page))
    return ranges


@given(st.sets(st.integers(0, 399), min_size=1), st.integers(0, 60))
@settings(deadline=None, derandomize=True)
def test_near_pages_come_by_one_request_within_blocks(needed: set[int], gap_pages: int) -> None:
    pages = sorted(needed)
    seconds = (gap_pages + 0.5) * 68 * 120 / SSD.bytes_per_second * SSD.max_in_flight
    first, last = requested_ranges(np.array(pages), replace(SSD, seek_seconds=seconds), STORE)
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == expected(pages, gap_pages)


def test_the_slower_a_request_the_wider_the_gap_that_is_read() -> None:
    pages = np.arange(0, 300, 15)
    near, _ = requested_ranges(pages, SSD, STORE)
    far, far_last = requested_ranges(pages, FAR_REMOTE, STORE)
    assert len(near) == len(pages)
    assert len(far) == len(expected(pages.tolist(), 1000)) < len(near)
    assert far_last[0] - far[0] > 60
