"""Divides the memory of a join among its parts, by the bytes we allocate or by the papers' book-keeping."""

from __future__ import annotations

from dataclasses import dataclass

from semistream.core.budget import MemoryBudget
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.sizing.buffer_shares import RunBuffers
from semistream.engine.sizing.memory_advice import too_small
from semistream.engine.sizing.settled_split import SettledSplit
from semistream.engine.sizing.split import (
    BlockSpace,
    Bytes,
    Cache,
    MemoryShare,
    Reads,
    Split,
    TableShare,
    TupleSpace,
    WholeTable,
)
from semistream.engine.sizing.table_sizes import (
    largest_page_bytes,
    mean_row_bytes,
    page_group_bytes,
    page_group_pages,
    table_bytes,
    usual_page_bytes,
)
from semistream.engine.waiting.waiting_tuples import chunk_count, chunk_tuples
from semistream.store.contract import MasterStore

_PAPERS_STREAM_TUPLE_BYTES = 20  # v_S
_PAPERS_FUDGE_FACTOR = 8
_PAPERS_QUEUE_NODE_BYTES = 12
_PAPERS_WAITING_BYTES = _PAPERS_FUDGE_FACTOR * _PAPERS_STREAM_TUPLE_BYTES + _PAPERS_QUEUE_NODE_BYTES
_PAPERS_READ_BYTES = 850 * 120 + 4000  # d_B = 850 tuples, as near as whole pages come
_MIN_SLOTS = 64
_MIN_WAITING_SHARE = 64
"""A table is held in memory only if one part in so many is left for waiting tuples, which then are few."""
_MANY_PAGE_GROUPS = 4096
_TYPICAL_BYTES = 1_000
"""Slots are made for rows that take at most so much in variable columns; more slots than are needed cost little."""
ROW_SHARE = 8
"""A single row or page may take one part in so many of the memory; what is larger goes to the dead letters."""


@dataclass(frozen=True)
class Sizes:
    """What each part of a join may hold."""

    pages_per_read: int
    waiting_slots: int  # h_S
    cache_tuples: int  # h_R
    cache_blocks: int
    """Page groups that the cache may hold."""
    cache_bytes: int
    """What the cache may hold in all."""
    cache_variable_bytes: int
    """Bytes for the columns without a fixed width of cached tuples."""
    handover_slots: int  # i_B
    variable_bytes: int
    """Bytes for the columns without a fixed width of waiting stream tuples."""
    output_bytes: int
    output_slots: int
    """How many tuples that have been answered may still hold their slots."""
    chunk_rows: int
    run_page_groups: int = 1
    """How many page groups a read may bring, where it brings runs of them."""
    run_bytes: int = 0
    """What a read of runs may transfer, if it is more than one page group."""
    slots_per_block: int = 0
    """How many waiting tuples take as much memory as one cached page group."""
    waiting_bytes: float = 0.0
    """What a waiting tuple takes."""
    holds_table: bool = False
    """The cache has room for every master tuple, and none need ever leave it."""
    cached_bytes: float = 0.0
    """What a cached tuple takes, with all that policies need for it."""


def papers_sizes(settled: SettledSplit, store: MasterStore, budget: MemoryBudget) -> Sizes:
    """Return the sizes as the papers count: 172 bytes a waiting tuple, cached master tuples at their bare size."""
    memory, split, runs = budget.total_bytes, settled.split, settled.runs
    if runs is None:
        pages = page_group_pages(store, min(_wanted_read_bytes(split, store, _PAPERS_READ_BYTES), memory // 16))
    else:
        pages = _smallest_pages(runs, store, split.page_group_bytes, memory)
    row_bytes = mean_row_bytes(store)
    read_bytes = page_group_bytes(store, pages)
    page_groups = -(-store.page_count // pages)
    cache_bytes = _cache_bytes(split.cache, memory, read_bytes, read_bytes)
    handover_bytes = settled.handover_bytes
    runs_bytes = int(runs.share * memory) if runs else 0
    reads_bytes = (1 + runs.reads_ahead) * runs_bytes if runs else 0
    budget.reserve("disk buffer", min(memory, max(reads_bytes, split.buffers * read_bytes)))
    budget.reserve("cache", min(budget.free_bytes, cache_bytes))
    budget.reserve("handover buffer", min(budget.free_bytes, handover_bytes))
    budget.reserve("page book-keeping", min(budget.free_bytes, page_groups * split.page_group_bytes))
    cached_bytes = row_bytes + _policy_bytes(split.cache)
    cache_tuples = _cache_tuples(split.cache, store, int(cache_bytes / cached_bytes))
    more_bytes = max(0, int(row_bytes * store.row_count) - cache_bytes)
    fits = more_bytes <= budget.free_bytes - memory // _MIN_WAITING_SHARE
    holds_table = fits and _takes_table_if_it_fits(split.cache)
    if holds_table:
        budget.reserve("cache", more_bytes)
        cache_tuples = max(1, store.row_count)
    slots = budget.free_bytes // _PAPERS_WAITING_BYTES
    if slots < _MIN_SLOTS:
        raise too_small(memory)
    budget.reserve("waiting tuples", slots * _PAPERS_WAITING_BYTES)
    return Sizes(
        pages_per_read=pages,
        waiting_slots=slots,
        cache_tuples=cache_tuples,
        cache_blocks=max(1, int(cache_bytes // read_bytes)) if isinstance(split.cache, BlockSpace) else 0,
        cache_bytes=0,  # blocks are counted as the papers do
        cache_variable_bytes=cache_bytes,
        handover_slots=handover_bytes // _PAPERS_STREAM_TUPLE_BYTES,
        variable_bytes=memory,
        output_bytes=memory // 8,
        output_slots=65_536,
        chunk_rows=65_536,
        run_page_groups=max(1, runs_bytes // read_bytes),
        slots_per_block=read_bytes // _PAPERS_WAITING_BYTES,
        waiting_bytes=_PAPERS_WAITING_BYTES,
        holds_table=holds_table,
        cached_bytes=cached_bytes,
    )


def real_sizes(
    settled: SettledSplit,
    store: MasterStore,
    budget: MemoryBudget,
    *,
    slot_bytes: int,
    stream_row_bytes: float,
    stream_variable_bytes: float,
    largest_variable_bytes: int,
    cached_slot_bytes: int,
    cached_variable_bytes: float,
) -> Sizes:
    """Return sizes so that what is allocated stays within the budget.

    `slot_bytes` is what the row of a waiting stream tuple takes in columns of fixed width (0 if only keys are joined),
    `stream_variable_bytes` in all others, and `stream_row_bytes` what it takes as an Arrow row; of a cached master
    tuple `cached_slot_bytes` is what it takes in columns of fixed width and `cached_variable_bytes` in all others.
    Rows that turn out larger than these find fewer slots filled, not more bytes: variable columns have bytes of their
    own, of which there are `largest_variable_bytes` at least.
    """
    memory, split, runs = budget.total_bytes, settled.split, settled.runs
    if stream_variable_bytes > _TYPICAL_BYTES:  # perhaps only the first rows are so large
        stream_row_bytes -= stream_variable_bytes - _TYPICAL_BYTES
        stream_variable_bytes = _TYPICAL_BYTES
    divided = max(memory // 4, memory - store.index_bytes)  # the index has its size, whatever the shares of the others
    usual = min(max(divided // 64, 64_000), 1_000_000)
    if runs is None:
        pages = page_group_pages(store, min(_wanted_read_bytes(split, store, usual), memory // 16))
    else:
        pages = _smallest_pages(runs, store, 32 + split.page_group_bytes, memory)
    read_bytes = max(page_group_bytes(store, pages), largest_page_bytes(store, memory // ROW_SHARE))
    page_groups = max(1, -(-store.page_count // pages))
    output_bytes = min(4_000_000, divided // 40) if slot_bytes else 0
    output_slots = int(output_bytes / (16 + stream_row_bytes))
    chunk_bytes = min(4_000_000, divided // 24)
    block_bytes = int(1.3 * page_group_bytes(store, pages))  # with its codes, and what allocators lose
    cache_bytes = _cache_bytes(split.cache, divided, read_bytes, int(1.3 * read_bytes))
    handover_bytes = settled.handover_bytes
    handover_slots = int(handover_bytes / (20 + slot_bytes))
    runs_bytes = int(runs.share * divided) if runs else 0
    fixed = {
        "index": store.index_bytes,
        "page book-keeping": page_groups * (32 + split.page_group_bytes),
        "disk buffer": _disk_buffer_bytes(split.buffers, runs, read_bytes, runs_bytes),
        "output": 4 * output_bytes + output_slots * slot_bytes,
        "work space": divided // 16,
        "input": 2 * chunk_bytes,
        "cache": cache_bytes,
        "handover buffer": handover_bytes,
    }
    cached_table_bytes = TupleCache.slot_bytes(store.row_count)
    others_bytes = sum(fixed.values()) - cache_bytes + budget.used_bytes
    min_waiting_bytes = memory // _MIN_WAITING_SHARE
    fits = cached_table_bytes + others_bytes <= memory - min_waiting_bytes
    holds_table = fits and _takes_table_if_it_fits(split.cache)
    if holds_table:
        fixed["cache"] = max(cache_bytes, cached_table_bytes)
    queue_bytes = 12 + (25 if split.positions else 0)
    elsewhere = slot_bytes + 1.25 * stream_variable_bytes
    needed = sum(fixed.values()) + budget.used_bytes
    if needed >= memory or (slot_bytes and memory // ROW_SHARE < usual_page_bytes(store)):
        raise too_small(memory)
    for component, size_bytes in fixed.items():
        budget.reserve(component, size_bytes)
    slots = _slots_within(budget.free_bytes, page_groups, queue_bytes, elsewhere)
    if stream_variable_bytes:
        slots_bytes = budget.free_bytes - largest_variable_bytes
        slots = min(slots, _slots_within(slots_bytes, page_groups, queue_bytes, slot_bytes))
    if slots < _MIN_SLOTS:
        raise too_small(memory)
    variable_bytes = 0
    if stream_variable_bytes:
        variable_bytes = budget.free_bytes - int(_queue_bytes(slots, page_groups, queue_bytes) + slots * slot_bytes)
    budget.reserve("waiting tuples", budget.free_bytes)
    per_cached = cached_slot_bytes + 1.25 * cached_variable_bytes + _policy_bytes(split.cache)
    fitting = store.row_count if holds_table else fitting_tuples(cache_bytes, per_cached)
    cache_tuples = _cache_tuples(split.cache, store, fitting)
    cache_variable_bytes = cache_tuples * cached_variable_bytes * 1.25
    return Sizes(
        pages_per_read=pages,
        waiting_slots=slots,
        cache_tuples=cache_tuples,
        cache_blocks=max(1, cache_bytes // max(1, block_bytes)) if isinstance(split.cache, BlockSpace) else 0,
        cache_bytes=cache_bytes,
        cache_variable_bytes=int(cache_variable_bytes),
        handover_slots=handover_slots,
        variable_bytes=variable_bytes,
        output_bytes=output_bytes,
        output_slots=output_slots,
        chunk_rows=max(1, min(65_536, int(chunk_bytes / (40 + stream_row_bytes)))),
        run_page_groups=max(1, runs_bytes // page_group_bytes(store, pages)),
        run_bytes=runs_bytes,
        slots_per_block=0 if slot_bytes else block_bytes // queue_bytes,
        waiting_bytes=budget.by_component()["waiting tuples"] / slots,
        holds_table=holds_table,
        cached_bytes=TupleCache.MAX_SLOT_BYTES + per_cached,
    )


def _smallest_pages(runs: RunBuffers, store: MasterStore, noted_bytes: int, memory: int) -> int:
    """Return how many pages a page group must have so that `noted_bytes` for each take a 32nd of the memory at most.

    More if they are to be larger, but then not so many that few page groups are left to choose from.
    """
    pages = max(1, -(-store.page_count * noted_bytes * 32 // memory))
    if not runs.min_page_group_bytes:
        return pages
    return max(pages, min(store.page_count // _MANY_PAGE_GROUPS, page_group_pages(store, runs.min_page_group_bytes)))


def _wanted_read_bytes(split: Split, store: MasterStore, usual: int) -> int:
    match split.read:
        case Bytes(count):
            return count
        case TableShare(share) if store.page_count:
            return int(share * table_bytes(store)) or usual
        case _:
            return usual


def _cache_bytes(cache: Cache, memory: int, read_bytes: int, block_bytes: int) -> int:
    """Return the bytes of the cache; where it holds whole page groups, those of one at least."""
    match cache:
        case TupleSpace(MemoryShare(share)):
            return int(share * memory)
        case BlockSpace(MemoryShare(share)):
            return max(int(share * memory), block_bytes)
        case BlockSpace(Reads(count)):
            return max(int(count * read_bytes), block_bytes)
        case _:
            return 0


def _cache_tuples(cache: Cache, store: MasterStore, fitting: int) -> int:
    match cache:
        case WholeTable():
            return max(1, store.row_count)
        case TupleSpace():
            return fitting
        case _:
            return 0


def _policy_bytes(cache: Cache) -> int:
    return cache.policy_bytes if isinstance(cache, TupleSpace) else 0


def _takes_table_if_it_fits(cache: Cache) -> bool:
    return isinstance(cache, TupleSpace) and cache.table_if_it_fits


def fitting_tuples(cache_bytes: int, row_bytes: float) -> int:
    """Return the most tuples whose slots and rows fit."""
    low, high = 0, cache_bytes
    while low < high:
        middle = (low + high + 1) // 2
        if TupleCache.slot_bytes(middle) + middle * row_bytes <= cache_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def _disk_buffer_bytes(buffers: int, runs: RunBuffers | None, read_bytes: int, runs_bytes: int) -> int:
    """Return the memory of all reads: those under way, the one that is probed, and one that the output still needs."""
    reads = (2 + runs.reads_ahead) * max(runs_bytes, read_bytes) if runs and runs_bytes else 0
    return max((buffers + 2) * read_bytes, reads)


def _slots_within(size_bytes: int, page_groups: int, queue_bytes: int, elsewhere: float) -> int:
    """Return how many tuples can wait if each takes so much in the queue and elsewhere."""
    slots = max(0, int(size_bytes / (queue_bytes + elsewhere)))
    while slots and _queue_bytes(slots, page_groups, queue_bytes) + slots * elsewhere > size_bytes:
        slots = int(slots * 0.97)
    return slots


def _queue_bytes(slots: int, page_groups: int, queue_bytes: int) -> int:
    return chunk_count(slots, page_groups) * (chunk_tuples(slots, page_groups) * queue_bytes + 4)
