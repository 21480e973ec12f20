"""The parameters that suit one master table and memory, to be handed to a join."""

from __future__ import annotations

from pathlib import Path

from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.budget import parse_bytes
from semistream.core.costs import SSD
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream_lab.cost.situation import Situation
from semistream_lab.cost.tuner import tuned_parameters


def parameters_for(
    master: MasterTable | MasterStore | str | Path,
    *,
    memory: int | str = "64MB",
    algorithm: str = DEFAULT_ALGORITHM,
    skew: float = 1.0,
) -> dict[str, float]:
    """Return the parameters that the cost model of an algorithm finds best for a table and a memory.

    They are for `join(..., parameters=...)` with the same table, memory and algorithm. The model assumes a solid-state
    disk and keys whose Zipf exponent is about `skew` and which lie in no special order. No page is read; the answer is
    remembered from call to call.
    """
    recipe = algorithm_named(algorithm)
    store = _opened(master)
    if not store.row_count:
        return {}
    table_bytes = store.size_bytes
    situation = Situation(
        store.row_count,
        parse_bytes(memory),
        skew,
        "shuffled",
        row_bytes=max(1, round(table_bytes / store.row_count)),
        page_bytes=max(1, round(table_bytes / store.page_count)),
        accounting="real",
    )
    return tuned_parameters(recipe.name, situation, SSD)


def _opened(master: MasterTable | MasterStore | str | Path) -> MasterStore:
    if isinstance(master, MasterStore):
        return master
    return (master if isinstance(master, MasterTable) else MasterTable(master)).open()
