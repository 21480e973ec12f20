"""The hot loops of waiting tuples: chunk lists, lists of partitions, and a ring of queue positions."""

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
def list_partitions(links: Int32Array, first: int, partitions: Int64Array) -> None:
    """List partitions along their links."""
    partition = first
    for index in range(partitions.shape[0]):
        partitions[index] = partition
        partition = links[1, partition]


@kernel
def _link_last(links: Int32Array, state: Int64Array, first: int, last: int, partition: int) -> None:
    links[0, partition] = state[last]
    links[1, partition] = NONE
    if state[last] == NONE:
        state[first] = partition
    else:
        links[1, state[last]] = partition
    state[last] = partition


@kernel
def _unlink(links: Int32Array, state: Int64Array, first: int, last: int, partition: int) -> None:
    before, after = links[0, partition], links[1, partition]
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
    partitions: Int32Array,
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
    """Append tuples to the chunk lists of their partitions and return how many found room."""
    with_positions = ring.shape[0] > 0
    with_recency = recency.shape[1] > 0
    ring_mask = ring.shape[0] - 1
    room = capacity - state[COUNT]
    added = min(room, codes.shape[0])
    for index in range(added):
        partition = partitions[index]
        count = counts[partition]
        place = count & (chunk_size - 1)
        if place == 0:
            chunk = state[FREE]
            state[FREE] = next_chunk[chunk]
            next_chunk[chunk] = NONE
            if count == 0:
                head[partition] = chunk
                _link_last(age, state, OLDEST, NEWEST, partition)
                state[OCCUPIED] += 1
                if since.shape[0] > 0:
                    since[partition] = state[ENTERED] + index
            else:
                next_chunk[tail[partition]] = chunk
            tail[partition] = chunk
        if with_recency and state[MOST_RECENT] != partition:
            if count > 0:
                _unlink(recency, state, LEAST_RECENT, MOST_RECENT, partition)
            _link_last(recency, state, LEAST_RECENT, MOST_RECENT, partition)
        slot = tail[partition] * chunk_size + place
        pool_codes[slot] = codes[index]
        pool_references[slot] = np.uint32(references[index])
        counts[partition] = count + 1
        if with_positions:
            sequence = state[ENTERED] + index
            pool_sequence[slot] = np.uint32(sequence)
            ring[sequence & ring_mask] = partition
            alive[(sequence & ring_mask) >> BLOCK_BITS] += 1
    state[COUNT] += added
    state[ENTERED] += added
    return added


@kernel
def drained_bounds(partitions: Int64Array, counts: Int32Array, bounds: Int64Array) -> None:
    """Work out where the tuples of each partition will start."""
    # A count is negative while its partition has been seen, so that a repeated partition counts once.
    for index in range(partitions.shape[0]):
        count = max(0, counts[partitions[index]])
        bounds[index + 1] = bounds[index] + count
        if count:
            counts[partitions[index]] = -count
    for index in range(partitions.shape[0]):
        counts[partitions[index]] = abs(counts[partitions[index]])


@kernel
def drain_tuples(
    partitions: Int64Array,
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
    """Empty the chunk lists of partitions into arrays."""
    with_positions = ring.shape[0] > 0
    with_recency = recency.shape[1] > 0
    ring_mask = ring.shape[0] - 1
    for index in range(partitions.shape[0]):
        partition = partitions[index]
        left = counts[partition]
        if left == 0:
            continue
        state[COUNT] -= left
        state[OCCUPIED] -= 1
        out = bounds[index]
        chunk = head[partition]
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
                state[FREE] = head[partition]
            else:
                chunk = next_chunk[chunk]
        counts[partition] = 0
        head[partition] = NONE
        tail[partition] = NONE
        _unlink(age, state, OLDEST, NEWEST, partition)
        if with_recency:
            _unlink(recency, state, LEAST_RECENT, MOST_RECENT, partition)


@kernel
def nth_youngest(ring: Int32Array, alive: Int32Array, entered: int, rank: int) -> Any:
    """Return the partition of the tuple at a rank from the young end."""
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
    for partition in range(head.shape[0]):
        chunk = head[partition]
        while chunk != NONE:
            used[chunk] = True
            chunk = next_chunk[chunk]
    free = 0
    for partition in range(head.shape[0]):
        before, chunk = NONE, head[partition]
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
                    head[partition] = free
                else:
                    next_chunk[before] = free
                if after == NONE:
                    tail[partition] = free
                chunk = free
            before, chunk = chunk, after
    state[FREE] = NONE
    for offset in range(limit):
        chunk = limit - 1 - offset
        if not used[chunk]:
            next_chunk[chunk] = state[FREE]
            state[FREE] = chunk
