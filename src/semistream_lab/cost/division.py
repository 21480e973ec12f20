"""How an algorithm divides its memory in a situation, by the engine's own sizing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.costs import CostProfile
from semistream.engine.assembly import Assembly
from semistream.engine.recipe import Recipe, Setting
from semistream.engine.sizing.sizes import Sizes
from semistream_lab.cost.key_shares import KeyShares, key_shares
from semistream_lab.cost.situation import Situation
from semistream_lab.cost.sized_table import SizedTable


@dataclass(frozen=True)
class Division:
    """One algorithm in one situation: its parts with their sizes, and the page groups of the table."""

    recipe: Recipe
    situation: Situation
    costs: CostProfile
    sizes: Sizes
    setting: Setting
    """What the policies of the recipe are made from."""
    memory: Mapping[str, int]
    bounds: Int64Array
    """The first row of each page group, and at the end the number of rows."""

    @property
    def shares(self) -> KeyShares:
        """What the stream asks for."""
        return key_shares(self.situation)

    @property
    def page_group_count(self) -> int:
        """The page groups of the table."""
        return len(self.bounds) - 1

    @property
    def page_group_rows(self) -> Float64Array:
        """The rows of each page group: d, but for the last."""
        return np.diff(self.bounds).astype(np.float64)

    @property
    def waiting_slots(self) -> int:
        """The tuples that can wait: h_S."""
        return self.sizes.waiting_slots


def divide(
    recipe: Recipe, situation: Situation, costs: CostProfile, parameters: Mapping[str, float] | None = None
) -> Division:
    """Return how a recipe divides the memory; raises the engine's error where it is too little."""
    table = _table(situation.master_rows, situation.row_bytes, situation.page_bytes)
    budget = MemoryBudget(situation.memory_bytes)
    assembly = Assembly(
        recipe, table, budget, ModelClock(costs), accounting=situation.accounting, parameters=parameters
    )
    sizes = assembly.sizes
    bounds = _row_bounds(table, sizes.pages_per_read)
    setting = Setting(
        page_group_count=len(bounds) - 1,
        waiting_slots=sizes.waiting_slots,
        row_count=situation.master_rows,
        seed=0,
        values=assembly.values,
        costs=costs,
        page_group_bytes=table.size_bytes / table.page_count * sizes.pages_per_read,
        run_page_groups=sizes.run_page_groups,
        cache_tuples=sizes.cache_tuples,
    )
    return Division(recipe, situation, costs, sizes, setting, budget.by_component(), bounds)


@lru_cache(maxsize=8)
def _table(master_rows: int, row_bytes: int, page_bytes: int) -> SizedTable:
    return SizedTable(Situation(master_rows, 1, 0.0, row_bytes=row_bytes, page_bytes=page_bytes))


@lru_cache(maxsize=64)
def _row_bounds(table: SizedTable, pages_per_read: int) -> Int64Array:
    starts = np.arange(0, table.page_count, pages_per_read, dtype=np.int64)
    return np.append(table.row_bounds(starts), table.row_count)
