"""Reads what a table [[dimension]] says about a mirror."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from semistream.core.durations import parse_seconds
from semistream.core.errors import SemistreamError
from semistream.mirrors.source_description import MirrorSource
from semistream.mirrors.sources import source_from_settings
from semistream.pipeline import secrets
from semistream.pipeline.description import MirrorDescription
from semistream.pipeline.toml_table import TomlTable

MIRROR_KEYS = ("from", "key", "refresh", "stale_after", "keep_for")
_KEEP_FOR = "1 hour"


def read_mirror(table: TomlTable, folder: Path) -> MirrorDescription | None:
    """Return how the master table is kept in step with its source, or None if the file says nothing about it."""
    if not any(key in table for key in MIRROR_KEYS):
        return None
    for key in ("stale_after", "keep_for"):
        if key in table and "refresh" not in table:
            raise table.wrong(key, 'has no effect without refresh: add it, such as refresh = "1 minute"')
    if "key" in table and "from" not in table:
        raise table.wrong("key", "has no effect without from: add the source, or leave it out")
    refresh = _seconds(table, "refresh")
    if refresh == 0:
        raise table.wrong("refresh", "must be longer than 0 seconds")
    return MirrorDescription(
        source=_source(table, folder) if "from" in table else None,
        key=_key(table) if "key" in table else None,
        refresh_seconds=refresh,
        stale_after_seconds=_seconds(table, "stale_after"),
        keep_for_seconds=parse_seconds(table.interval("keep_for") if "keep_for" in table else _KEEP_FOR),
    )


def _seconds(table: TomlTable, key: str) -> float | None:
    return parse_seconds(table.interval(key)) if key in table else None


def _key(table: TomlTable) -> tuple[str, ...]:
    if isinstance(table.value("key"), list):
        return table.names("key")
    name = table.text("key")
    table.check_name("key", name)
    return (name,)


def _source(table: TomlTable, folder: Path) -> MirrorSource:
    value = _from_environment(table.required("from"), f"{table.name} from")
    if not isinstance(value, str | Mapping):
        raise table.wrong("from", 'must be an address, or a table such as {kind = "files", path = "landing"}')
    settings = (
        value
        if isinstance(value, str)
        else {n: _from_environment(v, f"{table.name} from {n}") for n, v in value.items()}
    )
    try:
        return source_from_settings(settings, folder)
    except SemistreamError as error:
        raise table.wrong("from", f"is wrong: {error}") from None


def _from_environment(value: object, where: str) -> object:
    """Return what an environment variable holds if {env = "NAME"} asks for it, and other values as they are."""
    found = secrets.from_environment(value, where)
    return value if found is None else found
