"""Joins the rows of a pipeline with all its dimensions, inside one budget.

Each dimension is a join of its own, one after the other, with an equal part of the memory. Whatever joins several in
one operator takes the place of this file alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from semistream.core.errors import InvalidSettingError
from semistream.master_table import MasterTable
from semistream.pipeline.checked_start import naming
from semistream.pipeline.description import DimensionDescription, PipelineDescription
from semistream.pipeline.places import is_local
from semistream.pipeline.remembered_columns import RememberedColumns
from semistream.spark.enrichment import enrich
from semistream.store.places.choice import OBJECT_STORES

_HOT_KEYS = 20
_NOT_OF_NAMES = re.compile(r"[^\w.-]")


def joins_of(description: PipelineDescription) -> int:
    """Return how many operators join, each in Python workers of its own."""
    return len(description.dimensions)


def memory_of_join(description: PipelineDescription) -> int:
    """Return the budget of a Python worker that joins."""
    return description.enrich.memory_bytes // joins_of(description)


def joined(
    rows: DataFrame,
    description: PipelineDescription,
    columns: Sequence[RememberedColumns],
    note: Callable[[str, DataFrame], None],
) -> DataFrame:
    """Return the rows with the columns of all dimensions; `note` is told what comes of each."""
    names = _operator_names(description)
    for dimension, wanted, name in zip(description.dimensions, columns, names, strict=True):
        with naming(dimension.where):
            rows = _joined(rows, description, dimension, wanted, name)
        note(f"dimension {MasterTable(dimension.table).address.name}", rows)
    return rows


def _joined(
    rows: DataFrame,
    description: PipelineDescription,
    dimension: DimensionDescription,
    columns: RememberedColumns,
    name: str,
) -> DataFrame:
    settings = description.enrich
    return enrich(
        rows,
        MasterTable(dimension.table),
        on=list(dimension.on) if isinstance(dimension.on, tuple) else dimension.on,
        how=dimension.how,
        memory=memory_of_join(description),
        disk=_disk(description, dimension),
        algorithm=settings.algorithm,
        columns=columns.columns,
        replace=dimension.replace,
        suffix=dimension.suffix,
        matched=dimension.matched,
        order=settings.order,
        partitioning=settings.partitioning,
        room=_room(description, dimension, name),
        max_wait=settings.max_wait_seconds,
        unmatched=dimension.unmatched,
        retry_for=dimension.retry_seconds if dimension.retry_seconds is not None else "1 day",
        dead_letters=_letters(description, name),
        name=name,
        hot_keys=_HOT_KEYS if description.statistics.page.keys else 0,
        parameters=settings.parameters,
    )


def _disk(description: PipelineDescription, dimension: DimensionDescription) -> int | None:
    """Return what copies of a table may take on the local disk, which is said for those in object stores alone."""
    scheme = MasterTable(dimension.table).address.scheme
    others = {MasterTable(other.table).address.scheme for other in description.dimensions}
    if scheme in OBJECT_STORES or not others & set(OBJECT_STORES):
        return description.enrich.disk_bytes
    return None


def rows_may_wait(description: PipelineDescription) -> bool:
    """Say whether rows may leave in other micro-batches than they came with."""
    return any(_waits(description, dimension) for dimension in description.dimensions)


def _waits(description: PipelineDescription, dimension: DimensionDescription) -> bool:
    return description.enrich.max_wait_seconds is not None or dimension.unmatched == "park"


def _room(description: PipelineDescription, dimension: DimensionDescription, name: str) -> str | None:
    """Return where rows wait, if some may: beside the checkpoint, with which it is moved and deleted."""
    room = description.enrich.room
    if room is not None and not rows_may_wait(description):
        raise InvalidSettingError("[enrich] room is not used: give `max_wait`, or leave it out.")
    if not _waits(description, dimension):
        return None
    if room is None and not is_local(description.checkpoint):
        raise InvalidSettingError(
            "[enrich] room is missing: rows that wait need a folder or an object store beside the checkpoint."
        )
    room = room or f"{description.checkpoint}/room"
    return room if joins_of(description) == 1 else f"{room}/{name}"


def _letters(description: PipelineDescription, name: str) -> str | None:
    """Return the folder for rows that cannot be joined; files of two joins would have the same names."""
    folder = description.enrich.dead_letters
    return folder if folder is None or joins_of(description) == 1 else f"{folder}/{name}"


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
