"""A plan whose rows still have all columns of the stream, for tasks that keep some rows back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from semistream.engine.output.output_plan import OutputPlan


def widened(plan: OutputPlan, stream: pa.Schema, added: Sequence[pa.Field] = ()) -> tuple[OutputPlan, tuple[int, ...]]:
    """Return a plan for a stream with added columns whose rows have all columns of both sides.

    Also returns where the columns of the given plan are in such rows.
    """
    fields = [*stream, *added]
    shown: list[int] = []
    of_master: dict[int, pa.Field] = {}
    for (from_master, index), field in zip(plan.sources, plan.schema, strict=True):
        shown.append(len(fields) + index if from_master else index)
        if from_master:
            of_master[index] = field
    columns = [
        *(field.with_name(f"s{index}") for index, field in enumerate(fields)),
        *(of_master[index].with_name(f"m{index}") for index in sorted(of_master)),
    ]
    sources = [*((False, index) for index in range(len(fields))), *((True, index) for index in sorted(of_master))]
    assert sorted(of_master) == list(range(len(of_master)))
    return replace(plan, schema=pa.schema(columns), sources=tuple(sources)), tuple(shown)
