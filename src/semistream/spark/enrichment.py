"""`enrich`: a Spark DataFrame, streaming or not, joined with master tables inside a fixed byte budget."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pyspark.sql.types import StructType

from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.errors import InvalidSettingError
from semistream.core.spark_frames import is_spark_frame
from semistream.joining.arguments import check_arguments
from semistream.joining.batches import On
from semistream.joining.join_types import join_type
from semistream.spark.column_names import ColumnNames
from semistream.spark.dimension import Dimension
from semistream.spark.enrich_settings import (
    checked_dimensions,
    checked_folder,
    checked_hot_keys,
    checked_memory,
    checked_order,
    operator_name,
)
from semistream.spark.master_types import arrow_schema
from semistream.spark.operator import OperatorTerms, by_position, key_names, operated, task_of
from semistream.spark.partitioning import Partitioning, partitioned
from semistream.spark.planned_join import JoinTerms, planned_join
from semistream.spark.room.use import checked_waiting, order_in_room, slots_wanted, with_tickets
from semistream.spark.room.visit import RoomUse
from semistream.spark.star import joined_with_star
from semistream.spark.unmatched_rows import checked_unmatched
from semistream.spark.worker_python import check_worker_python
from semistream.store.address import LOCAL, Address, TableAddress
from semistream.store.tables import checked_disk, table_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def enrich(
    df: DataFrame,
    master: TableAddress | Dimension | Sequence[Dimension],
    *,
    on: On | None = None,
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
        master: The master table, or its address. Driver and workers must reach it by the same address. Or a list of
            `ss.Dimension`, which are joined one after the other in one operator; what belongs to one of them, such as
            `on`, is then given there.
        on: The key columns: a name, a list of names, or a mapping from columns of the DataFrame to key columns of the
            master table. Capitals in names matter only if spark.sql.caseSensitive is true.
        how: "inner", "left", "semi" or "anti"; Spark's names, such as "left_outer", also work. With a list, for
            dimensions that do not say.
        memory: What all joins of one Python worker process may use together: bytes, or a string such as "64MB", "64
            MiB" or, with Spark's meaning of 1024 times 1024, "64m". It moves to the caches that save most.
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
            is an error, and parked rows go to the folder dead_letters of the room in the end. With a list, each
            dimension has a folder of its name in it.
        name: The name of the operator in statistics, which `ss.progress` reads; with a list, what the names of
            dimensions that have none of their own begin with.
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
    if isinstance(master, Dimension | list | tuple):
        of_each = {"on": on, "columns": columns, "replace": replace, "suffix": suffix, "matched": matched}
        given = {**of_each, "unmatched": unmatched, "room": room, "max_wait": max_wait}
        return joined_with_star(
            df,
            checked_dimensions(master, given),
            how=how,
            memory=memory,
            disk=disk,
            algorithm=algorithm,
            order=order,
            partitioning=partitioning,
            dead_letters=dead_letters,
            name=name,
            hot_keys=hot_keys,
            pin=pin,
            parameters=parameters,
        ).rows
    kind = join_type(how)
    waiting = checked_waiting(df, room, max_wait, retry_for, unmatched)
    fate = checked_unmatched(unmatched, kind, has_room=waiting is not None, has_dead_letters=dead_letters is not None)
    if fate == "park" and dead_letters is None and waiting is not None and waiting.address.scheme != LOCAL:
        raise InvalidSettingError("Parked rows that find no match in time need a place: give `dead_letters`, a folder.")
    check_arguments(on=on, columns=columns, replace=replace, suffix=suffix, parameters=parameters)
    assert on is not None
    dimension = Dimension(master, on=on, columns=columns, replace=replace, suffix=suffix, matched=matched)  # type: ignore[arg-type]
    recipe = algorithm_named(algorithm)
    recipe.values(parameters)  # checks them
    chosen_order = checked_order(order, recipe, parameters) if waiting is None else order_in_room(order)
    memory_bytes = checked_memory(memory)
    table = Address.of(dimension.table).absolute()  # the working directory of a worker is another
    disk_bytes = checked_disk(table, disk)
    check_worker_python(df.sparkSession)
    schema = StructType(list(df.schema.fields))
    with table_at(table).open() as store:
        terms = JoinTerms(
            ColumnNames.of(df.sparkSession),
            recipe,
            parameters,
            chosen_order,
            memory_bytes,
            df.isStreaming,
            has_room=waiting is not None,
        )
        join = planned_join(schema, dimension, table, store, kind, fate, terms)
        use: RoomUse | None = None
        if waiting is None:
            spread = partitioned(by_position(df), key_names(join), store, partitioning)
        else:
            stream_keys = [schema.names[key] for key in join.keys]
            use = waiting.prepared(stream_keys, arrow_schema(schema, ()), slots_wanted(df, partitioning))
            spread = with_tickets(by_position(df), key_names(join), use, table)
    operator = operator_name(name, table.name)
    task = task_of(
        join,
        OperatorTerms(operator, algorithm, chosen_order, memory_bytes, pin, checked_hot_keys(hot_keys), df.isStreaming),
        name=operator,
        disk_bytes=disk_bytes,
        dead_letters=checked_folder(dead_letters) if dead_letters is not None or use is None else use.dead_letters,
        room=use,
    )
    return operated(spread, task, join, operator)
