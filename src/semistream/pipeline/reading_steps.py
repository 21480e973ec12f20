"""Reads the steps [[prepare]] and [[transform]] of a pipeline's file."""

from __future__ import annotations

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.description import (
    DropColumns,
    DropDuplicates,
    KeepRows,
    RenameColumns,
    SelectColumns,
    SetColumns,
    Step,
)
from semistream.pipeline.toml_table import TomlTable

_KINDS = ("set", "filter", "drop", "rename", "select", "drop_duplicates")


def read_steps(table: str, values: object) -> tuple[Step, ...]:
    """Return the steps of the table `prepare` or `transform` in their order."""
    if not isinstance(values, list):
        raise InvalidSettingError(f"[{table}] must be a list of steps: write each below [[{table}]].")
    return tuple(_read_step(step_name(table, number), step) for number, step in enumerate(values, start=1))


def step_name(table: str, number: int) -> str:
    """Return what errors call a step, counted from 1."""
    return f"[[{table}]] number {number}:"


def _read_step(name: str, values: object) -> Step:
    table = TomlTable(name, values, _KINDS)
    given = [kind for kind in _KINDS if kind in table]
    if len(given) != 1:
        what = "several steps" if given else "no step"
        raise InvalidSettingError(f"{name} has {what}: give exactly one of {', '.join(_KINDS)}.")
    match given[0]:
        case "set":
            expressions = table.texts_by_name("set")
            for new in expressions:
                table.check_new_name("set", new)
            return SetColumns(expressions)
        case "filter":
            return KeepRows(table.text("filter"))
        case "drop":
            return DropColumns(table.names("drop"))
        case "rename":
            names = table.texts_by_name("rename")
            for old, new in names.items():
                table.check_name("rename", old)
                table.check_new_name("rename", new)
            return RenameColumns(names)
        case "select":
            return SelectColumns(table.names("select"))
        case _:
            inner = TomlTable(f"{name} drop_duplicates", table.value("drop_duplicates"), ("on", "within", "time"))
            time = inner.text("time")
            inner.check_name("time", time)
            return DropDuplicates(inner.names("on"), inner.interval("within"), time)
