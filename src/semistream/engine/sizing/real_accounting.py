"""Divides the memory of a join among its parts by the bytes that we allocate."""

from __future__ import annotations

from semistream.core.budget import MemoryBudget
from semistream.engine.cache.kept_pages import KeptPages
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.sizing.buffer_shares import RunBuffers
from semistream.engine.sizing.memory_advice import too_small
from semistream.engine.sizing.settled_split import SettledSplit
from semistream.engine.sizing.sizes import ROW_SHARE, Sizes
from semistream.engine.sizing.split import BlockSpace
from semistream.engine.sizing.table_sizes import (
    largest_page_bytes,
    page_group_bytes,
    page_group_pages,
    usual_page_bytes,
)
from semistream.engine.sizing.wishes import (
    MIN_SLOTS,
    MIN_WAITING_SHARE,
    bytes_of_cache,
    policy_bytes_of,
    smallest_page_group,
    takes_table_if_it_fits,
    tuples_of_cache,
    wanted_read_bytes,
)
from semistream.engine.waiting.waiting_tuples import chunk_count, chunk_tuples
from semistream.store.contract import MasterStore

_TYPICAL_BYTES = 1_000
"""Slots are made for rows that take at most so much in variable columns; more slots than are needed cost little."""


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
    listed_by_page: bool = False,
) -> Sizes:
    """Return sizes so that what is allocated stays within the budget.

    `slot_bytes` is what the row of a waiting stream tuple takes in columns of fixed width (0 if only keys are joined),
    `stream_variable_bytes` in all others, and `stream_row_bytes` what it takes as an Arrow row; of a cached master
    tuple `cached_slot_bytes` is what it takes in columns of fixed width and `cached_variable_bytes` in all others.
    Rows that turn out larger than these find fewer slots filled, not more bytes: variable columns have bytes of their
    own, of which there are `largest_variable_bytes` at least. Each page group has a list of waiting tuples, or with
    `listed_by_page` each page.
    """
    memory, split, runs = budget.total_bytes, settled.split, settled.runs
    if stream_variable_bytes > _TYPICAL_BYTES:  # perhaps only the first rows are so large
        stream_row_bytes -= stream_variable_bytes - _TYPICAL_BYTES
        stream_variable_bytes = _TYPICAL_BYTES
    divided = max(memory // 4, memory - store.index_bytes)  # the index has its size, whatever the shares of the others
    usual = min(max(divided // 64, 64_000), 1_000_000)
    if runs is None:
        pages = page_group_pages(store, min(wanted_read_bytes(split, store, usual), memory // 16))
    else:
        pages = smallest_page_group(runs, store, 32 + split.page_group_bytes, memory)
    read_bytes = max(page_group_bytes(store, pages), largest_page_bytes(store, memory // ROW_SHARE))
    page_groups = max(1, store.page_count if listed_by_page else -(-store.page_count // pages))
    output_bytes = min(4_000_000, divided // 40) if slot_bytes else 0
    output_slots = int(output_bytes / (16 + stream_row_bytes))
    chunk_bytes = min(4_000_000, divided // 24)
    block_bytes = int(1.3 * page_group_bytes(store, pages))  # with its codes, and what allocators lose
    cache_bytes = bytes_of_cache(split.cache, divided, read_bytes, int(1.3 * read_bytes))
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
    min_waiting_bytes = memory // MIN_WAITING_SHARE
    fits = cached_table_bytes + others_bytes <= memory - min_waiting_bytes
    holds_table = fits and takes_table_if_it_fits(split.cache)
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
    if slots < MIN_SLOTS:
        raise too_small(memory)
    variable_bytes = 0
    if stream_variable_bytes:
        variable_bytes = budget.free_bytes - int(_queue_bytes(slots, page_groups, queue_bytes) + slots * slot_bytes)
    budget.reserve("waiting tuples", budget.free_bytes)
    per_cached = cached_slot_bytes + 1.25 * cached_variable_bytes + policy_bytes_of(split.cache)
    fitting = store.row_count if holds_table else fitting_tuples(cache_bytes, per_cached)
    cache_tuples = tuples_of_cache(split.cache, store, fitting)
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
        kept_page_group_bytes=KeptPages.ROW_BYTES * store.row_count / page_groups,
        cached_bytes=TupleCache.MAX_SLOT_BYTES + per_cached,
    )


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
