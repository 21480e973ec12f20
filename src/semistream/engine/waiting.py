"""The stream tuples that wait for a read, kept by the partition of the master table they need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt32Array
from semistream.core.compile import kernel

# Positions in `_state`.
_COUNT, _FREE, _OLDEST, _NEWEST, _LEAST_RECENT, _MOST_RECENT, _ENTERED, _OCCUPIED = range(8)
_NONE = -1


@dataclass(frozen=True)
class Drained:
    """Tuples that stopped waiting, partition after partition and in order of arrival inside each."""

    codes: Int64Array
    references: Int64Array
    bounds: Int64Array
    """Where the tuples of each partition start, and at the end their number."""


class WaitingTuples:
    """Codes and references of waiting tuples in chunk lists, one list for each partition.  # H_S and Q

    A read of a partition removes all that wait for it, so the oldest waiting tuple is always on the partition that has
    been non-empty for the longest time: a list of partitions in that order replaces the papers' queue of tuples, and
    the chunk lists replace their hash multimap. `capacity` bounds the tuples (h_S); the pool of chunks is made large
    enough for it. A reference is a number below 2**32 that leads to the rest of the tuple: its slot among the stream
    rows, or its position in the stream. Adding costs about 10 ns a tuple, draining about 5 ns. Not thread-safe: it belongs to the disk phase.
    """

    def __init__(
        self, partition_count: int, capacity: int, *, positions: bool = False, youngest: bool = False
    ) -> None:
        self.partition_count = max(1, partition_count)
        self._head = np.full(self.partition_count, _NONE, dtype=np.int32)
        self._tail = np.full(self.partition_count, _NONE, dtype=np.int32)
        self.counts = np.zeros(self.partition_count, dtype=np.int32)
        """The tuples that wait for each partition; to be read only."""
        self._age = np.full((2, self.partition_count), _NONE, dtype=np.int32)
        self._recency = np.full((2, self.partition_count if youngest else 0), _NONE, dtype=np.int32)
        self._state = np.zeros(8, dtype=np.int64)
        self._state[[_OLDEST, _NEWEST, _LEAST_RECENT, _MOST_RECENT]] = _NONE
        self._with_positions = positions
        self.resize(capacity)

    def resize(self, capacity: int) -> None:
        """Change how many tuples can wait; only while none does."""
        assert not self.count, "tuples wait"
        self._codes = self._references = self._sequence = self._next_chunk = _NO_INT32  # freed before the new ones
        self.capacity = capacity
        self._chunk_tuples = chunk_tuples(capacity, self.partition_count)
        chunks = chunk_count(capacity, self.partition_count)
        self._codes = np.empty(chunks * self._chunk_tuples, dtype=np.int64)
        self._references = np.empty(chunks * self._chunk_tuples, dtype=np.uint32)
        self._next_chunk = np.arange(1, chunks + 1, dtype=np.int32)
        self._next_chunk[-1] = _NONE
        self._state[_FREE] = 0
        self._queue = _QueuePositions(capacity) if self._with_positions else None
        self._sequence = np.empty(len(self._references) if self._with_positions else 0, dtype=np.uint32)

    @property
    def count(self) -> int:
        """The tuples that wait."""
        return int(self._state[_COUNT])

    @property
    def entered(self) -> int:
        """The tuples that have ever been added."""
        return int(self._state[_ENTERED])

    @property
    def size_bytes(self) -> int:
        """The memory of all arrays."""
        arrays = [self._codes, self._references, self._next_chunk, self._head, self._tail, self.counts]
        own = sum(array.nbytes for array in [*arrays, self._age, self._recency, self._sequence])
        return own + (self._queue.size_bytes if self._queue else 0)

    def add(self, codes: Int64Array, partitions: Int32Array, references: Int64Array) -> int:
        """Let tuples wait, in the order given, and return how many found a place."""
        queue = self._queue
        return int(
            _add(
                codes,
                partitions,
                references,
                self.capacity,
                self._chunk_tuples,
                self._codes,
                self._references,
                self._sequence,
                self._next_chunk,
                self._head,
                self._tail,
                self.counts,
                self._age,
                self._recency,
                self._state,
                queue.partitions if queue else _NO_INT32,
                queue.alive if queue else _NO_INT32,
            )
        )

    def drain(self, partitions: Int64Array) -> Drained:
        """Remove and return all tuples that wait for these partitions; a repeated one has none left."""
        bounds = np.zeros(len(partitions) + 1, dtype=np.int64)
        _bounds(partitions, self.counts, bounds)
        codes = np.empty(bounds[-1], dtype=np.int64)
        references = np.empty(bounds[-1], dtype=np.int64)
        queue = self._queue
        _drain(
            partitions,
            bounds,
            codes,
            references,
            self._chunk_tuples,
            self._codes,
            self._references,
            self._sequence,
            self._next_chunk,
            self._head,
            self._tail,
            self.counts,
            self._age,
            self._recency,
            self._state,
            queue.partitions if queue else _NO_INT32,
            queue.alive if queue else _NO_INT32,
        )
        return Drained(codes, references, bounds)

    def in_order_of_age(self) -> Int64Array:
        """Return the partitions that some tuple waits for, the oldest tuple's first."""
        partitions = np.empty(int(self._state[_OCCUPIED]), dtype=np.int64)
        _list(self._age, int(self._state[_OLDEST]), partitions)
        return partitions

    def oldest(self, rank: int = 0) -> int:
        """Return the partition of the oldest tuple, or the next oldest partition for `rank` 1; -1 if there is none."""
        return _walk(self._age[1], int(self._state[_OLDEST]), rank)

    def youngest(self, rank: int = 0) -> int:
        """Return the partition of the youngest tuple, or the one before it for `rank` 1; -1 if there is none.

        Only if made with `youngest`.
        """
        return _walk(self._recency[0], int(self._state[_MOST_RECENT]), rank)

    def fullest(self) -> int:
        """Return the partition that most tuples wait for; costs a look at each partition."""
        return int(self.counts.argmax()) if self.count else _NONE

    def at(self, share: float) -> int:
        """Return the partition of the tuple at this share of the queue, 0 being the youngest and 1 the oldest."""
        assert self._queue is not None, "made without positions"
        rank = min(self.count - 1, int(share * self.count))
        return int(_nth_youngest(self._queue.partitions, self._queue.alive, self.entered, rank))

    def oldest_lag(self) -> int:
        """Return how many tuples have been added since the oldest was; needs positions."""
        assert self._queue is not None, "made without positions"
        oldest = self.oldest()
        if oldest == _NONE:
            return 0
        first = int(self._sequence[int(self._head[oldest]) * self._chunk_tuples])
        return (self.entered - first) & 0xFFFFFFFF

    def oldest_reference(self) -> int:
        """Return the reference of the oldest tuple; only while some wait."""
        return int(self._references[int(self._head[self.oldest()]) * self._chunk_tuples])

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        assert self.count == int(self.counts.sum()) <= self.capacity
        seen = self.in_order_of_age().tolist()
        assert sorted(seen) == np.flatnonzero(self.counts).tolist()
        free, chunk = 0, int(self._state[_FREE])
        while chunk != _NONE:
            free, chunk = free + 1, int(self._next_chunk[chunk])
        used = int(-(-self.counts // self._chunk_tuples).sum())
        assert free + used == len(self._next_chunk)


class _QueuePositions:
    """The waiting tuples in the order they were added, as a ring that finds the tuple at a rank from the young end."""

    SPAN = 5
    """How many times the capacity the oldest tuple may lag behind; who reads out of turn must see to it."""

    def __init__(self, capacity: int) -> None:
        size = 1 << max(8, (capacity * self.SPAN - 1).bit_length())
        self.partitions = np.full(size, _NONE, dtype=np.int32)
        self.alive = np.zeros(size >> _BLOCK_BITS, dtype=np.int32)

    @property
    def size_bytes(self) -> int:
        return self.partitions.nbytes + self.alive.nbytes


_BLOCK_BITS = 8
_NO_INT32 = np.empty(0, dtype=np.int32)


def chunk_tuples(capacity: int, partition_count: int) -> int:
    """Return how many tuples a chunk holds: few enough that half-empty chunks cost little, at most 64."""
    wanted = max(4, min(64, capacity // max(1, partition_count) // 4))
    return 1 << (wanted.bit_length() - 1)


def chunk_count(capacity: int, partition_count: int) -> int:
    """Return how many chunks always hold `capacity` tuples, whatever partitions they wait for."""
    size = chunk_tuples(capacity, partition_count)
    return -(-capacity // size) + min(partition_count, capacity)


def _walk(links: Int32Array, partition: int, steps: int) -> int:
    while steps and partition != _NONE:
        partition = int(links[partition])
        steps -= 1
    return partition


@kernel
def _list(links: Int32Array, first: int, partitions: Int64Array) -> None:
    partition = first
    for index in range(partitions.shape[0]):
        partitions[index] = partition
        partition = links[1, partition]


@kernel
def _link_last(links: Int32Array, state: Int64Array, first: int, last: int, partition: int) -> None:
    links[0, partition] = state[last]
    links[1, partition] = _NONE
    if state[last] == _NONE:
        state[first] = partition
    else:
        links[1, state[last]] = partition
    state[last] = partition


@kernel
def _unlink(links: Int32Array, state: Int64Array, first: int, last: int, partition: int) -> None:
    before, after = links[0, partition], links[1, partition]
    if before == _NONE:
        state[first] = after
    else:
        links[1, before] = after
    if after == _NONE:
        state[last] = before
    else:
        links[0, after] = before


@kernel
def _add(
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
    state: Int64Array,
    ring: Int32Array,
    alive: Int32Array,
) -> int:
    with_positions = ring.shape[0] > 0
    with_recency = recency.shape[1] > 0
    ring_mask = ring.shape[0] - 1
    room = capacity - state[_COUNT]
    added = min(room, codes.shape[0])
    for index in range(added):
        partition = partitions[index]
        count = counts[partition]
        place = count & (chunk_size - 1)
        if place == 0:
            chunk = state[_FREE]
            state[_FREE] = next_chunk[chunk]
            next_chunk[chunk] = _NONE
            if count == 0:
                head[partition] = chunk
                _link_last(age, state, _OLDEST, _NEWEST, partition)
                state[_OCCUPIED] += 1
            else:
                next_chunk[tail[partition]] = chunk
            tail[partition] = chunk
        if with_recency and state[_MOST_RECENT] != partition:
            if count > 0:
                _unlink(recency, state, _LEAST_RECENT, _MOST_RECENT, partition)
            _link_last(recency, state, _LEAST_RECENT, _MOST_RECENT, partition)
        slot = tail[partition] * chunk_size + place
        pool_codes[slot] = codes[index]
        pool_references[slot] = np.uint32(references[index])
        counts[partition] = count + 1
        if with_positions:
            sequence = state[_ENTERED] + index
            pool_sequence[slot] = np.uint32(sequence)
            ring[sequence & ring_mask] = partition
            alive[(sequence & ring_mask) >> _BLOCK_BITS] += 1
    state[_COUNT] += added
    state[_ENTERED] += added
    return added


@kernel
def _bounds(partitions: Int64Array, counts: Int32Array, bounds: Int64Array) -> None:
    # A count is negative while its partition has been seen, so that a repeated partition counts once.
    for index in range(partitions.shape[0]):
        count = max(0, counts[partitions[index]])
        bounds[index + 1] = bounds[index] + count
        if count:
            counts[partitions[index]] = -count
    for index in range(partitions.shape[0]):
        counts[partitions[index]] = abs(counts[partitions[index]])


@kernel
def _drain(
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
    with_positions = ring.shape[0] > 0
    with_recency = recency.shape[1] > 0
    ring_mask = ring.shape[0] - 1
    for index in range(partitions.shape[0]):
        partition = partitions[index]
        left = counts[partition]
        if left == 0:
            continue
        state[_COUNT] -= left
        state[_OCCUPIED] -= 1
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
                    ring[place] = _NONE
                    alive[place >> _BLOCK_BITS] -= 1
            left -= size
            if left == 0:
                next_chunk[chunk] = state[_FREE]
                state[_FREE] = head[partition]
            else:
                chunk = next_chunk[chunk]
        counts[partition] = 0
        head[partition] = _NONE
        tail[partition] = _NONE
        _unlink(age, state, _OLDEST, _NEWEST, partition)
        if with_recency:
            _unlink(recency, state, _LEAST_RECENT, _MOST_RECENT, partition)


@kernel
def _nth_youngest(ring: Int32Array, alive: Int32Array, entered: int, rank: int) -> int:
    ring_mask = ring.shape[0] - 1
    place = (entered - 1) & ring_mask
    left = rank
    # First the rest of the block that the youngest tuple is in, then whole blocks, then inside one block.
    steps = 0
    while steps <= ring_mask:
        if place & ((1 << _BLOCK_BITS) - 1) == (1 << _BLOCK_BITS) - 1:
            block = place >> _BLOCK_BITS
            if left >= alive[block]:
                left -= alive[block]
                place = (place - (1 << _BLOCK_BITS)) & ring_mask
                steps += 1 << _BLOCK_BITS
                continue
        if ring[place] != _NONE:
            if left == 0:
                return ring[place]
            left -= 1
        place = (place - 1) & ring_mask
        steps += 1
    return _NONE
