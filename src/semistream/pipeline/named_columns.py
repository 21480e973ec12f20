"""Follows the names of columns from the source to the sink, as far as that goes without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from semistream.core.errors import SemistreamError, UnknownColumnError
from semistream.engine.output.output_plan import plan_output
from semistream.joining.batches import key_pairs
from semistream.joining.matched import with_matched
from semistream.pipeline.description import (
    DimensionDescription,
    DropColumns,
    DropDuplicates,
    KeepRows,
    PipelineDescription,
    RenameColumns,
    SelectColumns,
    SetColumns,
    SortRows,
    Step,
)
from semistream.pipeline.reading_steps import step_name
from semistream.pipeline.sources.kinds import kind_of
from semistream.pipeline.toml_table import suggestion
from semistream.spark.column_names import ColumnNames
from semistream.spark.planned_join import spelled_on


@dataclass(frozen=True)
class MasterNames:
    """The columns of a master table, its key, and those of them that a pipeline asks for."""

    schema: pa.Schema
    key: tuple[str, ...]
    columns: tuple[str, ...] | None = None


class NamedColumns:
    """The columns of a pipeline by name, from step to step; what SQL expressions make of them is left to Spark."""

    def __init__(self, description: PipelineDescription) -> None:
        self._description = description
        case_sensitive = description.spark.settings.get("spark.sql.caseSensitive", "false").lower() == "true"
        self._rule = ColumnNames(case_sensitive)

    def check(self, masters: Sequence[MasterNames]) -> None:
        """Raise UnknownColumnError about the first name that is not a column where it is used, if that can be told."""
        names = self._of_sources()
        if names is None:
            return
        names = self._after_steps(names, "prepare", self._description.prepare)
        for dimension, master in zip(self._description.dimensions, masters, strict=True):
            try:
                names = self._after_join(names, dimension, master)
            except SemistreamError as error:
                raise type(error)(f"{dimension.where.rstrip(':')} does not fit: {error}") from None
        names = self._after_steps(names, "transform", self._description.transform)
        for name in self._description.sink.partition_by:
            self._spelled(name, names, "[sink] partition_by")

    def _of_sources(self) -> list[str] | None:
        known = [kind_of(source.format).columns(source) for source in self._description.sources]
        first = known[0]
        if first is None or any(names is None for names in known):
            return None
        for source, names in zip(self._description.sources[1:], known[1:], strict=True):
            check_same_names(self._rule, first, names or (), source.where)
        return list(first)

    def _after_steps(self, names: list[str], table: str, steps: Sequence[Step]) -> list[str]:
        for number, step in enumerate(steps, start=1):
            names = self._after_step(names, step, step_name(table, number))
        return names

    def _after_step(self, names: list[str], step: Step, where: str) -> list[str]:
        match step:
            case SetColumns(expressions):
                new = [name for name in expressions if self._rule.spelled(name, names) not in names]
                return [*names, *new]
            case DropColumns(dropped):
                gone = {self._spelled(name, names, f"{where} drop") for name in dropped}
                return [name for name in names if name not in gone]
            case RenameColumns(pairs):
                new_names = {self._spelled(old, names, f"{where} rename"): new for old, new in pairs.items()}
                return [new_names.get(name, name) for name in names]
            case SelectColumns(chosen):
                return [self._spelled(name, names, f"{where} select") for name in chosen]
            case DropDuplicates(on, _, time):
                for name in (*on, time):
                    self._spelled(name, names, f"{where} drop_duplicates")
            case SortRows(by, _):
                for name in by:
                    self._spelled(name, names, f"{where} sort")
            case KeepRows():
                pass
        return names

    def _after_join(self, names: list[str], dimension: DimensionDescription, master: MasterNames) -> list[str]:
        known = master.schema.names
        # Within the plan a column of the stream is written as the master table writes it.
        ours = self._rule.all_spelled(names, known)
        on = spelled_on(self._rule, dimension.on, ours, known)
        columns = dimension.columns if master.columns is None else master.columns
        plan = plan_output(
            pa.schema([(name, pa.null()) for name in ours]),
            master.schema,
            key_pairs(on, master),
            how=dimension.how,
            columns=None if columns is None else self._rule.all_spelled(columns, known),
            replace=None if dimension.replace is None else self._rule.renaming(dimension.replace, ours, known),
            suffix=dimension.suffix,
        )
        plan, _ = with_matched(plan, master.schema, dimension.matched)
        return [
            field.name if from_master or index >= len(names) else names[index]
            for (from_master, index), field in zip(plan.sources, plan.schema, strict=True)
        ]

    def _spelled(self, name: str, names: Sequence[str], where: str) -> str:
        found = self._rule.spelled(name, names)
        if found not in names:
            raise UnknownColumnError(f"{where} names {name!r}, which is not a column: {suggestion(name, names)}")
        return found


def check_same_names(rule: ColumnNames, first: Sequence[str], other: Sequence[str], where: str) -> None:
    """Raise UnknownColumnError unless two sources have the same columns, in whatever order."""
    ours, theirs = ({rule.key(name): name for name in names} for names in (first, other))
    differing = sorted(ours.keys() ^ theirs.keys())
    if differing:
        name = differing[0]
        what = f"lacks the column {ours[name]!r}" if name in ours else f"has a column {theirs[name]!r}"
        raise UnknownColumnError(
            f"{where.rstrip(':')} {what}, unlike the first source: sources are united by name, so give all of them the "
            f"same columns."
        )
