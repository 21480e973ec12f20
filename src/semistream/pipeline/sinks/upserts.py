"""Upserts: one row for each key of a batch, and which keys must not be upserted by."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.description import (
    DropColumns,
    RenameColumns,
    SelectColumns,
    SetColumns,
    SinkDescription,
    Step,
)
from semistream.pipeline.sinks.contract import spelled_columns
from semistream.pipeline.transformations import quoted
from semistream.spark.column_names import ColumnNames

_NUMBER = "_semistream_number"
_DIFFERENT = "_semistream_different"
_NO_ORDER = (MapType, VariantType)


def check_upsert(
    rows: DataFrame, sink: SinkDescription, *, unsure: Collection[str] = (), rows_may_wait: bool = False
) -> None:
    """Raise an error unless rows can be upserted by this key, so that every replay gives the same table.

    `unsure` are the columns whose values another attempt of a batch may not find again. `rows_may_wait` says that rows
    leave in another order than they came, as they do from a waiting room: without an order an older row would then win.
    """
    if sink.mode != "upsert":
        return
    key = spelled_columns(rows, sink.key, "key")
    for name in key:
        if isinstance(rows.schema[name].dataType, ArrayType | StructType | MapType | VariantType):
            raise InvalidSettingError(
                f"[sink] key names {name!r}, which holds several values and cannot be a key: name plain columns."
            )
        if name in unsure:
            raise InvalidSettingError(
                f"[sink] key names {name!r}, which comes from a master table without versions, so that a batch that is "
                f"repeated could write other keys: use a copy or a mirror of the master table, or another key."
            )
    if len(key) == len(rows.columns):
        raise InvalidSettingError("[sink] key names all columns, so that nothing is left to update: name fewer.")
    if sink.order_by is not None:
        (order,) = spelled_columns(rows, (sink.order_by,), "order_by")
        if isinstance(rows.schema[order].dataType, ArrayType | StructType | MapType | VariantType):
            raise InvalidSettingError(f"[sink] order_by names {order!r}, which has no order: name a plain column.")
    elif rows_may_wait:
        raise InvalidSettingError(
            "[sink] order_by is missing: rows may wait, so that an older row of a key could come after a newer one: "
            "name the column that tells which is newer."
        )


def newest_of_keys(rows: DataFrame, key: Sequence[str], order_by: str | None) -> DataFrame:
    """Return one row for each key: the newest by `order_by`, or the only one; a null key or a doubtful one stops.

    Of rows that are equally new the content decides, so that every attempt of a batch takes the same one.
    """
    columns = [F.col(quoted(name)) for name in key]
    null = columns[0].isNull()
    for column in columns[1:]:
        null = null | column.isNull()
    missing = f"A row has no value in {' or '.join(key)}, the key of [sink]: leave such rows out by a filter."
    sound = rows.where(F.when(null, F.raise_error(F.lit(missing)).cast("boolean")).otherwise(F.lit(True)))
    of_key = Window.partitionBy(*columns)
    content = F.xxhash64(*(_comparable(rows, name) for name in rows.columns))
    if order_by is not None:
        newest_first = of_key.orderBy(F.col(quoted(order_by)).desc_nulls_last(), content)
        return sound.withColumn(_NUMBER, F.row_number().over(newest_first)).where(f"{_NUMBER} = 1").drop(_NUMBER)
    repeated = (
        f"Two rows of a batch have the same {' and '.join(key)}: name the column that tells which is newer by order_by "
        f"in [sink]."
    )
    stop = F.when(F.col(_DIFFERENT), F.raise_error(F.lit(repeated)).cast("boolean")).otherwise(F.lit(True))
    marked = sound.withColumn(_DIFFERENT, F.min(content).over(of_key) != F.max(content).over(of_key))
    numbered = marked.where(stop).withColumn(_NUMBER, F.row_number().over(of_key.orderBy(F.lit(1))))
    return numbered.where(f"{_NUMBER} = 1").drop(_NUMBER, _DIFFERENT)


def columns_of_master(
    stream: Sequence[str], enriched: Sequence[str], replaced: Iterable[str], steps: Sequence[Step], rule: ColumnNames
) -> set[str]:
    """Return the columns after the steps that may depend on a master table, by the names that the steps use.

    `stream` are the columns before the join, `enriched` those after it; `replaced` are stream columns whose values the
    join replaces. A column counts, too, if its expression mentions one that does.
    """
    known = {rule.key(name) for name in stream}
    found = {rule.key(name) for name in enriched} - known | {rule.key(name) for name in replaced}
    for step in steps:
        match step:
            case SetColumns(expressions):
                mentioned = {rule.key(name): bool(_words(text, rule) & found) for name, text in expressions.items()}
                found = found - set(mentioned) | {name for name, depends in mentioned.items() if depends}
            case RenameColumns(names):
                renamed = {rule.key(old): rule.key(new) for old, new in names.items()}
                found = {renamed.get(name, name) for name in found}
            case DropColumns(names):
                found -= {rule.key(name) for name in names}
            case SelectColumns(names):
                found &= {rule.key(name) for name in names}
            case _:
                pass
    return found


def _words(expression: str, rule: ColumnNames) -> set[str]:
    """Return everything in an expression that may be the name of a column."""
    quoted = re.findall(r"`((?:[^`]|``)+)`", expression)
    return {rule.key(word) for word in [*re.findall(r"\w+", expression), *quoted]}


def _comparable(rows: DataFrame, name: str) -> Column:
    column = F.col(quoted(name))
    return F.to_json(column) if isinstance(rows.schema[name].dataType, _NO_ORDER) else column
