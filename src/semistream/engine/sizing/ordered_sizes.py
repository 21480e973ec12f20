"""Divides the memory of a join that answers chunk by chunk among its parts."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from semistream.core.budget import MemoryBudget, format_bytes
from semistream.core.errors import BudgetTooSmallError
from semistream.engine.rows.slot_rows import SlotRows
from semistream.engine.sizing.real_accounting import fitting_tuples
from semistream.engine.sizing.table_sizes import variable_bytes
from semistream.store.contract import MasterStore

CHUNK_ROW_BYTES = 80
"""What is noted of each row of a chunk: its code, its place, and the sort of those that are not cached."""
MAX_CACHE_SHARE = 0.4
"""Nothing waits, so the cache has what a queue would have; the rest is needed for chunks, reads and output."""
PAGE_SHARE = 8
"""A page may take one part in so many of the memory beside the index."""
_FOUND_SHARE = 6
_PIECE_SHARE = 16
_MAX_PIECE_BYTES = 4_000_000
_MIN_DIVIDED_BYTES = 512_000
_SPARE_BYTES = 65_536
_ENTRY_BYTES = 16  # what admission takes for each entry of the cache


@dataclass(frozen=True)
class OrderedSizes:
    """What each part of the join may hold."""

    cache_bytes: int
    whole_cache_bytes: int
    """What a cache of all rows would take."""
    cache_tuples: int
    cache_variable_bytes: int
    found_bytes: int
    """Master rows that were looked up for a chunk and are not cached."""
    read_bytes: int
    largest_page_bytes: int
    """A row that needs a larger page is refused."""
    piece_bytes: int
    chunk_bytes: int
    """Stream rows of a chunk, with what is noted of each."""
    chunk_rows: int


def ordered_sizes(
    store: MasterStore,
    budget: MemoryBudget,
    columns: pa.Schema,
    *,
    cache_share: float | None = None,
    usual_bytes: int | None = None,
) -> OrderedSizes:
    """Return sizes so that what is allocated stays within the budget, and reserve them.

    What the budget has above or below `usual_bytes` the cache has more or less; all else is as large as with these.
    """
    memory, index_bytes = usual_bytes or budget.total_bytes, store.index_bytes
    divided = memory - index_bytes
    needed = index_bytes + max(_MIN_DIVIDED_BYTES, index_bytes // 3)
    if memory < needed:
        raise BudgetTooSmallError(
            f"{format_bytes(memory)} of memory is too little for this master table: "
            f"give at least about {format_bytes(needed * 1.05)}.",
            needed * 1.05,
        )
    largest_page_bytes = divided // PAGE_SHARE
    cache_bytes = int((MAX_CACHE_SHARE if cache_share is None else min(cache_share, MAX_CACHE_SHARE)) * divided)
    cache_bytes = max(0, cache_bytes + budget.total_bytes - memory)
    found_bytes = divided // _FOUND_SHARE
    read_bytes = max(min(store.largest_page_bytes, largest_page_bytes), divided // _PIECE_SHARE) + _SPARE_BYTES
    piece_bytes = min(_MAX_PIECE_BYTES, divided // _PIECE_SHARE)
    for component, size_bytes in (
        ("index", index_bytes),
        ("cache", cache_bytes),
        ("found rows", found_bytes),
        ("disk buffer", read_bytes),
        ("output", 2 * piece_bytes),
    ):
        budget.reserve(component, size_bytes)
    chunk_bytes = budget.free_bytes
    budget.reserve("input", chunk_bytes)
    row_bytes = variable_bytes(store, tuple(columns.names))
    fitting = fitting_tuples(cache_bytes, SlotRows.slot_bytes(columns) + 1.25 * row_bytes + _ENTRY_BYTES)
    cache_tuples = min(fitting, max(1, store.row_count))
    return OrderedSizes(
        cache_bytes=cache_bytes,
        whole_cache_bytes=cache_bytes * max(1, store.row_count) // max(1, fitting),
        cache_tuples=cache_tuples,
        cache_variable_bytes=int(cache_tuples * 1.25 * row_bytes),
        found_bytes=found_bytes,
        read_bytes=read_bytes,
        largest_page_bytes=largest_page_bytes,
        piece_bytes=piece_bytes,
        chunk_bytes=chunk_bytes,
        chunk_rows=max(1, chunk_bytes // CHUNK_ROW_BYTES),
    )
