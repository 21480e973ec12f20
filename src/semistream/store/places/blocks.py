"""Which blocks stretches of an object lie in, and which of them one request may bring."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array
from semistream.store.places.place import MAX_SPAN_BYTES
from semistream.store.places.tier_file import BLOCK_BYTES


def blocks_of(extents: Int64Array) -> Int64Array:
    """Return the blocks that stretches touch, ascending."""
    first, last = extents[:, 0] // BLOCK_BYTES, (extents[:, 0] + extents[:, 1] - 1) // BLOCK_BYTES
    counts = last - first + 1
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    found: Int64Array = np.unique(np.repeat(first, counts) + within)
    return found


def are_among(extents: Int64Array, blocks: Int64Array) -> BoolArray:
    """Say of which stretches all blocks are among some ascending ones."""
    first, last = extents[:, 0] // BLOCK_BYTES, (extents[:, 0] + extents[:, 1] - 1) // BLOCK_BYTES
    found: BoolArray = np.searchsorted(blocks, last, side="right") - np.searchsorted(blocks, first) == last - first + 1
    return found


def spans_of_blocks(blocks: Int64Array, gap: int) -> tuple[Int64Array, Int64Array]:
    """Join ascending blocks that are at most a gap apart to spans that one request may bring: first and last blocks."""
    max_blocks = MAX_SPAN_BYTES // BLOCK_BYTES
    firsts, lasts = [], []
    first = last = -1
    for block in blocks.tolist():
        if first >= 0 and block - last - 1 <= gap and block - first < max_blocks:
            last = block
            continue
        if first >= 0:
            firsts.append(first)
            lasts.append(last)
        first = last = block
    if first >= 0:
        firsts.append(first)
        lasts.append(last)
    return np.array(firsts, dtype=np.int64), np.array(lasts, dtype=np.int64)


def parted_at_blocks(extents: Int64Array) -> Int64Array:
    """Part stretches at the bounds of blocks, so that each piece comes with one block, and sort the pieces."""
    pieces = [
        (at, min(offset + length, (at // BLOCK_BYTES + 1) * BLOCK_BYTES) - at, position + at - offset)
        for offset, length, position in extents.tolist()
        for at in (offset, *range((offset // BLOCK_BYTES + 1) * BLOCK_BYTES, offset + length, BLOCK_BYTES))
    ]
    return np.array(sorted(pieces), dtype=np.int64).reshape(-1, 3)
