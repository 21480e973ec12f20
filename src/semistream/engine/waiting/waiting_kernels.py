"""The hot loops of waiting tuples: chunk lists, lists of page groups, and a ring of queue positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt32Array
from semistream.core.compile import kernel

# Positions in the state of waiting tuples.
COUNT, FREE, OLDEST, NEWEST, LEAST_RECENT, MOST_RECENT, ENTERED, OCCUPIED = range(8)
NONE = -1
BLOCK_BITS = 8


@kernel
def list_page_groups(links: Int32Array, first: int, page_groups: Int64Array) -> None:
    """List page groups along their links."""
    page_group = first
    for index in range(page_groups.shape[0]):
        page_groups[index] = page_group
        page_group = links[1, page_group]


@kernel
def _link_last(links: Int32Array, state: Int64Array, first: int, last: int, page_group: int) -> None:
    links[0, page_group] = state[last]
    links[1, page_group] = NONE
    if state[last] == NONE:
        state[first] = page_group
    else:
        links[1, state[last]] = page_group
    state[last] = page_group


@kernel
def _unlink(links: Int32Array, state: Int64Array, first: int, last: int, page_group: int) -> None:
    before, after = links[0, page_group], links[1, page_group]
    if before == NONE:
        state[first] = after
    else:
        links[1, before] = after
    if after == NONE:
        state[last] = before
    else:
        links[0, after] = before


@kernel
def add_tuples(
    codes: Int64Array,
    page_groups: Int32Array,
    references: Int64Array,
    capacity: int,
    chunk_size: int,
    pool_codes: Int64Array,
    pool_references: UInt32Array,
    pool_sequence: UInt32Array,
    next_chunk: Int32Array,
    head: Int32Array,
    tail: Int32Array,
    counts: Int32Array,
    age: Int32Array,
    recency: Int32Array,
    since: Int64Array,
    state: Int64Array,
    ring: Int32Array,
    alive: Int32Array,
) -> Any:
    """Append tuples to the chunk lists of their page groups and return how many found room."""
    with_positions = ring.shape[0] > 0
    with_recency = recency.shape[1] > 0
    ring_mask = ring.shape[0] - 1
    room = capacity - state[COUNT]
    added = min(room, codes.shape[0])
    for index in range(added):
        page_group = page_groups[index]
        count = counts[page_group]
        place = count & (chunk_size - 1)
        if place == 0:
            chunk = state[FREE]
            state[FREE] = next_chunk[chunk]
            next_chunk[chunk] = NONE
            if count == 0:
                head[page_group] = chunk
                _link_last(age, state, OLDEST, NEWEST, page_group)
                state[OCCUPIED] += 1
                if since.shape[0] > 0:
                    since[page_group] = state[ENTERED] + index
            else:
                next_chunk[tail[page_group]] = chunk
            tail[page_group] = chunk
        if with_recency and state[MOST_RECENT] != page_group:
            if count > 0:
                _unlink(recency, state, LEAST_RECENT, MOST_RECENT, page_group)
            _link_last(recency, state, LEAST_RECENT, MOST_RECENT, page_group)
        slot = tail[page_group] * chunk_size + place
        pool_codes[slot] = codes[index]
        pool_references[slot] = np.uint32(references[index])
        counts[page_group] = count + 1
        if with_positions:
            sequence = state[ENTERED] + index
            pool_sequence[slot] = np.uint32(sequence)
            ring[sequence & ring_mask] = page_group
            alive[(sequence & ring_mask) >> BLOCK_BITS] += 1
    state[COUNT] += added
    state[ENTERED] += added
    return added


@kernel
def drained_bounds(page_groups: Int64Array, counts: Int32Array, bounds: Int64Array) -> None:
    """Work out where the tuples of each page group will start."""
    # A count is negative while its page group has been seen, so that a repeated page group counts once.
    for index in range(page_groups.shape[0]):
        count = max(0, counts[page_groups[index]])
        bounds[index + 1] = bounds[index] + count
        if count:
            counts[page_groups[index]] = -count
    for index in range(page_groups.shape[0]):
        counts[page_groups[index]] = abs(counts[page_groups[index]])


@kernel
def drain_tuples(
    page_groups: Int64Array,
    bounds: Int64Array,
    out_codes: Int64Array,
    out_references: Int64Array,
    chunk_size: int,
    pool_codes: Int64Array,
    pool_references: UInt32Array,
    pool_sequence: UInt32Array,
    next_chunk: Int32Array,
    head: Int32Array,
    tail: Int32Array,
    counts: Int32Array,
    age: Int32Array,
    recency: Int32Array,
    state: Int64Array,
    ring: Int32Array,
    alive: Int32Array,
) -> None:
    """Empty the chunk lists of page groups into arrays."""
    with_positions = ring.shape[0] > 0
    with_recency = recency.shape[1] > 0
    ring_mask = ring.shape[0] - 1
    for index in range(page_groups.shape[0]):
        page_group = page_groups[index]
        left = counts[page_group]
        if left == 0:
            continue
        state[COUNT] -= left
        state[OCCUPIED] -= 1
        out = bounds[index]
        chunk = head[page_group]
        while left > 0:
            size = min(left, chunk_size)
            first = chunk * chunk_size
            for slot in range(first, first + size):
                out_codes[out] = pool_codes[slot]
                out_references[out] = pool_references[slot]
                out += 1
                if with_positions:
                    place = pool_sequence[slot] & ring_mask
                    ring[place] = NONE
                    alive[place >> BLOCK_BITS] -= 1
            left -= size
            if left == 0:
                next_chunk[chunk] = state[FREE]
                state[FREE] = head[page_group]
            else:
                chunk = next_chunk[chunk]
        counts[page_group] = 0
        head[page_group] = NONE
        tail[page_group] = NONE
        _unlink(age, state, OLDEST, NEWEST, page_group)
        if with_recency:
            _unlink(recency, state, LEAST_RECENT, MOST_RECENT, page_group)


@kernel
def nth_youngest(ring: Int32Array, alive: Int32Array, entered: int, rank: int) -> Any:
    """Return the page group of the tuple at a rank from the young end."""
    ring_mask = ring.shape[0] - 1
    place = (entered - 1) & ring_mask
    left = rank
    # First the rest of the block that the youngest tuple is in, then whole blocks, then inside one block.
    steps = 0
    while steps <= ring_mask:
        if place & ((1 << BLOCK_BITS) - 1) == (1 << BLOCK_BITS) - 1:
            block = place >> BLOCK_BITS
            if left >= alive[block]:
                left -= alive[block]
                place = (place - (1 << BLOCK_BITS)) & ring_mask
                steps += 1 << BLOCK_BITS
                continue
        if ring[place] != NONE:
            if left == 0:
                return ring[place]
            left -= 1
        place = (place - 1) & ring_mask
        steps += 1
    return NONE


@kernel
def move_chunks(
    limit: int,
    chunk_size: int,
    pool_codes: Int64Array,
    pool_references: UInt32Array,
    next_chunk: Int32Array,
    head: Int32Array,
    tail: Int32Array,
    state: Int64Array,
) -> None:
    """Move all tuples to chunks below `limit`, of which there must be enough, and let only those be free."""
    used = np.zeros(next_chunk.shape[0], dtype=np.bool_)
    for page_group in range(head.shape[0]):
        chunk = head[page_group]
        while chunk != NONE:
            used[chunk] = True
            chunk = next_chunk[chunk]
    free = 0
    for page_group in range(head.shape[0]):
        before, chunk = NONE, head[page_group]
        while chunk != NONE:
            after = next_chunk[chunk]
            if chunk >= limit:
                while used[free]:
                    free += 1
                used[free] = True
                for place in range(chunk_size):
                    pool_codes[free * chunk_size + place] = pool_codes[chunk * chunk_size + place]
                    pool_references[free * chunk_size + place] = pool_references[chunk * chunk_size + place]
                next_chunk[free] = after
                if before == NONE:
                    head[page_group] = free
                else:
                    next_chunk[before] = free
                if after == NONE:
                    tail[page_group] = free
                chunk = free
            before, chunk = chunk, after
    state[FREE] = NONE
    for offset in range(limit):
        chunk = limit - 1 - offset
        if not used[chunk]:
            next_chunk[chunk] = state[FREE]
            state[FREE] = chunk
