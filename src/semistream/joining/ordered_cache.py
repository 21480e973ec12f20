"""The cache of a join whose rows leave in the order they came."""

from __future__ import annotations

import pyarrow as pa

from semistream.core.costs import SSD
from semistream.core.stats import JoinStats
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.parameters import Values
from semistream.engine.recipe import Recipe, Setting, TupleCaching
from semistream.engine.rows.slot_rows import SlotRows
from semistream.engine.sizing.ordered_sizes import OrderedSizes
from semistream.store.contract import MasterStore

_ONE_IN = 8
"""A cache that answers next to nothing is asked, and learns, once in so many times."""


def new_cache(
    store: MasterStore,
    recipe: Recipe,
    values: Values,
    sizes: OrderedSizes,
    columns: pa.Schema,
    stats: JoinStats,
    seed: int,
) -> CachedTuples:
    """Return an empty cache for rows of these columns, or for bare keys if there are none."""
    caching = recipe.caching
    assert isinstance(caching, TupleCaching)
    assert caching.admission is not None
    assert caching.replacement is not None
    setting = Setting(
        page_group_count=max(1, store.page_count),
        waiting_slots=1,
        row_count=max(1, store.row_count),
        seed=seed,
        values=values,
        costs=SSD,
        page_group_bytes=1.0,
        run_page_groups=1,
        cache_tuples=sizes.cache_tuples,
    )
    rows = SlotRows(columns, sizes.cache_tuples, sizes.cache_variable_bytes) if len(columns) else None
    return CachedTuples(
        TupleCache(sizes.cache_tuples, caching.replacement(setting), rows),
        caching.admission(setting),
        tuple(columns.names),
        unique=store.unique and store.codec.exact,
        remembers_absent=recipe.running(values).remembers_absent,
        one_in=_ONE_IN,
        seed=seed,
        stats=stats,
    )
