"""Makes stars of `enrich` and chains of the same dimensions, and runs both in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from enrich_tasks import handed_over
from pyspark.sql.types import StructType

from semistream.algorithms.registry import algorithm_named
from semistream.joining.join_types import join_type
from semistream.spark.column_names import ColumnNames
from semistream.spark.dimension import Dimension
from semistream.spark.operator import OperatorTerms, task_of
from semistream.spark.planned_join import JoinTerms, PlannedJoin, keys_known_from, planned_join
from semistream.spark.task import EnrichTask, StarTask
from semistream.spark.unmatched_rows import checked_unmatched
from semistream.store.address import Address
from semistream.store.tables import table_at


def planned(schema: StructType, dimensions: Sequence[Dimension], memory_bytes: int) -> list[PlannedJoin]:
    """Return the plans of dimensions one after the other."""
    recipe, joins = algorithm_named("demandjoin"), []
    terms = JoinTerms(ColumnNames(case_sensitive=True), recipe, None, "input", memory_bytes, is_streaming=False)
    for dimension in dimensions:
        table, kind = Address.of(dimension.table), join_type(dimension.how or "inner")
        fate = checked_unmatched(dimension.unmatched, kind, has_room=False, has_dead_letters=True)
        with table_at(table).open() as store:
            joins.append(planned_join(schema, dimension, table, store, kind, fate, terms))
        schema = StructType(list(joins[-1].output))
    return joins


def star_of(
    schema: StructType,
    dimensions: Sequence[Dimension],
    *,
    memory_bytes: int = 12_000_000,
    dead_letters: Path | None = None,
    pin: Any = None,
) -> StarTask:
    """Return a star whose dimensions have the names of their tables."""
    joins = planned(schema, dimensions, memory_bytes // len(dimensions))
    terms = OperatorTerms("star", "demandjoin", "input", memory_bytes, pin, 0, is_streaming=False)
    tasks = []
    for place, join in enumerate(joins):
        name = dimensions[place].name or join.table.name
        letters = dead_letters / name if dead_letters is not None else None
        asked = keys_known_from(joins, place)
        tasks.append(task_of(join, terms, name=name, disk_bytes=None, dead_letters=letters, asked=asked))
    return StarTask(tuple(tasks))


def chain_of(star: StarTask) -> list[EnrichTask]:
    """Return the dimensions of a star as operators of their own, each with an equal part of the memory."""
    count = len(star.dimensions)
    return [replace(task, asked_from=0, memory_bytes=task.memory_bytes // count) for task in star.dimensions]


def run_star(star: StarTask, batches: Iterator[pa.RecordBatch]) -> tuple[pa.Table, dict[str, dict[str, Any]]]:
    """Return the output of a star, and what is told of each dimension by its name."""
    declared = star.dimensions[-1].declared
    whole = pa.Table.from_batches(list(star(batches)), schema=declared)
    is_row = whole["statistics"].is_null()
    told = [json.loads(text) for text in whole.filter(whole["statistics"].is_valid())["statistics"].to_pylist()]
    assert len(told) == len(star.dimensions), "one row for each dimension carries statistics"
    return whole.filter(is_row).drop_columns(["statistics"]), {one["name"]: one for one in told}


def run_chain(tasks: Sequence[EnrichTask], rows: pa.Table, batch_rows: int = 100) -> pa.Table:
    """Return the output of operators one after the other."""
    for task in tasks:
        rows = pa.Table.from_batches(list(task(handed_over(rows, batch_rows))), schema=task.declared)
        rows = rows.filter(rows["statistics"].is_null()).drop_columns(["statistics"])
    return rows
