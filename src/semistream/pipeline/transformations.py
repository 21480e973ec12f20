"""The steps of a pipeline before and after the join, on DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.types import TimestampType

from semistream.core.errors import InvalidSettingError, NameClashError, UnknownColumnError
from semistream.pipeline.description import (
    DropColumns,
    DropDuplicates,
    KeepRows,
    RenameColumns,
    SelectColumns,
    SetColumns,
    SortRows,
    Step,
)
from semistream.pipeline.failures import first_sentence
from semistream.pipeline.reading_steps import step_name
from semistream.pipeline.toml_table import suggestion
from semistream.pipeline.written_schema import OWN_PREFIX
from semistream.spark.column_names import ColumnNames
from semistream.spark.spark_session import java_of

# They run any static method of Java that is on the class path, so that an expression could do anything.
_CODE_RUNNERS = {"reflect", "java_method", "try_reflect"}
_VERBS: dict[type[Step], str] = {
    SetColumns: "set",
    KeepRows: "filter",
    DropColumns: "drop",
    RenameColumns: "rename",
    SelectColumns: "select",
    DropDuplicates: "drop_duplicates",
    SortRows: "sort",
}


def apply_steps(
    rows: DataFrame, table: str, steps: Sequence[Step], note: Callable[[str, DataFrame], None] | None = None
) -> DataFrame:
    """Return the rows after all steps of a table; each is analysed at once, so that an error names its step.

    `note` is told the rows after each step.
    """
    for number, step in enumerate(steps, start=1):
        where = step_name(table, number)
        try:
            rows = _applied(rows, step, where)
        except PySparkException as error:
            if error.getCondition() == "MISSING_GROUP_BY":
                raise InvalidSettingError(
                    f"{where} aggregates rows, which no step can: write an expression over the columns of one row."
                ) from None
            raise InvalidSettingError(f"{where} {first_sentence(error)}.") from None
        if note is not None:
            note(f"{table} {number}: {_VERBS[type(step)]}", rows)
    return rows


def _applied(rows: DataFrame, step: Step, where: str) -> DataFrame:
    match step:
        case SetColumns(expressions):
            for name, text in expressions.items():
                check_expression(rows.sparkSession, text, f"{where} set {name}")
            return rows.withColumns({name: F.expr(text) for name, text in expressions.items()})
        case KeepRows(condition):
            check_expression(rows.sparkSession, condition, f"{where} filter")
            return rows.where(F.expr(condition))
        case DropColumns(names):
            _check_columns(rows, names, f"{where} drop")
            if len(names) == len(rows.columns):
                raise InvalidSettingError(f"{where} drop leaves no column: keep at least one.")
            return rows.drop(*names)
        case RenameColumns(names):
            _check_columns(rows, tuple(names), f"{where} rename")
            renamed = rows.withColumnsRenamed(dict(names))
            check_distinct(renamed, f"{where} rename")
            return renamed
        case SelectColumns(names):
            _check_columns(rows, names, f"{where} select")
            return rows.select(*(F.col(quoted(name)) for name in names))
        case DropDuplicates(on, within, time):
            _check_columns(rows, (*on, time), f"{where} drop_duplicates")
            spelled = ColumnNames.of(rows.sparkSession).spelled(time, rows.columns)
            if not isinstance(rows.schema[spelled].dataType, TimestampType):
                raise InvalidSettingError(f"{where} drop_duplicates time must be a column of type TIMESTAMP.")
            return rows.withWatermark(time, within).dropDuplicatesWithinWatermark(list(on))
        case SortRows(by, falling):
            _check_columns(rows, by, f"{where} sort")
            columns = [F.col(quoted(name)).desc() if name in falling else F.col(quoted(name)).asc() for name in by]
            # One task sorts all rows of the micro-batch: a sort over several would run all that comes before it twice.
            return rows.repartition(1).sortWithinPartitions(*columns)


def check_expression(spark: SparkSession, text: str, where: str) -> None:
    """Raise an error unless a text is one expression over columns, without queries and without calls of Java."""
    try:
        parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    except PySparkException as error:
        raise InvalidSettingError(f"{where} is not one SQL expression: {first_sentence(error)}.") from None
    plan_holders = java_of(spark).java.lang.Class.forName("org.apache.spark.sql.catalyst.expressions.PlanExpression")
    _check_parsed(parsed, plan_holders, where)


def _check_parsed(expression: Any, plan_holders: Any, where: str) -> None:
    if plan_holders.isInstance(expression):
        raise InvalidSettingError(f"{where} has a query in it: write an expression over the columns only.")
    kind = expression.getClass().getSimpleName()
    if kind == "UnresolvedStar":
        raise InvalidSettingError(f"{where} has a '*' in it: name the columns.")
    if kind == "UnresolvedFunction":
        name = expression.nameParts().last().lower()
        if name in _CODE_RUNNERS:
            raise InvalidSettingError(f"{where} calls {name}, which can run arbitrary code: use another function.")
    children = expression.children()
    for index in range(children.size()):
        _check_parsed(children.apply(index), plan_holders, where)


def quoted(name: str) -> str:
    """Return a name that Spark takes as one column, whatever dots are in it."""
    return "`" + name.replace("`", "``") + "`"


def check_distinct(rows: DataFrame, where: str) -> None:
    """Raise an error if two columns have one name to Spark."""
    names = ColumnNames.of(rows.sparkSession)
    seen: set[str] = set()
    for name in rows.columns:
        if names.key(name) in seen:
            raise NameClashError(f"{where} makes two columns {name!r}: give one of them another name.")
        seen.add(names.key(name))


def check_not_ours(rows: DataFrame, where: str) -> None:
    """Raise an error if a column has a name that only sinks give, which would replace its values."""
    for name in rows.columns:
        if name.lower().startswith(OWN_PREFIX):
            raise NameClashError(f"{where} has the column {name!r}, a name that semistream uses itself: rename it.")


def _check_columns(rows: DataFrame, names: Sequence[str], where: str) -> None:
    rule = ColumnNames.of(rows.sparkSession)
    for name in names:
        if rule.spelled(name, rows.columns) not in rows.columns:
            raise UnknownColumnError(f"{where} names {name!r}, which is not a column: {suggestion(name, rows.columns)}")
