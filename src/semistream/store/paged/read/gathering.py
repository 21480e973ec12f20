"""Copies rows out of pages column by column, without decoding the pages; only compiled loops.

Rows are visited page by page, whatever their order, because the bytes of a page are then still near; each has a target,
its place among the rows that were asked for. What can be checked for a whole page is checked before its rows are
copied, and the offsets of strings when they are read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.core.memory_copy import copy_bytes
from semistream.store.paged.format.page_columns import BITS, BYTES, FIXED
from semistream.store.paged.format.page_head import BODY, NODES, ROWS, buffer_bytes, buffer_place, open_page

DONE = -1
NO_SUCH_ROW = -2
NODE, BUFFER, KIND, WIDTH, VALIDITY_AT, VALUES_AT, PLACE_SIZE = range(7)
"""What a place says of a column: the four numbers of `Gathering.places`, and where its parts begin in the output."""
PAGE, PAGE_ROW, TARGET, VISIT_SIZE = range(4)
"""What a visit says of a row: its page, its number on the page, and its place in the output."""
NULLS, VALUE_BYTES, COUNTS_SIZE = range(3)
"""What is found out about a column: how many rows are null, and how many bytes its strings have together."""
_VALIDITY, _VALUES, _STRINGS, _STRING_BYTES, PART_SIZE = range(5)
# What the parts say of a column in a page: where its buffers begin, -1 for bits that it does not have.


@kernel
def open_pages(
    data: UInt8Array,
    starts: Int64Array,
    ends: Int64Array,
    row_bounds: Int64Array,
    rows: Int64Array,
    nodes: int,
    buffers: int,
    heads: Int64Array,
    visits: Int32Array,
) -> int:
    """Fill in a visit for each row, page by page, and the heads of the pages that have one of the rows.

    `heads` must be zero. Returns DONE, NO_SUCH_ROW, or the place of a page whose head is wrong.
    """
    words, halves, shorts = data.view(np.int64), data.view(np.int32), data.view(np.uint16)
    pages = starts.shape[0]
    page = 0
    ascending = True
    for index in range(rows.shape[0]):
        row = rows[index]
        if not row_bounds[page] <= row < row_bounds[page + 1]:
            holder = np.searchsorted(row_bounds, row, side="right") - 1
            if holder < 0 or holder >= pages:
                return NO_SUCH_ROW
            ascending &= holder >= page
            page = holder
        visits[index, PAGE] = page
        visits[index, PAGE_ROW] = row - row_bounds[page]
        visits[index, TARGET] = index
        if heads[page, BODY] == 0:
            count = row_bounds[page + 1] - row_bounds[page]
            if not open_page(data, words, halves, shorts, starts[page], ends[page], count, nodes, buffers, heads[page]):
                return page
    if not ascending:
        _sort_by_page(visits, row_bounds, rows, pages)
    return DONE


@kernel
def gather(
    data: UInt8Array,
    heads: Int64Array,
    visits: Int32Array,
    places: Int64Array,
    parts: Int64Array,
    out: UInt8Array,
    counts: Int64Array,
) -> Any:
    """Write validity bits, values of fixed width and offsets of all columns to `out`, and what was found to `counts`.

    `parts` is room to work in. Returns DONE, or the place of a page that does not hold all values of its rows.
    """
    for column in range(places.shape[0]):
        place = places[column]
        wrong, has_nulls = _open_column(data, heads, place, parts)
        if wrong != DONE:
            return wrong
        if has_nulls:
            counts[column, NULLS] = _gather_validity(data, visits, parts, out, place[VALIDITY_AT])
        if place[KIND] == FIXED:
            _gather_fixed(data, visits, parts, out, place[VALUES_AT], place[WIDTH])
        elif place[KIND] == BITS:
            _gather_bits(data, visits, parts, out, place[VALUES_AT])
        else:
            if place[KIND] == BYTES:
                wrong, total = _gather_lengths(data.view(np.int32), visits, parts, place, out.view(np.int32))
            else:
                wrong, total = _gather_lengths(data.view(np.int64), visits, parts, place, out.view(np.int64))
            if wrong != DONE:
                return wrong
            counts[column, VALUE_BYTES] = total
    return DONE


@kernel
def gather_strings(
    data: UInt8Array,
    heads: Int64Array,
    visits: Int32Array,
    places: Int64Array,
    parts: Int64Array,
    out: UInt8Array,
    values: UInt8Array,
    counts: Int64Array,
) -> None:
    """Copy the bytes of all strings to `values`, one column behind the other; `gather` must have found them right."""
    begin = np.int64(0)
    for column in range(places.shape[0]):
        place = places[column]
        if place[KIND] >= BYTES:
            _open_column(data, heads, place, parts)
            if place[KIND] == BYTES:
                _copy_strings(data, data.view(np.int32), visits, parts, place, out.view(np.int32), values, begin)
            else:
                _copy_strings(data, data.view(np.int64), visits, parts, place, out.view(np.int64), values, begin)
            begin += counts[column, VALUE_BYTES]


@kernel
def _sort_by_page(visits: Int32Array, row_bounds: Int64Array, rows: Int64Array, pages: int) -> None:
    nexts = np.zeros(pages + 1, dtype=np.int64)
    row_pages = visits[:, PAGE].copy()
    for index in range(rows.shape[0]):
        nexts[row_pages[index] + 1] += 1
    for page in range(pages):
        nexts[page + 1] += nexts[page]
    for index in range(rows.shape[0]):
        page = row_pages[index]
        visit = nexts[page]
        nexts[page] += 1
        visits[visit, PAGE] = page
        visits[visit, PAGE_ROW] = rows[index] - row_bounds[page]
        visits[visit, TARGET] = index


@kernel
def _open_column(data: UInt8Array, heads: Int64Array, place: Int64Array, parts: Int64Array) -> tuple[Any, Any]:
    """Fill in the parts of a column in each open page; return a page that is wrong, and whether any has nulls."""
    words = data.view(np.int64)
    kind = place[KIND]
    has_nulls = False
    for page in range(heads.shape[0]):
        if heads[page, BODY] == 0:
            continue
        head = heads[page]
        rows = head[ROWS]
        node = (head[NODES] >> 3) + 2 * place[NODE]
        if words[node] != rows:
            return page, has_nulls
        parts[page, _VALIDITY] = -1
        if words[node + 1] != 0:
            has_nulls = True
            parts[page, _VALIDITY] = buffer_place(words, head, place[BUFFER], (rows + 7) >> 3)
            if parts[page, _VALIDITY] < 0:
                return page, has_nulls
        if kind == FIXED:
            needed = rows * place[WIDTH]
        elif kind == BITS:
            needed = (rows + 7) >> 3
        else:
            needed = (rows + 1) * place[WIDTH]
            parts[page, _STRINGS] = buffer_place(words, head, place[BUFFER] + 2, 0)
            parts[page, _STRING_BYTES] = buffer_bytes(words, head, place[BUFFER] + 2)
            if parts[page, _STRINGS] < 0:
                return page, has_nulls
        parts[page, _VALUES] = buffer_place(words, head, place[BUFFER] + 1, needed)
        if parts[page, _VALUES] < 0:
            return page, has_nulls
    return DONE, has_nulls


@kernel
def _gather_validity(data: UInt8Array, visits: Int32Array, parts: Int64Array, out: UInt8Array, at: int) -> Any:
    count = visits.shape[0]
    out[at : at + ((count + 7) >> 3)] = 255
    if count & 7:
        out[at + (count >> 3)] = (1 << (count & 7)) - 1
    nulls = 0
    for index in range(count):
        bits = parts[visits[index, PAGE], _VALIDITY]
        row = visits[index, PAGE_ROW]
        if bits >= 0 and not data[bits + (row >> 3)] >> (row & 7) & 1:
            target = visits[index, TARGET]
            out[at + (target >> 3)] ^= np.uint8(1 << (target & 7))
            nulls += 1
    return nulls


@kernel
def _gather_fixed(
    data: UInt8Array, visits: Int32Array, parts: Int64Array, out: UInt8Array, at: int, width: int
) -> None:
    for index in range(visits.shape[0]):
        source = parts[visits[index, PAGE], _VALUES] + visits[index, PAGE_ROW] * width
        target = at + visits[index, TARGET] * width
        # A copy of a size that the compiler knows is one instruction; any other is a call.
        if width == 8:
            copy_bytes(out, target, data, source, 8)
        elif width == 4:
            copy_bytes(out, target, data, source, 4)
        elif width == 16:
            copy_bytes(out, target, data, source, 16)
        else:
            copy_bytes(out, target, data, source, width)


@kernel
def _gather_bits(data: UInt8Array, visits: Int32Array, parts: Int64Array, out: UInt8Array, at: int) -> None:
    out[at : at + ((visits.shape[0] + 7) >> 3)] = 0
    for index in range(visits.shape[0]):
        row = visits[index, PAGE_ROW]
        target = visits[index, TARGET]
        bit = data[parts[visits[index, PAGE], _VALUES] + (row >> 3)] >> (row & 7) & 1
        out[at + (target >> 3)] |= np.uint8(bit << (target & 7))


@kernel
def _gather_lengths(
    offsets: Any, visits: Int32Array, parts: Int64Array, place: Int64Array, new_offsets: Any
) -> tuple[Any, Any]:
    """Write the offsets of strings that follow each other, and return a wrong page and the bytes together."""
    first = place[VALUES_AT] // place[WIDTH]
    for index in range(visits.shape[0]):
        page = visits[index, PAGE]
        at = parts[page, _VALUES] // place[WIDTH] + visits[index, PAGE_ROW]
        start = offsets[at]
        end = offsets[at + 1]
        if start < 0 or end < start or end > parts[page, _STRING_BYTES]:
            return page, np.int64(0)
        new_offsets[first + 1 + visits[index, TARGET]] = end - start
    new_offsets[first] = 0
    total = np.int64(0)
    for index in range(first + 1, first + 1 + visits.shape[0]):
        total += new_offsets[index]
        new_offsets[index] = total
    return DONE, total


@kernel
def _copy_strings(
    data: UInt8Array,
    offsets: Any,
    visits: Int32Array,
    parts: Int64Array,
    place: Int64Array,
    new_offsets: Any,
    values: UInt8Array,
    begin: Any,
) -> None:
    first = place[VALUES_AT] // place[WIDTH]
    for index in range(visits.shape[0]):
        page = visits[index, PAGE]
        at = parts[page, _VALUES] // place[WIDTH] + visits[index, PAGE_ROW]
        source = parts[page, _STRINGS] + offsets[at]
        target = first + visits[index, TARGET]
        start = np.int64(new_offsets[target])
        copy_bytes(values, begin + start, data, source, np.int64(new_offsets[target + 1]) - start)
