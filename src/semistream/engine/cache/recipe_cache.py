"""Makes the cache of a join, as its recipe describes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.kept_pages import KeptPages
from semistream.engine.cache.page_stages import PinnedPages, UsefulBlocks
from semistream.engine.cache.resident_pages import ResidentPages
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.cache.tuples_and_pages import TuplesAndPages
from semistream.engine.reading.overlapping_page_groups import OverlappingPageGroups
from semistream.engine.recipe import BlockCaching, PagePinning, Recipe, Setting, TupleCaching
from semistream.engine.rows.slot_rows import SlotRows
from semistream.policies.caching import BlockUtility
from semistream.store.contract import MasterStore

ONE_IN = 8
"""A cache that answers next to nothing is asked, and learns, once in so many times."""


@dataclass(frozen=True)
class CacheSpace:
    """What a cache may hold: single tuples, or whole page groups."""

    tuples: int = 0
    variable_bytes: int = 0
    """Bytes for the columns of tuples that have no fixed width."""
    bytes_at_once: int = 2**62
    """What the copies of rows that enter together may take."""
    holds_table: bool = False
    """There is room for every master tuple, so that none is refused or leaves."""
    blocks: int = 0
    blocks_bytes: int = 0
    kept: KeptPages | None = None
    """Where parts of the table may be kept as a whole beside single tuples."""
    slots_per_block: int = 0
    """How many waiting tuples take as much memory as one page group."""


def new_cache_stage(
    recipe: Recipe,
    setting: Setting,
    space: CacheSpace,
    *,
    store: MasterStore,
    columns: pa.Schema,
    stats: JoinStats,
    one_in: int = ONE_IN,
    overlapping: OverlappingPageGroups | None = None,
) -> CacheStage | None:
    """Return the empty cache of a recipe, None if it has none; without columns it is one of bare keys.

    `overlapping` are the page groups of the table, if they overlap.
    """
    page_group_count = setting.page_group_count
    match recipe.caching:
        case PagePinning():
            blocks = min(space.blocks, page_group_count)
            return PinnedPages(ResidentPages(page_group_count, blocks, space.blocks_bytes))
        case BlockCaching(adapt):
            resident = ResidentPages(page_group_count, space.blocks, space.blocks_bytes)
            slots_per_block = space.slots_per_block if adapt else 0
            return UsefulBlocks(resident, BlockUtility(page_group_count), slots_per_block=slots_per_block)
        case TupleCaching(admission, replacement) if space.tuples:
            rows = SlotRows(columns, space.tuples, space.variable_bytes) if len(columns) else None
            new_stage = partial(TuplesAndPages, space.kept) if space.kept is not None else CachedTuples
            return new_stage(
                TupleCache(space.tuples, replacement(setting) if replacement else None, rows),
                admission(setting) if admission and not space.holds_table else None,
                tuple(columns.names),
                unique=store.unique and store.codec.exact,
                remembers_absent=recipe.running(setting.values).remembers_absent,
                one_in=one_in,
                seed=setting.seed,
                stats=stats,
                max_bytes_at_once=space.bytes_at_once,
                overlapping=overlapping,
            )
        case _:
            return None
