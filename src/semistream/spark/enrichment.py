"""`enrich`: a Spark DataFrame, streaming or not, joined with a master table inside a fixed byte budget."""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace as replace_plan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.budget import format_bytes, parse_bytes
from semistream.core.errors import BudgetTooSmallError, InvalidSettingError, NameClashError
from semistream.core.local_paths import local_path_of
from semistream.core.spark_frames import is_spark_frame
from semistream.engine.output.output_plan import OutputPlan, plan_output
from semistream.engine.recipe import Recipe
from semistream.joining.arguments import check_arguments
from semistream.joining.batches import On, key_pairs
from semistream.joining.budget_check import check_budget
from semistream.joining.join_types import join_type
from semistream.joining.matched import MatchedColumn, with_matched
from semistream.joining.ordered_session import check_keeps_order
from semistream.spark.column_names import ColumnNames
from semistream.spark.master_types import arrow_schema
from semistream.spark.output_types import spark_type
from semistream.spark.partitioning import Partitioning, partitioned
from semistream.spark.pinning import Pin
from semistream.spark.room.use import (
    ROOM_COLUMNS,
    checked_waiting,
    order_in_room,
    parameters_in_room,
    slots_wanted,
    with_tickets,
)
from semistream.spark.room.visit import RoomUse
from semistream.spark.statistics import METRIC_PREFIX, TASKS_FIELD
from semistream.spark.task import EnrichTask
from semistream.spark.unmatched_rows import checked_unmatched
from semistream.spark.wide_plan import widened
from semistream.spark.worker import Order
from semistream.spark.worker_pool import workers_of_joins
from semistream.spark.worker_python import check_worker_python
from semistream.store.address import LOCAL, Address, TableAddress
from semistream.store.contract import MasterStore
from semistream.store.tables import checked_disk, table_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STATISTICS = "statistics"
FLAG = "semistream matched"
"""The column that tells rows without a match, where users have asked for none."""
_SMALLEST_MEMORY = 4_000_000
_MAX_HOT_KEYS = 100
_unnamed = itertools.count(1)


def enrich(
    df: DataFrame,
    master: TableAddress,
    *,
    on: On,
    how: str = "inner",
    memory: int | str = "64MB",
    disk: int | str | None = None,
    algorithm: str = DEFAULT_ALGORITHM,
    columns: Sequence[str] | None = None,
    replace: Mapping[str, str] | None = None,
    suffix: str | None = None,
    matched: str | None = None,
    order: str | None = None,
    partitioning: Partitioning = "auto",
    room: str | os.PathLike[str] | None = None,
    max_wait: float | str | None = None,
    unmatched: str | None = None,
    retry_for: float | str = "1 day",
    dead_letters: str | os.PathLike[str] | None = None,
    name: str | None = None,
    hot_keys: int = 0,
    pin: tuple[str, int] | Literal[False] | None = None,
    parameters: Mapping[str, float] | None = None,
) -> DataFrame:
    """Return the DataFrame with columns of a master table added; works on streams and on batches.

    Settings, columns, types, names and the master table are checked at once, so that mistakes show here and not in the
    middle of the stream.

    Args:
        df: The DataFrame to enrich, streaming or not.
        master: The master table, or its address. Driver and workers must reach it by the same address.
        on: The key columns: a name, a list of names, or a mapping from columns of the DataFrame to key columns of the
            master table. Capitals in names matter only if spark.sql.caseSensitive is true.
        how: "inner", "left", "semi" or "anti"; Spark's names, such as "left_outer", also work.
        memory: What all joins of one Python worker process may use together: bytes, or a string such as "64MB", "64
            MiB" or, with Spark's meaning of 1024 times 1024, "64m".
        disk: What copies of parts of a master table in an object store may take on the disk of each executor: bytes, or
            a string such as "2GB". All queries with the same `disk` share it. By default nothing is kept there.
        algorithm: The name of the join algorithm; `semistream algorithms` lists them.
        columns: The master columns to add; by default all except the key.
        replace: A mapping from columns of the DataFrame to the master columns that take their place.
        suffix: Renames master columns that clash with columns of the DataFrame by adding this string.
        matched: The name of a boolean column to add to a left join, which says whether the row has a match.
        order: "input" keeps the rows of a task in the order in which they came, "any" emits each row as soon as it is
            answered. The default is "input" for DEMANDJOIN; all other algorithms only have "any".
        partitioning: "auto" shuffles rows by key where that saves more reads than the shuffle costs, "none" never does,
            and a number always does, into that many partitions. With a room, the number of its slots, which stays
            what it was at the first start.
        room: A folder beside the checkpoint, or a prefix in an object store, in which rows of a stream may wait between
            micro-batches: rows that the cache answers leave at once, others within `max_wait`, together with all that
            need the same pages. A room belongs to one query and one `enrich`.
        max_wait: The longest time that a row may wait in the room: seconds, or a string such as "10 seconds". "0
            seconds" empties the room and keeps it empty.
        unmatched: What becomes of rows without a match: "drop" (the default of an inner join), "keep" (of a left join),
            "fail", "dead_letters", or "park": they wait in the room until a version of the master table has their key.
        retry_for: How long parked rows wait before they go to the dead letters: seconds, or a string such as "1 day".
        dead_letters: A folder for rows that are too large for the memory, or whose master row is, and for unmatched
            rows. They are written to Parquet files together with the reason; without a folder, a row that is too large
            is an error, and parked rows go to the folder dead_letters of the room in the end.
        name: The name of the operator in statistics, which `ss.progress` reads.
        hot_keys: How many of the most frequent keys, and with order "input" of the most frequent keys without a match,
            the statistics of a batch name. They then stand in Spark's progress and event log in plain text.
        pin: Every micro-batch is joined with one version of the master table, and a replay sees that version again.
            Where Spark does not number micro-batches, as in `foreachBatch`, give the name of the query and the number
            of the batch. False turns pinning off.
        parameters: Parameters of the algorithm, by name. With order "input" only `cache_share`, `max_windows` and
            `absent` are taken, because nothing waits.
    """
    if not is_spark_frame(df):
        raise InvalidSettingError(
            f"An object of type {type(df).__name__} is not a Spark DataFrame: use ss.join for Arrow data."
        )
    kind = join_type(how)
    waiting = checked_waiting(df, room, max_wait, retry_for, unmatched)
    fate = checked_unmatched(unmatched, kind, has_room=waiting is not None, has_dead_letters=dead_letters is not None)
    routed = fate in ("fail", "park", "dead_letters")
    if fate == "park" and dead_letters is None and waiting is not None and waiting.address.scheme != LOCAL:
        raise InvalidSettingError("Parked rows that find no match in time need a place: give `dead_letters`, a folder.")
    check_arguments(on=on, columns=columns, replace=replace, suffix=suffix, parameters=parameters)
    recipe = algorithm_named(algorithm)
    recipe.values(parameters)  # checks them
    chosen_order = _checked_order(order, recipe, parameters) if waiting is None else order_in_room(order)
    memory_bytes = _checked_memory(memory)
    table = Address.of(master).absolute()  # the working directory of a worker is another
    disk_bytes = checked_disk(table, disk)
    check_worker_python(df.sparkSession)
    names = ColumnNames.of(df.sparkSession)
    spark_schema = StructType(list(df.schema.fields))
    with table_at(table).open() as store:
        known = store.schema.names
        # Within the plan a column of the stream is written as the master table writes it.
        ours = names.all_spelled(spark_schema.names, known)
        pairs = key_pairs(spelled_on(names, on, ours, known), store)
        stream = arrow_schema(_renamed_schema(spark_schema, ours), [key for key, _ in pairs])
        planned = plan_output(
            stream,
            store.schema,
            pairs,
            how="left" if routed else kind,
            columns=names.all_spelled(columns, known) if columns is not None else None,
            replace=names.renaming(replace, ours, known) if replace is not None else None,
            suffix=suffix,
        )
        if routed and kind != "left" and matched is not None:
            with_matched(replace_plan(planned, how=kind), store.schema, matched)  # refuses it
        plan, matched_column = with_matched(planned, store.schema, matched or (FLAG if routed else None))
        store.codec.check(plan.stream_keys, [stream.field(key).type for key in plan.stream_keys])
        keys = [stream.names.index(key) for key in plan.stream_keys]
        added = ROOM_COLUMNS if waiting is not None else ()
        positional = _by_position(plan, keys)
        joined_plan, shown = positional, None
        if routed or waiting is not None:
            joined_plan, shown = widened(positional, stream, added)
        for_rows = parameters_in_room(recipe, parameters) if waiting is not None else dict(parameters or {})
        with_keys, of_stream = replace_plan(joined_plan, stream_keys=plan.stream_keys), pa.schema([*stream, *added])
        check: dict[str, Any] = {"recipe": recipe, "in_order": chosen_order == "input"}
        try:
            check_budget(memory_bytes, store, with_keys, of_stream, parameters=for_rows, **check)
        except BudgetTooSmallError:
            for_rows = dict(parameters or {})
            check_budget(memory_bytes, store, with_keys, of_stream, parameters=for_rows, **check)
        output = _output_schema(spark_schema, store, plan, matched_column)
        flag_at = shown[-1] if shown is not None and routed else None
        if routed and matched is None:
            assert shown is not None
            output, shown, matched_column = output[:-1], shown[:-1], None
        names.check_distinct([field.name for field in output], [from_master for from_master, _ in plan.sources])
        master_schema = pa.schema([store.schema.field(name) for name in (*plan.master_columns, *plan.master_keys)])
        version = store.version
        if df.isStreaming and not store.capabilities.snapshot:
            if fate == "park":
                raise InvalidSettingError(
                    f"The master table {table.name} has no versions, so parked rows could not be replayed: copy it "
                    f"with MasterTable.build, or choose another `unmatched`."
                )
            _warn_of_replay(table)
        if store.warning is not None:
            warnings.warn(store.warning, stacklevel=2)
        columns_of_stream, of_key = df.toDF(*_positional("c", len(stream))), [f"c{key}" for key in keys]
        use: RoomUse | None = None
        if waiting is None:
            spread = partitioned(columns_of_stream, of_key, store, partitioning)
        else:
            stream_keys = [spark_schema.names[key] for key in keys]
            use = waiting.prepared(stream_keys, arrow_schema(spark_schema, ()), slots_wanted(df, partitioning))
            spread = with_tickets(columns_of_stream, of_key, use, table)
    inner = StructType(
        [
            *(StructField(f"o{index}", field.dataType, True) for index, field in enumerate(output)),
            StructField(_STATISTICS, StringType(), True),
        ]
    )
    task = EnrichTask(
        name=_operator_name(name, table),
        table=table,
        pin=_pin(pin, None if df.isStreaming else version),
        algorithm=algorithm,
        parameters=for_rows,
        order=chosen_order,
        plan=joined_plan,
        master_schema=master_schema,
        declared=arrow_schema(inner, ()),
        memory_bytes=memory_bytes,
        disk_bytes=disk_bytes,
        stream_names=tuple(field.name for field in spark_schema),
        dead_letters=_folder(dead_letters) if dead_letters is not None or use is None else use.dead_letters,
        tells_matches=matched_column is not None,
        hot_keys=_checked_hot_keys(hot_keys),
        shown=shown,
        flag_at=flag_at,
        unmatched=fate,
        keeps_null_keys=kind == "left",
        room=use,
    )
    with workers_of_joins(df.sparkSession):
        joined = spread.mapInArrow(task, inner)
    counted = _observed(joined, task.name)
    rows = counted.where(F.col(_STATISTICS).isNull())
    return rows.select(*(_renamed(f"o{index}", field) for index, field in enumerate(output)))


def _observed(joined: DataFrame, name: str) -> DataFrame:
    try:
        counted = joined.observe(METRIC_PREFIX + name, F.collect_list(_STATISTICS).alias(TASKS_FIELD))
        if getattr(joined.sparkSession, "_sc", None) is None:
            counted.schema  # noqa: B018 - Spark Connect looks at names only when it must
    except PySparkException as error:
        if "DUPLICATED_METRICS_NAME" not in str(error):
            raise
        raise NameClashError(
            f"The DataFrame is already enriched under the name {name!r}: give each enrich a `name` of its own."
        ) from None
    return counted


def _folder(place: str | os.PathLike[str] | None) -> Path | None:
    if place is not None and not isinstance(place, str | os.PathLike):
        raise InvalidSettingError(f"dead_letters is of type {type(place).__name__}: give the path of a folder.")
    return None if place is None else Path(os.path.abspath(local_path_of(place, "Dead letters")))  # noqa: PTH100


def spelled_on(names: ColumnNames, on: On, ours: Sequence[str], theirs: Sequence[str]) -> On:
    """Return the key columns as those of the stream and of the master table are written."""
    if isinstance(on, Mapping):
        return names.renaming(on, ours, theirs)
    return names.spelled(on, ours) if isinstance(on, str) else names.all_spelled(on, ours)


def _renamed_schema(schema: StructType, names: Sequence[str]) -> StructType:
    return StructType(
        [StructField(name, field.dataType, field.nullable) for name, field in zip(names, schema, strict=True)]
    )


def _checked_memory(memory: int | str) -> int:
    memory_bytes = parse_bytes(memory)
    if memory_bytes < _SMALLEST_MEMORY:
        raise BudgetTooSmallError(
            f"{format_bytes(memory_bytes)} of memory is too little for a Spark worker: "
            f"give at least {format_bytes(_SMALLEST_MEMORY)}."
        )
    return memory_bytes


def _checked_hot_keys(count: int) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MAX_HOT_KEYS:
        raise InvalidSettingError(f"hot_keys is {count!r}: give a whole number from 0 to {_MAX_HOT_KEYS}.")
    return count


def _checked_order(order: str | None, recipe: Recipe, parameters: Mapping[str, float] | None) -> Order:
    if order is None:
        order = "input" if recipe.keeps_order else "any"
    if order == "input":
        check_keeps_order(recipe, parameters)
        return "input"
    if order != "any":
        raise InvalidSettingError(f"{order!r} is not an order of rows: choose 'any' or 'input'.")
    return "any"


def _pin(pin: tuple[str, int] | Literal[False] | None, version: int | None) -> Pin:
    if pin is None:
        return Pin(version)
    if pin is False:
        return Pin(version, wanted=False)
    if not (isinstance(pin, tuple) and len(pin) == 2 and isinstance(pin[0], str) and _is_batch(pin[1])):
        raise InvalidSettingError(f"{pin!r} is not a valid pin: give the query's name and the batch number.")
    return Pin(version, *pin)


def _is_batch(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _warn_of_replay(table: Address) -> None:
    warnings.warn(
        f"The master table {table.name} has no versions: a micro-batch that is replayed after a failure is joined with "
        f"the rows of that moment; copy the table with MasterTable.build if a replay must give the same rows.",
        stacklevel=3,
    )


def _operator_name(name: str | None, table: Address) -> str:
    if name is None:
        return f"{table.name}-{next(_unnamed)}"
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]{1,100}", name):
        raise InvalidSettingError(f"{name!r} cannot name an operator: use letters, digits, '.', '_' and '-'.")
    return name


def _output_schema(
    stream: StructType, store: MasterStore, plan: OutputPlan, matched: MatchedColumn | None
) -> list[StructField]:
    """Return the columns of the result; those of the stream keep their metadata, in which watermarks travel."""
    fields = []
    for (from_master, index), planned in zip(plan.sources, plan.schema, strict=True):
        if from_master:
            column = plan.master_columns[index]
            fields.append(StructField(planned.name, spark_type(column, store.schema.field(column).type), True))
        else:
            ours = stream.fields[index]
            fields.append(StructField(ours.name, ours.dataType, True, dict(ours.metadata)))
    if matched is not None:
        fields[-1] = StructField(matched.name, BooleanType(), True)
    return fields


def _by_position(plan: OutputPlan, keys: list[int]) -> OutputPlan:
    """Return the plan with columns named by their positions: users' names may have dots or occur twice."""
    fields = [field.with_name(f"o{index}").with_nullable(True) for index, field in enumerate(plan.schema)]
    return OutputPlan(
        plan.how,
        pa.schema(fields),
        plan.sources,
        plan.master_columns,
        tuple(f"c{key}" for key in keys),
        plan.master_keys,
    )


def _positional(letter: str, count: int) -> list[str]:
    return [f"{letter}{index}" for index in range(count)]


def _renamed(column: str, field: StructField) -> Any:
    return (
        F.col(column).alias(field.name, metadata=field.metadata) if field.metadata else F.col(column).alias(field.name)
    )
