"""One page: an Arrow record batch as an IPC message without its schema, and a CRC-32 of these bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel


def encode(rows: pa.RecordBatch) -> pa.Buffer:
    """Return the page of these rows; its length is a multiple of 8."""
    return rows.serialize()


def encode_within(rows: pa.RecordBatch, target_bytes: int) -> pa.Buffer:
    """Return the page of these rows; if it is above the target, without what slices may bring along."""
    page = encode(rows)
    if page.size > target_bytes and rows.num_rows > 1:
        # Arrow rounds buffers of slices that start at 0 up to 64 bytes; a copy has buffers of the exact size.
        page = encode(rows.take(pa.array(np.arange(rows.num_rows))))
    return page


def decode(buffer: pa.Buffer, starts: Sequence[int], schema: pa.Schema) -> list[pa.RecordBatch]:
    """Return the rows of the pages that start at these bytes; the batches are views of `buffer`."""
    # One reader that seeks is a third cheaper than a slice of the buffer for each page.
    reader = pa.BufferReader(buffer)
    batches = []
    for start in starts:
        reader.seek(start)
        batches.append(pa.ipc.read_record_batch(reader, schema))
    return batches


def head_bytes(page: pa.Buffer) -> int:
    """Return how many bytes of a page come before its first column."""
    return 8 + int.from_bytes(page[4:8].to_pybytes(), "little")


@kernel
def gather_long(
    words: Int64Array, starts: Int64Array, ends: Int64Array, row_bounds: Int64Array, codes: Int64Array
) -> bool:
    """Write the values of the first column of all pages to `codes`; False if a page is too short for its rows.

    The first column has no nulls, so that its values are the first bytes after the message's head; this is some
    nanoseconds a row instead of some microseconds a page.
    """
    for page in range(starts.shape[0]):
        # The message begins with 0xFFFFFFFF and the length of its metadata, both of 32 bits.
        first = (starts[page] + 8 + (words[starts[page] >> 3] >> 32)) >> 3
        written = row_bounds[page]
        count = row_bounds[page + 1] - written
        if first << 3 <= starts[page] or (first + count) << 3 > ends[page]:
            return False
        for row in range(count):
            codes[written + row] = words[first + row]
    return True


@kernel
def gather_short(
    words: Int64Array,
    halves: Int32Array,
    starts: Int64Array,
    ends: Int64Array,
    row_bounds: Int64Array,
    codes: Int64Array,
) -> bool:
    """Do what `gather_long` does for values of 32 bits."""
    for page in range(starts.shape[0]):
        first = (starts[page] + 8 + (words[starts[page] >> 3] >> 32)) >> 2
        written = row_bounds[page]
        count = row_bounds[page + 1] - written
        if first << 2 <= starts[page] or (first + count) << 2 > ends[page]:
            return False
        for row in range(count):
            codes[written + row] = halves[first + row]
    return True
