"""Works out where pages lie on the disk and in the buffer of a read; compiled, so that a read of one page is cheap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semistream.core.arrays import Int64Array, UInt8Array, UInt32Array
from semistream.core.compile import kernel


@dataclass(frozen=True)
class PlacedPages:
    """Pages that are about to be read, as `place_pages` has placed them, and the memory they come to."""

    pages: Int64Array
    starts: Int64Array
    ends: Int64Array
    row_bounds: Int64Array
    bounds: Int64Array
    extents: Int64Array
    memory: UInt8Array


def order_across(class_bounds: Int64Array, placed: PlacedPages, codes: Int64Array) -> Int64Array | None:
    """Return where the rows of each range lie by ascending code; None if they lie so, as within a heat class.

    `class_bounds` are the first pages of all classes, and the number of pages.
    """
    places = np.searchsorted(class_bounds, placed.pages, side="right")
    rows = placed.row_bounds[1:-1][places[1:] != places[:-1]]
    ranges = np.searchsorted(placed.bounds, rows, side="right") - 1
    ranges = np.unique(ranges[rows > placed.bounds[ranges]])
    if not len(ranges):
        return None
    order = np.arange(len(codes), dtype=np.int64)
    for number in ranges.tolist():
        start, end = int(placed.bounds[number]), int(placed.bounds[number + 1])
        order[start:end] = start + np.argsort(codes[start:end], kind="stable")
    return order


@kernel
def count_pages(first_pages: Int64Array, last_pages: Int64Array, page_count: int) -> int:
    """Return the number of pages in these ranges, or -1 if a range is not one of pages from 0 to `page_count` - 1."""
    count = 0
    for number in range(first_pages.shape[0]):
        if not 0 <= first_pages[number] <= last_pages[number] < page_count:
            return -1
        count += last_pages[number] - first_pages[number] + 1
    return count


@kernel
def place_pages(
    first_pages: Int64Array,
    last_pages: Int64Array,
    addresses: Int64Array,
    lengths: UInt32Array,
    row_counts: UInt32Array,
    block_bytes: int,
    pages: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
    row_bounds: Int64Array,
    bounds: Int64Array,
    extents: Int64Array,
) -> int:
    """Fill the last six arrays for a read of these ranges and return the number of extents.

    An extent is a stretch of the disk that one system call reads: an address and a length, both multiples of
    `block_bytes`, and the place in the buffer. `starts` and `ends` are where each page lies in the buffer.
    """
    count = 0
    page_number = 0
    rows = np.int64(0)
    position = np.int64(0)
    bounds[0] = 0
    row_bounds[0] = 0
    for number in range(first_pages.shape[0]):
        end = np.int64(-1)  # where the extent of the page before ends on the disk
        for page in range(first_pages[number], last_pages[number] + 1):
            address = addresses[page]
            length = np.int64(lengths[page])
            if address != end:
                if count:
                    position = extents[count - 1, 2] + extents[count - 1, 1]
                aligned = address // block_bytes * block_bytes
                extents[count, 0] = aligned
                extents[count, 2] = position
                count += 1
            end = address + length
            begin = extents[count - 1, 0]
            extents[count - 1, 1] = (end - begin + block_bytes - 1) // block_bytes * block_bytes
            pages[page_number] = page
            starts[page_number] = extents[count - 1, 2] + address - begin
            ends[page_number] = starts[page_number] + length
            rows += np.int64(row_counts[page])
            page_number += 1
            row_bounds[page_number] = rows
        bounds[number + 1] = rows
    return count


@kernel
def range_bytes(
    first_page: int,
    last_page: int,
    addresses: Int64Array,
    lengths: UInt32Array,
    breaks: Int64Array,
    block_bytes: int,
) -> Any:
    """Return the lengths of the extents that `place_pages` makes of a range, or -1 if it is not one of such pages.

    `breaks` are the pages that do not follow the page before them on the disk.
    """
    if not 0 <= first_page <= last_page < addresses.shape[0]:
        return np.int64(-1)
    blocks = np.int64(0)
    first = np.int64(first_page)
    following = np.searchsorted(breaks, first, side="right")
    while first <= last_page:
        last = np.int64(last_page)  # of the extent that starts with `first`
        if following < breaks.shape[0] and breaks[following] <= last:
            last = breaks[following] - 1
            following += 1
        begin = addresses[first] // block_bytes
        blocks += (addresses[last] + np.int64(lengths[last]) + block_bytes - 1) // block_bytes - begin
        first = last + 1
    return blocks * block_bytes


@kernel
def ranges_bytes(
    first_pages: Int64Array,
    last_pages: Int64Array,
    addresses: Int64Array,
    lengths: UInt32Array,
    breaks: Int64Array,
    block_bytes: int,
) -> Any:
    """Return the sum of `range_bytes` over these ranges, or -1 if one is not of such pages."""
    total = np.int64(0)
    for number in range(first_pages.shape[0]):
        size = range_bytes(first_pages[number], last_pages[number], addresses, lengths, breaks, block_bytes)
        if size < 0:
            return size
        total += size
    return total


@kernel
def compact_rows(rows: Int64Array, row_bounds: Int64Array, new_starts: Int64Array, indices: Int64Array) -> int:
    """Renumber rows as if the pages without any of them were left out, and return the number of pages that stay.

    `new_starts` becomes the first new row number of each page, or -1 if the page is left out.
    """
    pages = new_starts.shape[0]
    for page in range(pages):
        new_starts[page] = -1
    page = 0
    for index in range(rows.shape[0]):
        row = rows[index]
        if not row_bounds[page] <= row < row_bounds[page + 1]:
            page = np.searchsorted(row_bounds, row, side="right") - 1
            if page < 0 or page >= pages:
                return -1
        new_starts[page] = 0
        indices[index] = page
    start = 0
    kept = 0
    for page in range(pages):
        if new_starts[page] == 0:
            new_starts[page] = start
            start += row_bounds[page + 1] - row_bounds[page]
            kept += 1
    for index in range(rows.shape[0]):
        page = indices[index]
        indices[index] = rows[index] - row_bounds[page] + new_starts[page]
    return kept
