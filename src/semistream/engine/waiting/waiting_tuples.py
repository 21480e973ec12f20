"""The stream tuples that wait for a read, kept by the page group of the master table they need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.engine.waiting.waiting_kernels import (
    BLOCK_BITS,
    COUNT,
    ENTERED,
    FREE,
    LEAST_RECENT,
    MOST_RECENT,
    NEWEST,
    NONE,
    OCCUPIED,
    OLDEST,
    add_tuples,
    drain_tuples,
    drained_bounds,
    list_page_groups,
    move_chunks,
    nth_youngest,
)


@dataclass(frozen=True)
class Drained:
    """Tuples that stopped waiting, page group after page group and in order of arrival inside each."""

    codes: Int64Array
    references: Int64Array
    bounds: Int64Array
    """Where the tuples of each page group start, and at the end their number."""


class WaitingTuples:
    """Codes and references of waiting tuples in chunk lists, one list for each page group.  # H_S and Q

    A read of a page group removes all that wait for it, so the oldest waiting tuple is always on the group that has
    been non-empty for the longest time: a list of page groups in that order replaces the papers' queue of tuples, and
    the chunk lists replace their hash multimap. `capacity` bounds the tuples (h_S); the pool of chunks is made large
    enough for it. A reference is a number below 2**32 that leads to the rest of the tuple: its slot among the stream
    rows, or its position in the stream. Adding costs about 10 ns a tuple, draining about 15 ns. Not thread-safe: it
    belongs to the disk phase.
    """

    def __init__(
        self,
        page_group_count: int,
        capacity: int,
        *,
        positions: bool = False,
        youngest: bool = False,
        since: bool = False,
    ) -> None:
        self.page_group_count = max(1, page_group_count)
        self._head = np.full(self.page_group_count, NONE, dtype=np.int32)
        self._tail = np.full(self.page_group_count, NONE, dtype=np.int32)
        self.counts = np.zeros(self.page_group_count, dtype=np.int32)
        """The tuples that wait for each page group; to be read only."""
        self._age = np.full((2, self.page_group_count), NONE, dtype=np.int32)
        self._recency = np.full((2, self.page_group_count if youngest else 0), NONE, dtype=np.int32)
        self.since = np.zeros(self.page_group_count if since else 0, dtype=np.int64)
        """How many tuples had entered when the oldest of each page group did, if made with `since`; to be read only."""
        self._state = np.zeros(8, dtype=np.int64)
        self._state[[OLDEST, NEWEST, LEAST_RECENT, MOST_RECENT]] = NONE
        self._with_positions = positions
        self.resize(capacity)

    def resize(self, capacity: int) -> None:
        """Change how many tuples can wait, at least as many as do now.

        Memory is taken or given back in place. With positions, only while no tuple waits.
        """
        assert self.count <= capacity, "more tuples wait"
        if self.count:
            self._resize_pool(capacity)
            return
        self._codes = np.empty(0, dtype=np.int64)  # freed before the new arrays are made
        self._references = np.empty(0, dtype=np.uint32)
        self.capacity = capacity
        self._chunk_tuples = chunk_tuples(capacity, self.page_group_count)
        chunks = chunk_count(capacity, self.page_group_count, self._chunk_tuples)
        self._codes = np.empty(chunks * self._chunk_tuples, dtype=np.int64)
        self._references = np.empty(chunks * self._chunk_tuples, dtype=np.uint32)
        self._next_chunk = np.arange(1, chunks + 1, dtype=np.int32)
        self._next_chunk[-1] = NONE
        self._state[FREE] = 0
        self._queue = _QueuePositions(capacity) if self._with_positions else None
        self._sequence = np.empty(len(self._references) if self._with_positions else 0, dtype=np.uint32)

    def _resize_pool(self, capacity: int) -> None:
        assert not self._with_positions, "tuples wait"
        chunks = chunk_count(capacity, self.page_group_count, self._chunk_tuples)
        arrays = (self._codes, self._references)
        if chunks > len(self._next_chunk):
            self._next_chunk.resize(chunks, refcheck=False)
            for array in arrays:
                array.resize(chunks * self._chunk_tuples, refcheck=False)
        move_chunks(
            chunks,
            self._chunk_tuples,
            self._codes,
            self._references,
            self._next_chunk,
            self._head,
            self._tail,
            self._state,
        )
        self._next_chunk.resize(chunks, refcheck=False)
        for array in arrays:
            array.resize(chunks * self._chunk_tuples, refcheck=False)
        self.capacity = capacity

    @property
    def count(self) -> int:
        """The tuples that wait."""
        return int(self._state[COUNT])

    @property
    def entered(self) -> int:
        """The tuples that have ever been added."""
        return int(self._state[ENTERED])

    def add(self, codes: Int64Array, page_groups: Int32Array, references: Int64Array) -> int:
        """Let tuples wait, in the order given, and return how many found a place."""
        queue = self._queue
        return int(
            add_tuples(
                codes,
                page_groups,
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
                self.since,
                self._state,
                queue.page_groups if queue else _NO_INT32,
                queue.alive if queue else _NO_INT32,
            )
        )

    def waits_for(self, page_group: int) -> bool:
        """Say whether a tuple waits for a read of this page group."""
        return bool(self.counts[page_group])

    def drain(self, page_groups: Int64Array) -> Drained:
        """Remove and return all tuples that wait for these page groups; a repeated one has none left."""
        bounds = np.zeros(len(page_groups) + 1, dtype=np.int64)
        drained_bounds(page_groups, self.counts, bounds)
        codes = np.empty(bounds[-1], dtype=np.int64)
        references = np.empty(bounds[-1], dtype=np.int64)
        queue = self._queue
        drain_tuples(
            page_groups,
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
            queue.page_groups if queue else _NO_INT32,
            queue.alive if queue else _NO_INT32,
        )
        return Drained(codes, references, bounds)

    def in_order_of_age(self) -> Int64Array:
        """Return the page groups that some tuple waits for, the oldest tuple's first."""
        page_groups = np.empty(int(self._state[OCCUPIED]), dtype=np.int64)
        list_page_groups(self._age, int(self._state[OLDEST]), page_groups)
        return page_groups

    def oldest(self, rank: int = 0) -> int:
        """Return the page group of the oldest tuple, or the next oldest one for `rank` 1; -1 if there is none."""
        return _walk(self._age[1], int(self._state[OLDEST]), rank)

    def youngest(self, rank: int = 0) -> int:
        """Return the page group of the youngest tuple, or the one before it for `rank` 1; -1 if there is none.

        Only if made with `youngest`.
        """
        return _walk(self._recency[0], int(self._state[MOST_RECENT]), rank)

    def fullest(self) -> int:
        """Return the page group that most tuples wait for; costs a look at each page group."""
        return int(self.counts.argmax()) if self.count else NONE

    def at(self, share: float) -> int:
        """Return the page group of the tuple at this share of the queue, 0 being the youngest and 1 the oldest."""
        assert self._queue is not None, "made without positions"
        rank = min(self.count - 1, int(share * self.count))
        return int(nth_youngest(self._queue.page_groups, self._queue.alive, self.entered, rank))

    def oldest_lag(self) -> int:
        """Return how many tuples have been added since the oldest was; needs positions."""
        assert self._queue is not None, "made without positions"
        oldest = self.oldest()
        if oldest == NONE:
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
        free, chunk = 0, int(self._state[FREE])
        while chunk != NONE:
            free, chunk = free + 1, int(self._next_chunk[chunk])
        used = int(-(-self.counts // self._chunk_tuples).sum())
        assert free + used == len(self._next_chunk)


class _QueuePositions:
    """The waiting tuples in the order they were added, as a ring that finds the tuple at a rank from the young end."""

    SPAN = 5
    """How many times the capacity the oldest tuple may lag behind; who reads out of turn must see to it."""

    def __init__(self, capacity: int) -> None:
        size = 1 << max(8, (capacity * self.SPAN - 1).bit_length())
        self.page_groups = np.full(size, NONE, dtype=np.int32)
        self.alive = np.zeros(size >> BLOCK_BITS, dtype=np.int32)


_NO_INT32 = np.empty(0, dtype=np.int32)


def chunk_tuples(capacity: int, page_group_count: int) -> int:
    """Return how many tuples a chunk holds: few enough that half-empty chunks cost little, at most 64."""
    wanted = max(4, min(64, capacity // max(1, page_group_count) // 4))
    return 1 << (wanted.bit_length() - 1)


def chunk_count(capacity: int, page_group_count: int, size: int | None = None) -> int:
    """Return how many chunks always hold `capacity` tuples, whatever page groups they wait for."""
    size = size or chunk_tuples(capacity, page_group_count)
    return -(-capacity // size) + min(page_group_count, capacity)


def _walk(links: Int32Array, page_group: int, steps: int) -> int:
    while steps and page_group != NONE:
        page_group = int(links[page_group])
        steps -= 1
    return page_group
