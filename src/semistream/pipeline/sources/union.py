"""One stream of several, united by the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
)

from semistream.core.errors import InvalidSettingError, SchemaDriftError
from semistream.pipeline.description import SourceDescription
from semistream.pipeline.named_columns import check_same_names
from semistream.pipeline.transformations import quoted
from semistream.spark.column_names import ColumnNames

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_FLOATS = (FloatType, DoubleType)


def united(sources: Sequence[SourceDescription], streams: Sequence[DataFrame]) -> DataFrame:
    """Return the union of streams that have the same columns; of two widths of a number the wider is taken.

    Types of different kinds are refused, times with a zone and without one among them: Spark would cast them in
    silence.
    """
    if len(streams) == 1:
        return streams[0]
    first, *others = streams
    rule = ColumnNames.of(first.sparkSession)
    types = {rule.key(field.name): field.dataType for field in first.schema}
    for source, stream in zip(sources[1:], others, strict=True):
        check_same_names(rule, first.columns, stream.columns, source.where)
        for field in stream.schema:
            key = rule.key(field.name)
            types[key] = _common(types[key], field, source)
    cast = [_cast(stream, rule, first.columns, types) for stream in streams]
    union = cast[0]
    for stream in cast[1:]:
        union = union.unionByName(stream)
    return union


def with_columns_of_then(
    rows: DataFrame, source: SourceDescription, then: Mapping[str, str] | None
) -> tuple[DataFrame, dict[str, str]]:
    """Return the rows with the columns that a source had at the first start, and those columns with their types.

    A column that the source has gained since is left out; one that is gone or has another type is an error.
    """
    now = {field.name: field.dataType.simpleString() for field in rows.schema}
    if then is None:
        return rows, now
    for name, kind in then.items():
        found = now.get(name)
        if found == kind:
            continue
        what = "no longer has the column" if found is None else f"has {found} and no longer {kind} in the column"
        raise SchemaDriftError(
            f"{source.where.rstrip(':')} {what} {name!r} that this pipeline was started with: restore it, or start "
            f"afresh with another checkpoint and another path in [sink]."
        )
    return rows.select(*(F.col(quoted(name)) for name in then)), dict(then)


def _common(ours: DataType, field: StructField, source: SourceDescription) -> DataType:
    theirs = field.dataType
    if ours == theirs:
        return ours
    for kinds in (_INTEGERS, _FLOATS):
        if isinstance(ours, kinds) and isinstance(theirs, kinds):
            return max(ours, theirs, key=lambda one: kinds.index(type(one)))
    raise InvalidSettingError(
        f"{source.where.rstrip(':')} has {field.name!r} as {theirs.simpleString()}, but the first source as "
        f"{ours.simpleString()}: give the column one type in the schema of each source."
    )


def _cast(stream: DataFrame, rule: ColumnNames, names: Sequence[str], types: Mapping[str, DataType]) -> DataFrame:
    columns = []
    for name in names:
        spelled = rule.spelled(name, stream.columns)
        columns.append(F.col(quoted(spelled)).cast(types[rule.key(name)]).alias(name))
    return stream.select(*columns)
