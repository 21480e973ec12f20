"""Finds the master rows of stream tuples in pages that have been read."""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.compile import kernel


def match(
    page_codes: Int64Array, page_bounds: Int64Array, codes: Int64Array, bounds: Int64Array
) -> tuple[Int64Array, int]:
    """Return for each code the first row of that code in its range of the pages, or -1, and how many were found.

    The codes from bounds[i] to bounds[i + 1] are looked for in the rows from page_bounds[i] to page_bounds[i + 1],
    which must be ascending. Costs some nanoseconds a code when codes are evenly spread, a binary search otherwise.
    """
    rows = np.empty(len(codes), dtype=np.int64)
    return rows, _match(page_codes, page_bounds, codes, bounds, rows)


def run_lengths(page_codes: Int64Array, page_bounds: Int64Array, rows: Int64Array) -> Int64Array:
    """Return how many rows from each row on have the same code inside its range; none of the rows may be -1."""
    lengths = np.empty(len(rows), dtype=np.int64)
    _run_lengths(page_codes, page_bounds[np.searchsorted(page_bounds, rows, side="right")], rows, lengths)
    return lengths


@kernel
def find_in(page_codes: Int64Array, low: Any, high: Any, code: Any) -> Any:
    """Return the first row of `code` among the ascending rows from `low` up to but not including `high`, or -1."""
    if high <= low:
        return -1
    first, last = page_codes[low], page_codes[high - 1]
    if code < first or code > last:
        return -1
    if last > first:
        # Differences as unsigned integers are exact; only their ratio is rounded.
        share = np.float64(np.uint64(code) - np.uint64(first)) / np.float64(np.uint64(last) - np.uint64(first))
        guess = min(low + np.int64(share * (high - 1 - low)), high - 1)
        if page_codes[guess] == code and (guess == low or page_codes[guess - 1] != code):
            return guess
        # Narrow the search to the side of the guess that the code is on.
        if page_codes[guess] < code:
            low = guess + 1
        else:
            high = guess + 1
    while low < high:
        middle = (low + high) >> 1
        if page_codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low if low < page_codes.shape[0] and page_codes[low] == code else -1


@kernel
def _match(
    page_codes: Int64Array, page_bounds: Int64Array, codes: Int64Array, bounds: Int64Array, rows: Int64Array
) -> int:
    found = 0
    for part in range(bounds.shape[0] - 1):
        low, high = page_bounds[part], page_bounds[part + 1]
        for index in range(bounds[part], bounds[part + 1]):
            row = find_in(page_codes, low, high, codes[index])
            rows[index] = row
            if row >= 0:
                found += 1
    return found


@kernel
def _run_lengths(page_codes: Int64Array, ends: Int64Array, rows: Int64Array, lengths: Int64Array) -> None:
    for index in range(rows.shape[0]):
        first = rows[index]
        after = first + 1
        while after < ends[index] and page_codes[after] == page_codes[first]:
            after += 1
        lengths[index] = after - first
