"""Reads the tables [source] or [[source]] of a pipeline's file."""

from __future__ import annotations

import difflib
from pathlib import Path

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.description import SourceDescription
from semistream.pipeline.sources.kinds import FORMATS_OF_SPARK, KINDS, keys_of_sources, kind_of
from semistream.pipeline.toml_table import TomlTable

SOURCE_KEYS = keys_of_sources()
_NEAR = 0.75


def read_sources(values: object, folder: Path) -> tuple[SourceDescription, ...]:
    """Return the streams, whose union is that of the pipeline."""
    tables = values if isinstance(values, list) else [values]
    if not tables:
        raise InvalidSettingError("[[source]] is empty: give at least one source.")
    names = ["[source]"] if len(tables) == 1 else [f"[[source]] number {place}:" for place in range(1, len(tables) + 1)]
    return tuple(_read_source(name, table, folder) for name, table in zip(names, tables, strict=True))


def _read_source(name: str, values: object, folder: Path) -> SourceDescription:
    table = TomlTable(name, values, SOURCE_KEYS)
    format_name = table.text("format")
    known = (*KINDS, *FORMATS_OF_SPARK)
    if format_name not in known:
        # Spark may know it; but what is nearly one of ours is more likely one of ours.
        near = difflib.get_close_matches(format_name, known, n=1, cutoff=_NEAR)
        if near:
            raise table.wrong("format", f"cannot be {format_name!r}: did you mean {near[0]!r}?")
    kind = kind_of(format_name)
    for key in SOURCE_KEYS:
        if key in table and key not in ("format", *kind.keys):
            raise table.wrong(key, f"does not apply to the format {format_name!r}: leave it out")
    return kind.describe(table, format_name, folder)
