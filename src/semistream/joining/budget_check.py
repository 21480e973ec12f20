"""Says before a join runs whether its memory is enough; builds nothing and leaves the process as it is."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from semistream.core.budget import MemoryBudget
from semistream.core.clock import WallClock
from semistream.core.value_widths import fixed_width
from semistream.engine.assembly import Assembly
from semistream.engine.output.output_plan import OutputPlan
from semistream.engine.recipe import Recipe
from semistream.joining.ordered_session import columns_and_sizes
from semistream.store.contract import MasterStore

_USUAL_TEXT_BYTES = 16


def check_budget(
    memory_bytes: int,
    store: MasterStore,
    plan: OutputPlan,
    stream_schema: pa.Schema,
    *,
    recipe: Recipe,
    parameters: Mapping[str, float] | None = None,
    in_order: bool,
) -> None:
    """Raise BudgetTooSmallError if a session alone with this memory had too little for rows of usual size.

    `in_order` is for sessions whose rows leave in the order they came.
    """
    budget = MemoryBudget(memory_bytes)
    if in_order:
        columns_and_sizes(store, plan, budget, recipe=recipe, values=recipe.values(parameters))
        return
    # An assembly divides the memory when it is made, and makes its parts when it is started.
    Assembly(
        recipe,
        store,
        budget,
        WallClock(),
        plan=plan,
        stream_schema=stream_schema,
        stream_row_bytes=sum(fixed_width(field.type) or _USUAL_TEXT_BYTES for field in stream_schema),
        parameters=parameters,
    )
