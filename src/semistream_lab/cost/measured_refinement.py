"""Finds by short measurements the parameters that a cost model is too rough to tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from semistream.core.costs import CostProfile
from semistream.core.errors import BudgetTooSmallError
from semistream.engine.recipe import Recipe
from semistream.generator import Workload
from semistream.store.memory import MemoryStore
from semistream_lab.cost.situation import Situation
from semistream_lab.measurement import measure

_MAX_ROWS = 200_000
_MIN_MEMORY_BYTES = 500_000
_QUEUES = 25.0
_MAX_TUPLES = 4_000_000
_FACTORS = (0.25, 0.5, 2.0)
_READ_FACTORS = (0.7, 1.4)
_LARGEST_READ_SHARE = 16
"""A read may take one part in so many of the memory (`semistream.engine.sizing.real_accounting`)."""
_WORTHWHILE = 1.005


def refined(
    recipe: Recipe, situation: Situation, costs: CostProfile, point: Mapping[str, float], names: Sequence[str]
) -> dict[str, float]:
    """Return values for the named parameters: the best of a few multiples of each, one parameter after the other.

    The size of a read is tried anew with them, unless it is too large for the smaller table that is measured.

    Measured is on the model clock, on a table of at most 200,000 rows with as much less memory, so that a read serves
    as many tuples; a second or so for each value.
    """
    small = _smaller(situation)
    table = MemoryStore.of_codes(small.master_rows, row_bytes=small.row_bytes, page_bytes=small.page_bytes)

    def rate(parameters: Mapping[str, float]) -> float:
        run = measure(
            recipe,
            table,
            Workload(small.keys()),
            memory=small.memory_bytes,
            tuples=1,
            queues=_QUEUES,
            profile=costs,
            accounting=small.accounting,
            parameters=parameters,
            max_tuples=_MAX_TUPLES,
        )
        return run.service_rate

    best = {name: recipe.parameters[name].default for name in names}
    multiples = [(name, best[name] * factor) for name in names for factor in _FACTORS]
    largest_read = small.memory_bytes // _LARGEST_READ_SHARE
    if point.get("read_bytes", largest_read + 1) <= largest_read:
        best["read_bytes"] = point["read_bytes"]
        reads = (round(point["read_bytes"] * factor) for factor in _READ_FACTORS)
        multiples += [("read_bytes", float(min(largest_read, size))) for size in reads]
    try:
        best_rate = rate({**point, **best})
        for name, value in multiples:
            parameter = recipe.parameters[name]
            tried = {**best, name: min(parameter.high, max(parameter.low, value))}
            measured = rate({**point, **tried})
            if measured > best_rate * _WORTHWHILE:
                best, best_rate = tried, measured
    except BudgetTooSmallError:
        pass
    return best


def _smaller(situation: Situation) -> Situation:
    rows = min(situation.master_rows, _MAX_ROWS)
    memory_bytes = max(_MIN_MEMORY_BYTES, round(situation.memory_bytes * rows / situation.master_rows))
    return replace(situation, master_rows=rows, memory_bytes=min(memory_bytes, situation.memory_bytes))
