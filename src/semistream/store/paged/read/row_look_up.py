"""Reads pages, checks them, finds codes in them and copies the columns of their rows: one compiled loop for all of it.

A page stays near the processor from its read to the copy of its rows, and nothing is written down of the rows that
nobody asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array, UInt32Array
from semistream.core.compile import kernel
from semistream.core.memory_copy import copy_bytes
from semistream.store.found_rows import NULL_LENGTH
from semistream.store.paged.format.page_columns import BITS, BYTES, FIXED
from semistream.store.paged.format.page_head import BODY, NODES, ROWS, buffer_bytes, buffer_place, open_page
from semistream.store.paged.read.checking import crc32
from semistream.store.paged.read.fetching import FILE_STRIDE, pread

DONE, PAUSE, FULL, FAULT, LONG_PAGE = range(5)
"""How a look-up ends: all codes are done; so many requests were made; no room for the next rows; a page could not be
read or is not what it should be; the next page is longer than the memory for pages."""
ROW_COUNT, HEAP_USED, PAGES, REQUESTS, BYTES_READ, STATE_SIZE = range(6)
"""What a look-up has counted: rows and bytes of strings that it found, and what it read."""
_NODE, _BUFFER, _KIND, _WIDTH, _VALUES_AT = range(5)
# What a place says of a column: the four numbers of `Gathering.places`, and where its values begin in the output.
_VALIDITY, _VALUES, _STRINGS, _STRING_BYTES, PART_SIZE = range(5)


@kernel
def look_up_rows(
    descriptors: Int32Array,
    addresses: Int64Array,
    lengths: UInt32Array,
    row_counts: UInt32Array,
    checksums: UInt32Array,
    code_bytes: int,
    codes: Int64Array,
    pages: Int32Array,
    held: Int64Array,
    memory: UInt8Array,
    first: int,
    requests: int,
    places: Int64Array,
    nodes: int,
    buffers: int,
    scratch: UInt8Array,
    head: Int64Array,
    parts: Int64Array,
    fixed: UInt8Array,
    valid: UInt8Array,
    starts: Int64Array,
    sizes: Int32Array,
    heap: UInt8Array,
    bounds: Int64Array,
    state: Int64Array,
) -> tuple[Any, Any]:
    """Look up the codes from `first` on by at most so many requests; return the first code that is left, and why.

    The page of a code is read from a file, or is in `memory` already, where `held` says that; -1 says that it is not.
    `codes` ascend, and `pages` names the page of each. Neighbouring pages that fit into `scratch` together are one
    request. Rows are put behind those that `state` counts: values of fixed width to `fixed` at the places of their
    columns, whether they are null to `valid`, and of strings where they start in `heap` and their sizes.
    """
    words, halves, shorts = scratch.view(np.int64), scratch.view(np.int32), scratch.view(np.uint16)
    count = codes.shape[0]
    index = np.int64(first)
    loaded = np.int64(-1)  # the last page in the scratch memory
    base = np.int64(0)  # the address of the first byte there
    while index < count:
        page = np.int64(pages[index])
        if page > loaded:
            if requests == 0:
                return index, PAUSE
            requests -= 1
            base = addresses[page]
            if np.int64(lengths[page]) > scratch.shape[0]:
                return index, LONG_PAGE
            if held[index] >= 0:
                last, total = page, np.int64(lengths[page])
                copy_bytes(scratch, 0, memory, held[index], total)
            else:
                last, total = _run_from(addresses, lengths, pages, held, index, scratch.shape[0])
                if not _read_run(descriptors, base, total, scratch):
                    return index, FAULT
            for number in range(page, last + 1):
                if crc32(scratch, addresses[number] - base, np.int64(lengths[number])) != checksums[number]:
                    return index, FAULT
            loaded = last
            state[REQUESTS] += 1
            state[PAGES] += last - page + 1
            state[BYTES_READ] += total
        start = addresses[page] - base
        end = start + np.int64(lengths[page])
        rows = np.int64(row_counts[page])
        if not open_page(scratch, words, halves, shorts, start, end, rows, nodes, buffers, head):
            return index, FAULT
        if head[BODY] + rows * code_bytes > end or not _open_columns(words, head, places, parts):
            return index, FAULT
        while index < count and pages[index] == page:
            row, matches = _find(words, halves, head[BODY], code_bytes, rows, codes[index])
            if state[ROW_COUNT] + matches > valid.shape[1]:
                return index, FULL
            for match in range(matches):
                if not _copy_row(
                    scratch, words, halves, places, parts, row + match, fixed, valid, starts, sizes, heap, state
                ):
                    # Rows of a code stay together, so that what has been copied of it does not count.
                    state[ROW_COUNT] = bounds[index]
                    return index, FULL if state[HEAP_USED] >= 0 else FAULT
            index += 1
            bounds[index] = state[ROW_COUNT]
    return index, DONE


@kernel
def _run_from(
    addresses: Int64Array, lengths: UInt32Array, pages: Int32Array, held: Int64Array, index: Any, max_bytes: int
) -> tuple[Any, Any]:
    """Return the last of the pages from that of a code on that one request can bring, and the bytes of them."""
    last = np.int64(pages[index])
    total = np.int64(lengths[last])
    while True:
        while index < pages.shape[0] and pages[index] == last:
            index += 1
        if index == pages.shape[0] or pages[index] != last + 1 or held[index] >= 0:
            return last, total
        following = last + 1
        if addresses[following] != addresses[last] + np.int64(lengths[last]):
            return last, total
        if total + np.int64(lengths[following]) > max_bytes:
            return last, total
        last = following
        total += np.int64(lengths[following])


@kernel
def _read_run(descriptors: Int32Array, address: Any, count: Any, scratch: UInt8Array) -> bool:
    descriptor = descriptors[address // FILE_STRIDE]
    offset = address % FILE_STRIDE
    done = np.int64(0)
    while done < count:
        got = pread(descriptor, scratch, done, count - done, offset + done)
        if got <= 0:
            return False
        done += got
    return True


@kernel
def _open_columns(words: Int64Array, head: Int64Array, places: Int64Array, parts: Int64Array) -> bool:
    """Fill in where the columns of a page lie; False if the page does not hold all values of its rows."""
    rows = head[ROWS]
    for column in range(places.shape[0]):
        kind = places[column, _KIND]
        node = (head[NODES] >> 3) + 2 * places[column, _NODE]
        if words[node] != rows:
            return False
        buffer = places[column, _BUFFER]
        parts[column, _VALIDITY] = -1
        if words[node + 1] != 0:
            parts[column, _VALIDITY] = buffer_place(words, head, buffer, (rows + 7) >> 3)
            if parts[column, _VALIDITY] < 0:
                return False
        if kind == FIXED:
            needed = rows * places[column, _WIDTH]
        elif kind == BITS:
            needed = (rows + 7) >> 3
        else:
            needed = (rows + 1) * places[column, _WIDTH]
            parts[column, _STRINGS] = buffer_place(words, head, buffer + 2, 0)
            parts[column, _STRING_BYTES] = buffer_bytes(words, head, buffer + 2)
            if parts[column, _STRINGS] < 0:
                return False
        parts[column, _VALUES] = buffer_place(words, head, buffer + 1, needed)
        if parts[column, _VALUES] < 0:
            return False
    return True


@kernel
def _find(words: Int64Array, halves: Int32Array, at: Any, code_bytes: int, rows: Any, code: Any) -> tuple[Any, Any]:
    """Return the first row of a code on a page whose codes begin at a place, and how many rows have it."""
    low, high = np.int64(0), np.int64(rows)
    if code_bytes == 8:
        values = at >> 3
        while low < high:
            middle = (low + high) >> 1
            if words[values + middle] < code:
                low = middle + 1
            else:
                high = middle
        after = low
        while after < rows and words[values + after] == code:
            after += 1
    else:
        values = at >> 2
        while low < high:
            middle = (low + high) >> 1
            if np.int64(halves[values + middle]) < code:
                low = middle + 1
            else:
                high = middle
        after = low
        while after < rows and np.int64(halves[values + after]) == code:
            after += 1
    return low, after - low


@kernel
def _copy_row(
    data: UInt8Array,
    words: Int64Array,
    halves: Int32Array,
    places: Int64Array,
    parts: Int64Array,
    row: int,
    fixed: UInt8Array,
    valid: UInt8Array,
    starts: Int64Array,
    sizes: Int32Array,
    heap: UInt8Array,
    state: Int64Array,
) -> bool:
    """Copy one row; False if its strings do not fit, or with a negative count of their bytes if they are damaged."""
    target = state[ROW_COUNT]
    used = state[HEAP_USED]
    for column in range(places.shape[0]):
        kind = places[column, _KIND]
        width = places[column, _WIDTH]
        values = parts[column, _VALUES]
        bits = parts[column, _VALIDITY]
        is_valid = bits < 0 or data[bits + (row >> 3)] >> (row & 7) & 1
        valid[column, target] = is_valid
        if kind == FIXED:
            source = values + row * width
            at = places[column, _VALUES_AT] + target * width
            # A copy of a size that the compiler knows is one instruction; any other is a call.
            if width == 8:
                copy_bytes(fixed, at, data, source, 8)
            elif width == 4:
                copy_bytes(fixed, at, data, source, 4)
            else:
                copy_bytes(fixed, at, data, source, width)
        elif kind == BITS:
            fixed[places[column, _VALUES_AT] + target] = data[values + (row >> 3)] >> (row & 7) & 1
        else:
            if kind == BYTES:
                begin = np.int64(halves[(values >> 2) + row])
                after = np.int64(halves[(values >> 2) + row + 1])
            else:
                begin = words[(values >> 3) + row]
                after = words[(values >> 3) + row + 1]
            if begin < 0 or after < begin or after > parts[column, _STRING_BYTES]:
                state[HEAP_USED] = -1
                return False
            size = after - begin
            if used + size > heap.shape[0]:
                return False
            copy_bytes(heap, used, data, parts[column, _STRINGS] + begin, size)
            starts[column, target] = used
            sizes[column, target] = size if is_valid else NULL_LENGTH
            used += size
    state[HEAP_USED] = used
    state[ROW_COUNT] = target + 1
    return True
