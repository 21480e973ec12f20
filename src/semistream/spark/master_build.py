"""Builds and merges master tables from Spark DataFrames: Spark sorts, its tasks write, the driver commits.

Rows get their key codes in tasks, are divided into ranges of codes and sorted by Spark, which spills what does not fit.
How many parts there are follows from `spark.sql.shuffle.partitions` and from adaptive execution, which joins small
ones. The driver and all executors must reach the table by the same address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError, SemistreamError, UnknownColumnError
from semistream.core.spark_frames import is_spark_frame
from semistream.spark.column_names import ColumnNames
from semistream.spark.master_tasks import REPORT_COLUMNS, ChangesTask, PageTask, SortedRowsTask, reported_parts
from semistream.spark.master_types import arrow_schema, code_expression, is_orderable
from semistream.store.address import Address
from semistream.store.build_in_parts import BuildInParts, check_settings, page_bytes_for
from semistream.store.merge_in_parts import (
    AppliedDifference,
    MergeInParts,
    MirrorStep,
    check_columns,
    check_names,
    delete_schema,
)
from semistream.store.parts import CODE_COLUMN, KeyCoder, Part, RowLayout, first_unseen
from semistream.store.tables import Progress, silent

_SAMPLED_ROWS = 1000
_LATEST_NEEDS_ORDER = "or name the columns that say which row is the latest in order_by"


def build(
    frame: DataFrame,
    address: Address,
    key: str | Sequence[str],
    *,
    page_bytes: int | None,
    on_duplicate: str,
    order_by: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    mirror: Mapping[str, Any] | None = None,
    check: Callable[[], None] | None = None,
    expected_bytes: float | None = None,
    in_ranges: bool = False,
) -> int:
    """Write all rows of a DataFrame as the next version of the table at an address and return its number.

    The DataFrame is evaluated twice, for a sample of the codes and for the rows, and without `page_bytes` its rows are
    counted before, so that pages are small if the table is. Rows have no order in Spark, so that
    `on_duplicate="latest"` needs `order_by`: of the rows of a key the one with the greatest values in these columns
    stays, nulls being smallest. Rows that are equal in them are told apart by their other columns, so that the same
    rows always make the same table. With `in_ranges` each partition of the DataFrame has a range of codes of its
    own already: it is evaluated once and not shuffled.
    """
    check_settings(page_bytes, on_duplicate)
    _check_not_streaming(frame)
    spelling = ColumnNames.of(frame.sparkSession)
    names = tuple(spelling.all_spelled([key] if isinstance(key, str) else list(key), frame.columns))
    layout = RowLayout(arrow_schema(frame.schema, names), names)
    if order_by is not None and on_duplicate != "latest":
        raise InvalidSettingError(f"order_by does nothing if on_duplicate is {on_duplicate!r}: set it to 'latest'.")
    if order_by is None and on_duplicate == "latest":
        raise InvalidSettingError(
            f"The rows of a DataFrame have no order, so none of them is the latest: set on_duplicate to 'error' or "
            f"'all', "
            f"{_LATEST_NEEDS_ORDER}."
        )
    coder = KeyCoder.of(layout, layout.coded_schema)
    order = spelling.all_spelled(_named(order_by), frame.columns)
    rows = _sorted_by_code(frame, coder, layout.order, order, tell_apart=on_duplicate != "error", in_ranges=in_ranges)
    progress = progress or silent
    with BuildInParts(address, layout, on_duplicate) as begun:
        progress("reading", 0, None)
        page_bytes = page_bytes or page_bytes_for(_expected_bytes(frame) if expected_bytes is None else expected_bytes)
        task = PageTask(
            begun.address,
            layout.coded_schema,
            begun.version,
            layout.schema,
            layout.key,
            page_bytes,
            on_duplicate,
        )
        parts = _written(rows, task)
        row_count = sum(part.kept_rows for part in parts)
        progress("writing", row_count, row_count)
        if check is not None:
            check()
        return begun.commit(parts, page_bytes, mirror)


def merge(
    address: Address,
    upserts: Any = None,
    deletes: Any = None,
    *,
    memory: int | str,
    order_by: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> int:
    """Delete rows by key, then insert or replace rows by key, as the next version; return the number of the version.

    Either may be a DataFrame or anything that a merge without Spark takes. Several upserts of a key in a DataFrame are
    refused, unless the table keeps them all, or `order_by` says which one is the latest. Spark sorts the changes into
    temporary files beside the table; the driver merges them within `memory`.
    """
    memory_bytes = parse_bytes(memory)
    progress = progress or silent
    if order_by is not None and not is_spark_frame(upserts):
        raise InvalidSettingError("order_by is for upserts in a Spark DataFrame: leave it out.")
    with MergeInParts(address, memory_bytes, progress) as begun:
        changes = _Changes(begun, progress)
        rule = "all" if begun.keeps_all else "latest"
        if is_spark_frame(upserts) and rule == "latest" and order_by is None:
            rule = "error"
        upserted = changes.upserts(upserts, order_by, in_order=rule != "error")
        deleted = changes.deletes(deletes)
        return begun.apply(upserted, deleted, rule=rule, advice=f"remove all but one of them, {_LATEST_NEEDS_ORDER}")


def apply_difference(
    address: Address,
    upserts: Any,
    deletes: Any = None,
    *,
    whole: bool,
    step: MirrorStep | None,
    memory: int | str,
    check: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> AppliedDifference:
    """Bring a table in step with a DataFrame that has all its rows (`whole`) or those that have changed.

    A key must not occur twice, unless the table keeps them all. Only rows that differ from the table are merged.
    """
    with MergeInParts(address, parse_bytes(memory), progress) as begun:
        changes = _Changes(begun, progress or silent)
        rule = "all" if begun.keeps_all else "error"
        upserted = changes.upserts(upserts, None, in_order=rule == "all")
        deleted = changes.deletes(deletes)
        return begun.apply_difference(upserted, deleted, rule=rule, whole=whole, step=step, check=check)


def _expected_bytes(frame: DataFrame) -> float:
    """Return the size of all rows, if they are like the first ones."""
    first = frame.limit(_SAMPLED_ROWS).toArrow()
    if first.num_rows < _SAMPLED_ROWS:
        return float(first.nbytes)
    return float(first.nbytes / first.num_rows * frame.count())


class _Changes:
    """Lets Spark code and sort changes into temporary files and reads them back; other data is sorted here."""

    def __init__(self, begun: MergeInParts, progress: Progress) -> None:
        self._begun = begun
        self._layout = begun.layout
        self._progress = progress

    def upserts(self, data: Any, order_by: str | Sequence[str] | None, *, in_order: bool) -> Iterable[pa.RecordBatch]:
        """Return the coded rows to insert or replace, by ascending code."""
        if not is_spark_frame(data):
            return self._begun.sorted_upserts(data)
        layout = self._layout
        _check_not_streaming(data)
        data = _spelled_as_in(layout, data)
        order = ColumnNames.of(data.sparkSession).all_spelled(_named(order_by), data.columns)
        check_names(layout, [name for name in data.columns if name not in order])
        check_columns(layout, arrow_schema(_only(data, layout.order), layout.key))
        coder = KeyCoder.of(layout, layout.coded_schema)
        rows = _sorted_by_code(data, coder, layout.order, order, tell_apart=in_order)
        return self._sorted(rows, layout.coded_schema, "upserts")

    def deletes(self, data: Any) -> Iterable[pa.RecordBatch]:
        """Return the codes and keys to delete, by ascending code."""
        if not is_spark_frame(data):
            return self._begun.sorted_deletes(data)
        layout = self._layout
        _check_not_streaming(data)
        data = _spelled_as_in(layout, data)
        schema = delete_schema(layout, arrow_schema(_only(data, layout.key), layout.key))
        coder = KeyCoder.of(layout, schema, drop_unusable=True)
        return self._sorted(_sorted_by_code(data, coder, layout.key, []), schema, "deletes")

    def _sorted(self, rows: DataFrame, schema: pa.Schema, what: str) -> Iterable[pa.RecordBatch]:
        self._progress(f"reading {what}", 0, None)
        begun = self._begun
        parts = _written(rows, ChangesTask(begun.address, schema, f"{begun.prefix}{what}-"))
        return begun.rows_of(parts, what)


def _check_not_streaming(frame: DataFrame) -> None:
    if frame.isStreaming:
        raise InvalidSettingError(
            "A master table cannot be made from a stream: give a batch DataFrame, such as foreachBatch passes."
        )


def _spelled_as_in(layout: RowLayout, frame: DataFrame) -> DataFrame:
    """Return the DataFrame with the names of the table's columns as the table writes them."""
    return frame.toDF(*ColumnNames.of(frame.sparkSession).all_spelled(frame.columns, layout.schema.names))


def _only(frame: DataFrame, names: Sequence[str]) -> StructType:
    """Return the columns of these names, since others of a type that cannot be stored do no harm."""
    return StructType([field for field in frame.schema if field.name in names])


def _named(order_by: str | Sequence[str] | None) -> list[str]:
    return [] if order_by is None else [order_by] if isinstance(order_by, str) else list(order_by)


def _sorted_by_code(
    frame: DataFrame,
    coder: KeyCoder,
    columns: Sequence[str],
    order_by: Sequence[str],
    *,
    tell_apart: bool = False,
    in_ranges: bool = False,
) -> DataFrame:
    """Return the code, some columns, and those of `order_by`; each partition has a range of codes and is sorted.

    With `tell_apart` rows of one code are sorted by all columns in the end.
    """
    fields = list(frame.schema)
    names = [field.name for field in fields]
    wanted = [names.index(name) for name in columns]
    order = [_order_place(fields, name) for name in order_by]
    carried = [*wanted, *(place for place in dict.fromkeys(order) if place not in wanted)]
    if tell_apart:
        order.extend(place for place in wanted if place not in order and is_orderable(fields[place].dataType))
    # Columns go by their place: names with dots, or that stand there twice, would not find their column.
    picked = frame.toDF(*(f"c{place}" for place in range(len(fields)))).select(*(f"c{place}" for place in carried))
    expression = code_expression(fields[carried[coder.key_places[0]]].dataType) if len(coder.key_places) == 1 else None
    if expression is not None:
        key = f"c{carried[coder.key_places[0]]}"
        coded = picked.selectExpr(f"{expression.format(key)} AS {CODE_COLUMN}", "*")
        coded = coded.where(f"{CODE_COLUMN} IS NOT NULL") if coder.drop_unusable else coded
    else:
        coded_fields = [StructField(f"c{place}", fields[place].dataType) for place in carried]
        coded = picked.mapInArrow(coder, StructType([StructField(CODE_COLUMN, LongType()), *coded_fields]))
    parted = coded if in_ranges else coded.repartitionByRange(CODE_COLUMN)
    return parted.sortWithinPartitions(CODE_COLUMN, *(f"c{place}" for place in order))


def _order_place(fields: Sequence[StructField], name: str) -> int:
    places = [place for place, field in enumerate(fields) if field.name == name]
    if len(places) != 1:
        raise UnknownColumnError(f"order_by names {name!r}: name columns that occur once in the DataFrame.")
    if not is_orderable(fields[places[0]].dataType):
        raise InvalidSettingError(f"order_by names {name!r}, which cannot be sorted: name another column.")
    return places[0]


def _written(rows: DataFrame, task: SortedRowsTask) -> list[Part]:
    """Run the tasks and return their files in the order of their codes."""
    try:
        reports = rows.mapInArrow(task, REPORT_COLUMNS).toArrow()
    except Exception as error:
        # Spark's errors have no base in common; those that users can understand stay as they are.
        missing = re.search(r"No module named '([\w.]+)'", str(error))
        if missing is None:
            raise
        raise SemistreamError(
            f"Spark's Python workers cannot load {missing[1]}: install it beside semistream in the Python that "
            f"PYSPARK_PYTHON names."
        ) from error
    parts = reported_parts(reports)
    missing_part = first_unseen(task.address, parts)
    if missing_part is not None:
        raise SemistreamError(
            f"A Spark worker wrote {missing_part.file.name} into {task.address}, but the driver does not see it there: "
            f"give a path on a file system that the driver and all executors share."
        )
    return parts
