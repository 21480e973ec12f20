"""The papers' steps, one tuple at a time, in lists: slow, and written without a look at the engine.

Each function returns the reads of the disk phase: the page, and the positions of the tuples it answered. Where a read
is of several `pages`, it begins at the page of the key that is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from small_trace import page_of

Reads = list[tuple[int, list[int]]]


def hybridjoin(keys: Sequence[int], slots: int, pages: int = 1) -> Reads:
    """Fill H_S; read the page of the oldest; all it answers leave; as many new ones enter."""
    return _queue_join(keys, slots, lambda queue: queue[0], pages=pages)


def hybridjoin_l(keys: Sequence[int], slots: int, share: float, patience: float, pages: int = 1) -> Reads:
    """As HYBRIDJOIN, but the key looked up stands at a share of the queue from the young end.

    Ours: once `patience` times the slots have entered after the oldest, it goes first.
    """

    def choose(queue: list[int], entered: int) -> int:
        if entered - queue[0] >= patience * slots:
            return queue[0]
        return queue[len(queue) - 1 - min(len(queue) - 1, int(share * len(queue)))]

    return _queue_join(keys, slots, None, choose, pages=pages)


def x_hybridjoin(keys: Sequence[int], slots: int, pinned: Collection[int], pages: int = 1) -> Reads:
    """As HYBRIDJOIN, but in each iteration the pinned pages answer what they can before the oldest is looked up."""
    return _queue_join(keys, slots, lambda queue: queue[0], pinned=pinned, pages=pages)


def optimised_x_hybridjoin(keys: Sequence[int], slots: int, cached: Collection[int], pages: int = 1) -> Reads:
    """As HYBRIDJOIN over the tuples that the hash table of frequent master tuples does not answer on arrival."""
    misses = [position for position, key in enumerate(keys) if key not in cached]
    reads = hybridjoin([keys[position] for position in misses], slots, pages)
    return [(page, [misses[index] for index in answered]) for page, answered in reads]


def inlj(keys: Sequence[int]) -> Reads:
    """One tuple, one look-up."""
    return [(page_of(key), [position]) for position, key in enumerate(keys)]


def meshjoin(keys: Sequence[int], slots: int, pages: int) -> Reads:
    """In each iteration w tuples enter and the next page of the ring passes by; h_S = w * pages."""
    part = slots // pages
    waiting: list[int] = []
    reads: Reads = []
    taken = 0
    while taken < len(keys) or waiting:
        new = range(taken, min(taken + part, len(keys)))
        waiting.extend(new)
        taken += len(new)
        page = len(reads) % pages
        answered = [position for position in waiting if page_of(keys[position]) == page]
        waiting = [position for position in waiting if position not in answered]
        reads.append((page, answered))
    return reads


def _queue_join(
    keys: Sequence[int],
    slots: int,
    oldest: Callable[[list[int]], int] | None,
    choose: Callable[[list[int], int], int] | None = None,
    pinned: Collection[int] = (),
    pages: int = 1,
) -> Reads:
    queue: list[int] = []
    reads: Reads = []
    taken = 0
    while taken < len(keys) or queue:
        while taken < len(keys) and len(queue) < slots:
            queue.append(taken)
            taken += 1
        queue = [position for position in queue if page_of(keys[position]) not in pinned]
        if not queue:
            continue
        chosen = oldest(queue) if oldest is not None else choose(queue, taken) if choose is not None else -1
        page = page_of(keys[chosen])
        answered = [position for position in queue if page <= page_of(keys[position]) < page + pages]
        queue = [position for position in queue if position not in answered]
        reads.append((page, answered))
    return reads
