"""Finds the master rows of stream tuples in pages that have been read."""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
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


def count_matches(rows: Int64Array, row_count: int) -> tuple[Int64Array, Int32Array, Int64Array]:
    """Return the rows below `row_count` that occur, in their order, how often each does, and the places of -1s."""
    matched = np.empty(min(len(rows), row_count), dtype=np.int64)
    matches = np.empty(len(matched), dtype=np.int32)
    missing = np.empty(len(rows), dtype=np.int64)
    match_count, missed = _count_matches(rows, np.zeros(row_count, dtype=np.int32), matched, matches, missing)
    return matched[:match_count], matches[:match_count], missing[:missed]


@kernel
def _count_matches(
    rows: Int64Array, counts: Int32Array, matched: Int64Array, matches: Int32Array, missing: Int64Array
) -> tuple[int, int]:
    missed = 0
    for index in range(rows.shape[0]):
        if rows[index] >= 0:
            counts[rows[index]] += 1
        else:
            missing[missed] = index
            missed += 1
    match_count = 0
    for row in range(counts.shape[0]):
        if counts[row]:
            matched[match_count] = row
            matches[match_count] = counts[row]
            match_count += 1
    return match_count, missed


@kernel
def guess_scale(page_codes: Int64Array, low: Any, high: Any) -> Any:
    """Return the rows per unit of code among the rows from `low` up to `high`, or 0 where a guess is of no use."""
    if high - low < 2:
        return 0.0
    first, last = page_codes[low], page_codes[high - 1]
    if last - first < 1:  # all of one code, or so far apart that the difference does not fit
        return 0.0
    return (high - 1 - low) / np.float64(last - first)


@kernel
def find_in(page_codes: Int64Array, low: Any, high: Any, code: Any, scale: Any) -> Any:
    """Return the first row of `code` among the ascending rows from `low` up to but not including `high`, or -1.

    `scale` is what `guess_scale` returns for these rows.
    """
    if high <= low or code < page_codes[low] or code > page_codes[high - 1]:
        return -1
    if scale > 0.0:
        guess = min(low + np.int64((code - page_codes[low]) * scale), high - 1)
        code_there = page_codes[guess]
        if code_there == code and (guess == low or page_codes[guess - 1] != code):
            return guess
        # Narrow the search to the side of the guess that the code is on.
        if code_there < code:
            low = guess + 1
        else:
            high = guess + 1
    end = high
    while low < high:
        middle = (low + high) >> 1
        if page_codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low if low < end and page_codes[low] == code else -1


@kernel
def _match(
    page_codes: Int64Array, page_bounds: Int64Array, codes: Int64Array, bounds: Int64Array, rows: Int64Array
) -> int:
    match_count = 0
    for part in range(bounds.shape[0] - 1):
        low, high = page_bounds[part], page_bounds[part + 1]
        scale = guess_scale(page_codes, low, high)
        for index in range(bounds[part], bounds[part + 1]):
            row = find_in(page_codes, low, high, codes[index], scale)
            rows[index] = row
            if row >= 0:
                match_count += 1
    return match_count


@kernel
def _run_lengths(page_codes: Int64Array, ends: Int64Array, rows: Int64Array, lengths: Int64Array) -> None:
    for index in range(rows.shape[0]):
        first = rows[index]
        after = first + 1
        while after < ends[index] and page_codes[after] == page_codes[first]:
            after += 1
        lengths[index] = after - first
