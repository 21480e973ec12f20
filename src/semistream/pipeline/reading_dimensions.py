"""Reads the tables [[dimension]] of a pipeline's file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from semistream.core.errors import InvalidSettingError
from semistream.core.local_paths import scheme_of
from semistream.pipeline import places, secrets
from semistream.pipeline.description import DimensionDescription
from semistream.pipeline.reading_enrich import read_how, read_seconds
from semistream.pipeline.reading_mirrors import MIRROR_KEYS, read_mirror
from semistream.pipeline.toml_table import TomlTable
from semistream.spark.unmatched_rows import Unmatched

DIMENSION_KEYS = (
    *("table", "on", "how", "unmatched", "retry_for", "columns", "replace", "suffix", "matched"),
    *MIRROR_KEYS,
)


def read_dimensions(values: object, folder: Path, *, how: str) -> tuple[DimensionDescription, ...]:
    """Return the master tables and how each is joined; `how` stands where a table does not say."""
    if not isinstance(values, list):
        raise InvalidSettingError("[dimension] must be a list: write [[dimension]] in double brackets.")
    if not values:
        raise InvalidSettingError("[[dimension]] is empty: give at least one dimension.")
    only = len(values) == 1
    names = ["[[dimension]]"] if only else [f"[[dimension]] number {place}:" for place in range(1, len(values) + 1)]
    return tuple(_read_dimension(name, table, folder, how) for name, table in zip(names, values, strict=True))


def _read_dimension(name: str, values: object, folder: Path, default_how: str) -> DimensionDescription:
    table = TomlTable(name, values, DIMENSION_KEYS)
    unmatched = table.text("unmatched", choices=get_args(Unmatched)) if "unmatched" in table else None
    if "retry_for" in table and unmatched != "park":
        raise table.wrong("retry_for", 'is for parked rows: leave it out, or set unmatched to "park"')
    return DimensionDescription(
        where=name,
        table=_read_table(table, folder),
        on=_read_on(table),
        how=read_how(table, default_how),
        columns=_read_columns(table),
        replace=_checked_names(table, "replace") if "replace" in table else None,
        suffix=_read_suffix(table),
        matched=_read_matched(table),
        mirror=read_mirror(table, folder),
        unmatched=unmatched,
        retry_seconds=read_seconds(table, "retry_for") if "retry_for" in table else None,
    )


def _read_table(table: TomlTable, folder: Path) -> str:
    secret = secrets.from_environment(table.required("table"), f"{table.name} table")
    if secret is not None:
        return secret
    # The store itself refuses addresses, and repeats nothing of them.
    is_address = scheme_of(table.text("table")) not in (None, "file")
    return table.text("table") if is_address else places.read_place(table, "table", folder)


def _read_on(table: TomlTable) -> str | tuple[str, ...] | Mapping[str, str]:
    value = table.required("on")
    if isinstance(value, Mapping):
        return _checked_names(table, "on")
    if isinstance(value, list):
        return table.names("on")
    if not isinstance(value, str) or not value:
        raise table.unexpected("on", 'a column name, a list of them, or a table such as {stream_column = "key_column"}')
    name = table.text("on")
    table.check_name("on", name)
    return name


def _checked_names(table: TomlTable, key: str) -> dict[str, str]:
    names = table.texts_by_name(key)
    for ours, theirs in names.items():
        table.check_name(key, ours)
        table.check_name(key, theirs)
    return names


def _read_columns(table: TomlTable) -> tuple[str, ...] | None:
    # An empty list makes sense here: only the columns that `replace` names are wanted.
    return () if table.value("columns") == [] else table.optional_names("columns")


def _read_suffix(table: TomlTable) -> str | None:
    suffix = table.optional_text("suffix")
    if suffix is not None and not re.fullmatch(r"\w{1,64}", suffix):
        raise table.wrong("suffix", "may contain only letters, digits and underscores")
    return suffix


def _read_matched(table: TomlTable) -> str | None:
    name = table.optional_text("matched")
    if name is not None:
        table.check_new_name("matched", name)
    return name
