"""What the wishes of a split come to, in pages, bytes and tuples; both accountings follow them."""

from __future__ import annotations

from semistream.engine.sizing.buffer_shares import RunBuffers
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
from semistream.engine.sizing.table_sizes import page_group_pages, table_bytes
from semistream.store.contract import MasterStore

MIN_SLOTS = 64
"""A join with fewer waiting tuples is refused."""
MIN_WAITING_SHARE = 64
"""A table is held in memory only if one part in so many is left for waiting tuples, which then are few."""
_MANY_PAGE_GROUPS = 4096


def smallest_page_group(runs: RunBuffers, store: MasterStore, noted_bytes: int, memory: int) -> int:
    """Return how many pages a page group must have so that `noted_bytes` for each take a 32nd of the memory at most.

    More if they are to be larger, but then not so many that few page groups are left to choose from.
    """
    pages = max(1, -(-store.page_count * noted_bytes * 32 // memory))
    if not runs.min_page_group_bytes:
        return pages
    return max(pages, min(store.page_count // _MANY_PAGE_GROUPS, page_group_pages(store, runs.min_page_group_bytes)))


def wanted_read_bytes(split: Split, store: MasterStore, usual: int) -> int:
    """Return what a read should bring, `usual` if the split has no wish."""
    match split.read:
        case Bytes(count):
            return count
        case TableShare(share) if store.page_count:
            return int(share * table_bytes(store)) or usual
        case _:
            return usual


def bytes_of_cache(cache: Cache, memory: int, read_bytes: int, block_bytes: int) -> int:
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


def tuples_of_cache(cache: Cache, store: MasterStore, fitting: int) -> int:
    """Return how many single tuples the cache holds if so many fit into its bytes."""
    match cache:
        case WholeTable():
            return max(1, store.row_count)
        case TupleSpace():
            return fitting
        case _:
            return 0


def policy_bytes_of(cache: Cache) -> int:
    """Return what policies need for each cached tuple."""
    return cache.policy_bytes if isinstance(cache, TupleSpace) else 0


def takes_table_if_it_fits(cache: Cache) -> bool:
    """Say whether the cache is to have every master tuple where there is room for all of them."""
    return isinstance(cache, TupleSpace) and cache.table_if_it_fits
