"""Joins a DataFrame with several dimensions in one operator: a star in one hop."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark.sql.types import StructType

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import format_bytes, format_bytes_up
from semistream.core.errors import BudgetTooSmallError
from semistream.joining.arguments import check_arguments
from semistream.joining.join_types import join_type
from semistream.spark.column_names import ColumnNames
from semistream.spark.dimension import Dimension
from semistream.spark.enrich_settings import (
    check_star_order,
    checked_folder,
    checked_hot_keys,
    checked_memory,
    checked_order,
    dimension_names,
    operator_name,
)
from semistream.spark.operator import OperatorTerms, by_position, operated, task_of
from semistream.spark.partitioning import Partitioning, partitioned
from semistream.spark.planned_join import JoinTerms, PlannedJoin, keys_known_from, planned_join
from semistream.spark.task import StarTask
from semistream.spark.unmatched_rows import checked_unmatched
from semistream.spark.worker_python import check_worker_python
from semistream.store.address import Address
from semistream.store.contract import MasterStore
from semistream.store.tables import checked_disk, disk_of_each, table_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Star:
    """Rows joined with several dimensions, and the columns after each."""

    rows: DataFrame
    steps: tuple[StructType, ...]


def joined_with_star(
    df: DataFrame,
    dimensions: Sequence[Dimension],
    *,
    how: str,
    memory: int | str,
    disk: int | str | None,
    algorithm: str,
    order: str | None,
    partitioning: Partitioning,
    dead_letters: str | os.PathLike[str] | None,
    name: str | None,
    hot_keys: int,
    pin: tuple[str, int] | Literal[False] | None,
    parameters: Mapping[str, float] | None,
    at: Callable[[int], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> Star:
    """Return the rows after all dimensions; `at` gives a context in which one of them is planned, by its number."""
    recipe = algorithm_named(algorithm)
    recipe.values(parameters)  # checks them
    chosen_order = checked_order(order, recipe, parameters)
    check_star_order(chosen_order, recipe)
    memory_bytes = checked_memory(memory)
    check_worker_python(df.sparkSession)
    folder = checked_folder(dead_letters)
    tables = [Address.of(dimension.table).absolute() for dimension in dimensions]
    labels, wanted_disks = dimension_names(dimensions, tables), disk_of_each(tables, disk)
    operator = operator_name(name, "star")
    terms = OperatorTerms(
        operator, algorithm, chosen_order, memory_bytes, pin, checked_hot_keys(hot_keys), df.isStreaming
    )
    of_each = JoinTerms(
        ColumnNames.of(df.sparkSession),
        recipe,
        parameters,
        chosen_order,
        memory_bytes // len(dimensions),
        df.isStreaming,
    )
    joins: list[PlannedJoin] = []
    disks: list[int | None] = []
    with ExitStack() as opened:
        stores: list[MasterStore] = []
        columns = StructType(list(df.schema.fields))
        for place, (dimension, table) in enumerate(zip(dimensions, tables, strict=True)):
            with at(place):
                check_arguments(
                    on=dimension.on,
                    columns=dimension.columns,
                    replace=dimension.replace,
                    suffix=dimension.suffix,
                    parameters=parameters,
                )
                kind = join_type(how if dimension.how is None else dimension.how)
                fate = checked_unmatched(
                    dimension.unmatched, kind, has_room=False, has_dead_letters=dead_letters is not None
                )
                disks.append(checked_disk(table, wanted_disks[place]))
                stores.append(opened.enter_context(table_at(table).open()))
                join = _planned(columns, dimension, table, stores[-1], kind, fate, of_each, len(dimensions))
            joins.append(join)
            columns = StructType(list(join.output))
        spread = _spread(df, joins, stores, partitioning)
    tasks = tuple(
        task_of(
            join,
            terms,
            name=label if name is None or dimension.name is not None else f"{operator}.{label}",
            disk_bytes=disk_bytes,
            dead_letters=folder / label if folder is not None else None,
            asked=keys_known_from(joins, place),
        )
        for place, (join, dimension, label, disk_bytes) in enumerate(zip(joins, dimensions, labels, disks, strict=True))
    )
    rows = operated(spread, StarTask(tasks), joins[-1], operator)
    return Star(rows, tuple(StructType(list(join.output)) for join in joins))


def _planned(
    columns: StructType,
    dimension: Dimension,
    table: Address,
    store: MasterStore,
    kind: str,
    fate: str,
    terms: JoinTerms,
    count: int,
) -> PlannedJoin:
    try:
        return planned_join(columns, dimension, table, store, kind, fate, terms)  # type: ignore[arg-type]
    except BudgetTooSmallError as error:
        needed = count * error.needed_bytes
        raise BudgetTooSmallError(
            f"Of the memory each of {count} dimensions has {format_bytes(terms.memory_bytes)} to begin with, which is "
            f"too little for the master table {table.name}: give at least about {format_bytes_up(needed)}.",
            needed,
        ) from None


def _spread(
    df: DataFrame, joins: Sequence[PlannedJoin], stores: Sequence[MasterStore], partitioning: Partitioning
) -> DataFrame:
    """Return the rows by position, shuffled if that is wanted: by the largest table whose keys are in them."""
    there = [place for place in range(len(joins)) if keys_known_from(joins, place)[0] == 0]
    largest = max(there, key=lambda place: joins[place].page_count)
    keys = [f"c{column}" for column in keys_known_from(joins, largest)[1]]
    return partitioned(by_position(df), keys, stores[largest], partitioning)
