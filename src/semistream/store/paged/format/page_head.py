"""Finds the columns of a page in the head of its message, without decoding it.

The head is a flatbuffer: a table begins with the distance back to its vtable, and the vtable has the place of each
field in the table, or 0 if the field is missing. Nothing in a page is believed: every place is checked to be inside
the head, and aligned as its type asks, before it is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel

BODY, NODES, BUFFERS, END, ROWS, HEAD_SIZE = range(6)
"""What a head says of a page: where its body, nodes and buffers begin in the data and where it ends, and its rows."""

_VERSION, _HEADER_TYPE, _HEADER = range(3)  # fields of a message
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = range(4)  # fields of a record batch
_RECORD_BATCH = 3
_OLDEST_VERSION = 3  # the first in which buffers and nodes lie as they do today
_MISSING = -1
_WRONG = -2


@kernel
def open_page(
    data: Any,
    words: Int64Array,
    halves: Int32Array,
    shorts: Any,
    start: Any,
    end: Any,
    row_count: Any,
    nodes: int,
    buffers: int,
    head: Int64Array,
) -> bool:
    """Fill the head of a page from its bytes from start to end; False if it is no record batch of so many rows.

    It must have at least so many nodes and buffers. `start` must be a multiple of 8. `words`, `halves` and `shorts` are
    the same memory as `data`: to make such views for each page would cost more than to read its head.
    """
    if end - start < 16 or halves[start >> 2] != -1:
        return False
    low = start + 8
    high = low + np.int64(halves[(start >> 2) + 1])
    if high < low + 8 or high > end or high & 7:
        return False
    message = low + np.int64(halves[low >> 2])
    version = _field(halves, shorts, message, _VERSION, 2, low, high)
    kind = _field(halves, shorts, message, _HEADER_TYPE, 1, low, high)
    header = _field(halves, shorts, message, _HEADER, 4, low, high)
    if version < 0 or kind < 0 or header < 0:
        return False
    if shorts[version >> 1] < _OLDEST_VERSION or data[kind] != _RECORD_BATCH:
        return False
    batch = header + np.int64(halves[header >> 2])
    length = _field(halves, shorts, batch, _LENGTH, 8, low, high)
    if length < 0 or words[length >> 3] != row_count:
        return False
    if _field(halves, shorts, batch, _COMPRESSION, 4, low, high) != _MISSING:
        return False
    head[BODY] = high
    head[END] = end
    head[ROWS] = row_count
    head[NODES] = _pairs(halves, _field(halves, shorts, batch, _NODES, 4, low, high), nodes, low, high)
    head[BUFFERS] = _pairs(halves, _field(halves, shorts, batch, _BUFFERS, 4, low, high), buffers, low, high)
    return bool(head[NODES] >= 0 and head[BUFFERS] >= 0)


@kernel
def buffer_place(words: Int64Array, head: Int64Array, number: int, needed_bytes: int) -> Any:
    """Return where a buffer of a page begins, or -1 if it is shorter than needed or not inside the page."""
    entry = (head[BUFFERS] >> 3) + 2 * number
    offset = words[entry]
    length = words[entry + 1]
    room = head[END] - head[BODY]
    if offset < 0 or offset & 7 or offset > room or length < needed_bytes or length > room - offset:
        return np.int64(-1)
    return head[BODY] + offset


@kernel
def buffer_bytes(words: Int64Array, head: Int64Array, number: int) -> Any:
    """Return the length of a buffer of a page."""
    return words[(head[BUFFERS] >> 3) + 2 * number + 1]


@kernel
def _field(halves: Int32Array, shorts: Any, table: Any, field: int, size: int, low: Any, high: Any) -> Any:
    """Return where a field of a table is; _MISSING if it has none; _WRONG if that is not between low and high."""
    if table & 3 or table < low or table > high - 4:
        return np.int64(_WRONG)
    vtable = table - np.int64(halves[table >> 2])
    if vtable & 1 or vtable < low or vtable > high - 4:
        return np.int64(_WRONG)
    entry = 4 + 2 * field
    if np.int64(shorts[vtable >> 1]) < entry + 2:
        return np.int64(_MISSING)
    if vtable + entry > high - 2:
        return np.int64(_WRONG)
    offset = np.int64(shorts[(vtable + entry) >> 1])
    if offset == 0:
        return np.int64(_MISSING)
    place = table + offset
    return np.int64(_WRONG) if place > high - size or place & (size - 1) else place


@kernel
def _pairs(halves: Int32Array, pointer: Any, needed: int, low: Any, high: Any) -> Any:
    """Return where the first of a vector of pairs of 64 bits is, or -1 if it has fewer than needed."""
    if pointer < 0:
        return np.int64(-1)
    vector = pointer + np.int64(halves[pointer >> 2])
    if vector & 3 or vector < low or vector > high - 4:
        return np.int64(-1)
    count = np.int64(halves[vector >> 2])
    first = vector + 4
    if first & 7 or count < needed or first + 16 * count > high:
        return np.int64(-1)
    return first
