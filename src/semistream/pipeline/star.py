"""Joins the rows of a pipeline with all its dimensions, inside one budget.

Several dimensions are one operator, in which memory goes to the caches that save most. Where rows may wait or need not
keep their order, each dimension is an operator of its own, with an equal part of the memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from semistream.algorithms.registry import algorithm_named
from semistream.core.errors import InvalidSettingError
from semistream.master_table import MasterTable
from semistream.pipeline.checked_start import naming
from semistream.pipeline.description import DimensionDescription, PipelineDescription
from semistream.pipeline.places import is_local
from semistream.pipeline.remembered_columns import RememberedColumns
from semistream.spark.dimension import Dimension
from semistream.spark.enrich_settings import checked_memory, checked_order
from semistream.spark.enrichment import enrich
from semistream.spark.room.use import order_in_room
from semistream.spark.star import joined_with_star
from semistream.spark.unmatched_rows import checked_unmatched
from semistream.store.tables import disk_of_each

_HOT_KEYS = 20
_NOT_OF_NAMES = re.compile(r"[^\w.-]")


def joins_of(description: PipelineDescription) -> int:
    """Return how many operators join, each in Python workers of its own."""
    return 1 if _is_star(description) else len(description.dimensions)


def memory_of_join(description: PipelineDescription) -> int:
    """Return the budget of a Python worker that joins."""
    return description.enrich.memory_bytes // joins_of(description)


@dataclass(frozen=True)
class Joined:
    """Rows with the columns of all dimensions, and what the columns were after each, by its name."""

    rows: DataFrame
    steps: Sequence[tuple[str, StructType]]


def check_joins(description: PipelineDescription) -> None:
    """Raise an error about settings of the joins that do not go together, as far as it takes no Spark."""
    settings = description.enrich
    if settings.room is not None and not rows_may_wait(description):
        raise InvalidSettingError("[enrich] room is not used: give `max_wait`, or leave it out.")
    recipe = algorithm_named(settings.algorithm)
    recipe.values(settings.parameters)
    checked_memory(memory_of_join(description))
    for dimension in description.dimensions:
        waits = description.waits(dimension)
        with naming(dimension.where):
            checked_unmatched(
                dimension.unmatched, dimension.how, has_room=waits, has_dead_letters=settings.dead_letters is not None
            )
            if waits:
                order_in_room(settings.order)
            else:
                checked_order(settings.order, recipe, settings.parameters)


def joined(rows: DataFrame, description: PipelineDescription, columns: Sequence[RememberedColumns]) -> Joined:
    """Return the rows with the columns of all dimensions."""
    check_joins(description)
    names = _operator_names(description)
    steps = [f"dimension {MasterTable(dimension.table).address.name}" for dimension in description.dimensions]
    if _is_star(description):
        star = joined_with_star(
            rows,
            [
                _dimension(dimension, wanted, name)
                for dimension, wanted, name in zip(description.dimensions, columns, names, strict=True)
            ],
            how=description.enrich.how,
            dead_letters=description.enrich.dead_letters,
            name=description.name,
            disk=description.enrich.disk_bytes,
            at=lambda place: naming(description.dimensions[place].where),
            **_common(description),
        )
        return Joined(star.rows, list(zip(steps, star.steps, strict=True)))
    schemas: list[StructType] = []
    disks = disk_of_each([described.table for described in description.dimensions], description.enrich.disk_bytes)
    for described, wanted, name, disk in zip(description.dimensions, columns, names, disks, strict=True):
        with naming(described.where):
            rows = _joined(rows, description, described, _dimension(described, wanted, name), name, disk)
        schemas.append(rows.schema)
    return Joined(rows, list(zip(steps, schemas, strict=True)))


def _is_star(description: PipelineDescription) -> bool:
    """Say whether all dimensions are joined in one operator, in which rows keep their order and none waits."""
    settings = description.enrich
    in_order = settings.order != "any" and algorithm_named(settings.algorithm).keeps_order
    return len(description.dimensions) > 1 and in_order and not rows_may_wait(description)


def _dimension(dimension: DimensionDescription, columns: RememberedColumns, name: str) -> Dimension:
    return Dimension(
        MasterTable(dimension.table),
        on=list(dimension.on) if isinstance(dimension.on, tuple) else dimension.on,
        how=dimension.how,
        columns=columns.columns,
        replace=dimension.replace,
        suffix=dimension.suffix,
        matched=dimension.matched,
        unmatched=dimension.unmatched,
        name=name,
    )


def _common(description: PipelineDescription) -> dict[str, Any]:
    """Return the settings that all joins share."""
    settings = description.enrich
    return {
        "memory": memory_of_join(description),
        "algorithm": settings.algorithm,
        "order": settings.order,
        "partitioning": settings.partitioning,
        "hot_keys": _HOT_KEYS if description.statistics.page.keys else 0,
        "pin": None,
        "parameters": settings.parameters,
    }


def _joined(
    rows: DataFrame,
    description: PipelineDescription,
    described: DimensionDescription,
    dimension: Dimension,
    name: str,
    disk: int | str | None,
) -> DataFrame:
    """Return the rows joined with one dimension, in an operator of its own."""
    return enrich(
        rows,
        dimension.table,
        on=dimension.on,
        how=described.how,
        columns=dimension.columns,
        replace=dimension.replace,
        suffix=dimension.suffix,
        matched=dimension.matched,
        disk=disk,
        room=_room(description, described, name),
        max_wait=description.enrich.max_wait_seconds,
        unmatched=dimension.unmatched,
        retry_for=described.retry_seconds if described.retry_seconds is not None else "1 day",
        dead_letters=_letters(description, name),
        name=name,
        **_common(description),
    )


def rows_may_wait(description: PipelineDescription) -> bool:
    """Say whether rows may leave in other micro-batches than they came with."""
    return description.rooms > 0


def _room(description: PipelineDescription, dimension: DimensionDescription, name: str) -> str | None:
    """Return where rows wait, if some may: beside the checkpoint, with which it is moved and deleted."""
    room = description.enrich.room
    if not description.waits(dimension):
        return None
    if room is None and not is_local(description.checkpoint):
        raise InvalidSettingError(
            "[enrich] room is missing: rows that wait need a folder or an object store beside the checkpoint."
        )
    room = room or f"{description.checkpoint}/room"
    return room if len(description.dimensions) == 1 else f"{room}/{name}"


def _letters(description: PipelineDescription, name: str) -> str | None:
    """Return the folder for rows that cannot be joined; files of two joins would have the same names."""
    folder = description.enrich.dead_letters
    return folder if folder is None or len(description.dimensions) == 1 else f"{folder}/{name}"


def _operator_names(description: PipelineDescription) -> list[str]:
    """Return what statistics call each join: the pipeline, and if it has several its master table."""
    if len(description.dimensions) == 1:
        return [description.name]
    names: list[str] = []
    for place, dimension in enumerate(description.dimensions, start=1):
        table = _NOT_OF_NAMES.sub("_", MasterTable(dimension.table).address.name)[:40]
        name = f"{description.name[:50]}.{table}"
        names.append(name if name not in names else f"{name}-{place}")
    return names
