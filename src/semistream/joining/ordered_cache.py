"""The cache of a join whose rows leave in the order they came."""

from __future__ import annotations

import pyarrow as pa

from semistream.core.costs import SSD
from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.recipe_cache import CacheSpace, new_cache_stage
from semistream.engine.parameters import Values
from semistream.engine.recipe import Recipe, Setting
from semistream.engine.sizing.ordered_sizes import OrderedSizes
from semistream.store.contract import MasterStore


def new_ordered_cache(
    store: MasterStore,
    recipe: Recipe,
    values: Values,
    sizes: OrderedSizes,
    columns: pa.Schema,
    stats: JoinStats,
    seed: int,
) -> CacheStage | None:
    """Return an empty cache for rows of these columns, or for bare keys if there are none; None without room for any.

    No page choice is asked, so page groups are single pages and nothing waits.
    """
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
    space = CacheSpace(tuples=sizes.cache_tuples, variable_bytes=sizes.cache_variable_bytes)
    return new_cache_stage(recipe, setting, space, store=store, columns=columns, stats=stats)
