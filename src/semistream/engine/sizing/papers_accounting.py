"""Divides the memory of a join among its parts by the papers' book-keeping."""

from __future__ import annotations

from semistream.core.budget import MemoryBudget
from semistream.engine.sizing.memory_advice import too_small
from semistream.engine.sizing.settled_split import SettledSplit
from semistream.engine.sizing.sizes import Sizes
from semistream.engine.sizing.split import BlockSpace
from semistream.engine.sizing.table_sizes import mean_row_bytes, page_group_bytes, page_group_pages
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
from semistream.store.contract import MasterStore

_STREAM_TUPLE_BYTES = 20  # v_S
_FUDGE_FACTOR = 8
_QUEUE_NODE_BYTES = 12
_READ_BYTES = 850 * 120 + 4000  # d_B = 850 tuples, as near as whole pages come


def papers_sizes(
    settled: SettledSplit, store: MasterStore, budget: MemoryBudget, stream_row_bytes: float = 0.0
) -> Sizes:
    """Return the sizes as the papers count: cached master tuples at their bare size, and a waiting tuple at eight times
    its own and a node of the queue. Its own size is 20 bytes unless it is given, so 172 in all.
    """
    stream_tuple_bytes = round(stream_row_bytes) or _STREAM_TUPLE_BYTES
    waiting_bytes = _FUDGE_FACTOR * stream_tuple_bytes + _QUEUE_NODE_BYTES
    memory, split, runs = budget.total_bytes, settled.split, settled.runs
    if runs is None:
        pages = page_group_pages(store, min(wanted_read_bytes(split, store, _READ_BYTES), memory // 16))
    else:
        pages = smallest_page_group(runs, store, split.page_group_bytes, memory)
    row_bytes = mean_row_bytes(store)
    read_bytes = page_group_bytes(store, pages)
    page_groups = -(-store.page_count // pages)
    cache_bytes = bytes_of_cache(split.cache, memory, read_bytes, read_bytes)
    handover_bytes = settled.handover_bytes
    runs_bytes = int(runs.share * memory) if runs else 0
    reads_bytes = (1 + runs.reads_ahead) * runs_bytes if runs else 0
    budget.reserve("disk buffer", min(memory, max(reads_bytes, split.buffers * read_bytes)))
    budget.reserve("cache", min(budget.free_bytes, cache_bytes))
    budget.reserve("handover buffer", min(budget.free_bytes, handover_bytes))
    budget.reserve("page book-keeping", min(budget.free_bytes, page_groups * split.page_group_bytes))
    cached_bytes = row_bytes + policy_bytes_of(split.cache)
    cache_tuples = tuples_of_cache(split.cache, store, int(cache_bytes / cached_bytes))
    more_bytes = max(0, int(row_bytes * store.row_count) - cache_bytes)
    fits = more_bytes <= budget.free_bytes - memory // MIN_WAITING_SHARE
    holds_table = fits and takes_table_if_it_fits(split.cache)
    if holds_table:
        budget.reserve("cache", more_bytes)
        cache_tuples = max(1, store.row_count)
    slots = budget.free_bytes // waiting_bytes
    if slots < MIN_SLOTS:
        raise too_small(memory)
    budget.reserve("waiting tuples", slots * waiting_bytes)
    return Sizes(
        pages_per_read=pages,
        waiting_slots=slots,
        cache_tuples=cache_tuples,
        cache_blocks=max(1, int(cache_bytes // read_bytes)) if isinstance(split.cache, BlockSpace) else 0,
        cache_bytes=0,  # blocks are counted as the papers do
        cache_variable_bytes=cache_bytes,
        handover_slots=handover_bytes // stream_tuple_bytes,
        variable_bytes=memory,
        output_bytes=memory // 8,
        output_slots=65_536,
        chunk_rows=65_536,
        run_page_groups=max(1, runs_bytes // read_bytes),
        slots_per_block=read_bytes // waiting_bytes,
        waiting_bytes=waiting_bytes,
        holds_table=holds_table,
        kept_page_group_bytes=read_bytes,
        cached_bytes=cached_bytes,
    )
