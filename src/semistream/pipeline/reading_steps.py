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
    SortRows,
    Step,
)
from semistream.pipeline.toml_table import TomlTable

_KINDS = ("set", "filter", "drop", "rename", "select", "drop_duplicates")
STEP_KINDS = {"prepare": _KINDS, "transform": (*_KINDS, "sort")}
_ORDERS = ("asc", "desc")


def read_steps(table: str, values: object) -> tuple[Step, ...]:
    """Return the steps of the table `prepare` or `transform` in their order."""
    if not isinstance(values, list):
        raise InvalidSettingError(f"[{table}] must be a list of steps: write each below [[{table}]].")
    kinds = STEP_KINDS[table]
    steps = tuple(_read_step(step_name(table, number), step, kinds) for number, step in enumerate(values, start=1))
    for number, step in enumerate(steps[1:], start=2):
        if isinstance(step, DropDuplicates | SortRows) and any(
            isinstance(one, SortRows) for one in steps[: number - 1]
        ):
            raise InvalidSettingError(f"{step_name(table, number)} would undo the sort before it: sort afterwards.")
    return steps


def step_name(table: str, number: int) -> str:
    """Return what errors call a step, counted from 1."""
    return f"[[{table}]] number {number}:"


def _read_step(name: str, values: object, kinds: tuple[str, ...]) -> Step:
    table = TomlTable(name, values, kinds)
    given = [kind for kind in kinds if kind in table]
    if len(given) != 1:
        what = "several steps" if given else "no step"
        raise InvalidSettingError(f"{name} has {what}: give exactly one of {', '.join(kinds)}.")
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
        case "sort":
            return _read_sort(table)
        case _:
            inner = TomlTable(f"{name} drop_duplicates", table.value("drop_duplicates"), ("on", "within", "time"))
            time = inner.text("time")
            inner.check_name("time", time)
            return DropDuplicates(inner.names("on"), inner.interval("within"), time)


def _read_sort(table: TomlTable) -> SortRows:
    """Return the columns to sort by; "name desc" sorts from the largest value down."""
    by, falling = [], set()
    for text in table.names("sort"):
        name, _, order = text.rpartition(" ")
        name, order = (name, order.lower()) if name and order.lower() in _ORDERS else (text, "asc")
        by.append(name)
        if order == "desc":
            falling.add(name)
    if len(set(by)) < len(by):
        raise table.wrong("sort", "names a column twice: name each once")
    return SortRows(tuple(by), frozenset(falling))
