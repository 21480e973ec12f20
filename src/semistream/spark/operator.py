"""Makes the Python operator of `enrich` of joins that are planned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField

from semistream.core.errors import NameClashError
from semistream.spark.enrich_settings import checked_pin
from semistream.spark.master_types import arrow_schema
from semistream.spark.planned_join import STATISTICS, PlannedJoin
from semistream.spark.room.visit import RoomUse
from semistream.spark.statistics import METRIC_PREFIX, TASKS_FIELD
from semistream.spark.task import EnrichTask, StarTask
from semistream.spark.worker_pool import workers_of_joins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from semistream.spark.held_join import Order


@dataclass(frozen=True)
class OperatorTerms:
    """What all tasks of an operator have in common."""

    name: str
    algorithm: str
    order: Order
    memory_bytes: int
    pin: tuple[str, int] | Literal[False] | None
    hot_keys: int
    is_streaming: bool


def task_of(
    join: PlannedJoin,
    terms: OperatorTerms,
    *,
    name: str,
    disk_bytes: int | None,
    dead_letters: Path | None,
    room: RoomUse | None = None,
    asked: tuple[int, tuple[int, ...]] = (0, ()),
) -> EnrichTask:
    """Return what runs in workers for one dimension."""
    return EnrichTask(
        name=name,
        table=join.table,
        pin=checked_pin(terms.pin, None if terms.is_streaming else join.version),
        algorithm=terms.algorithm,
        parameters=join.parameters,
        order=terms.order,
        plan=join.plan,
        master_schema=join.master_schema,
        declared=arrow_schema(join.declared, ()),
        memory_bytes=terms.memory_bytes,
        disk_bytes=disk_bytes,
        stream_names=tuple(join.stream.names),
        dead_letters=dead_letters,
        tells_matches=join.tells_matches,
        hot_keys=terms.hot_keys,
        shown=join.shown,
        flag_at=join.flag_at,
        unmatched=join.fate,
        keeps_null_keys=join.keeps_null_keys,
        room=room,
        asked_from=asked[0],
        asked_columns=asked[1],
    )


def operated(spread: DataFrame, task: EnrichTask | StarTask, last: PlannedJoin, name: str) -> DataFrame:
    """Return what the operator makes of rows whose columns are named by their positions."""
    with workers_of_joins(spread.sparkSession):
        joined = spread.mapInArrow(task, last.declared)
    counted = _observed(joined, name)
    rows = counted.where(F.col(STATISTICS).isNull())
    return rows.select(*(_renamed(f"o{index}", field) for index, field in enumerate(last.output)))


def by_position(df: DataFrame) -> DataFrame:
    """Return the DataFrame with columns named by their positions: users' names may have dots or occur twice."""
    return df.toDF(*(f"c{place}" for place in range(len(df.schema.fields))))


def key_names(join: PlannedJoin) -> list[str]:
    """Return the key columns of what comes, by their positions."""
    return [f"c{key}" for key in join.keys]


def _observed(joined: DataFrame, name: str) -> DataFrame:
    try:
        counted = joined.observe(METRIC_PREFIX + name, F.collect_list(STATISTICS).alias(TASKS_FIELD))
        if getattr(joined.sparkSession, "_sc", None) is None:
            counted.schema  # noqa: B018 - Spark Connect looks at names only when it must
    except PySparkException as error:
        if "DUPLICATED_METRICS_NAME" not in str(error):
            raise
        raise NameClashError(
            f"The DataFrame is already enriched under the name {name!r}: give each enrich a `name` of its own."
        ) from None
    return counted


def _renamed(column: str, field: StructField) -> Any:
    return (
        F.col(column).alias(field.name, metadata=field.metadata) if field.metadata else F.col(column).alias(field.name)
    )
