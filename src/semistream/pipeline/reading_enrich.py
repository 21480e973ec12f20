"""Reads the table [enrich] of a pipeline's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from semistream.algorithms.registry import ALGORITHMS, DEFAULT_ALGORITHM
from semistream.core.budget import parse_bytes
from semistream.core.durations import parse_seconds
from semistream.core.errors import InvalidSettingError
from semistream.core.local_paths import scheme_of
from semistream.engine.output.output_plan import JOIN_TYPES
from semistream.joining.join_types import join_type
from semistream.pipeline import places
from semistream.pipeline.description import EnrichDescription
from semistream.pipeline.toml_table import TomlTable, suggestion

ENRICH_KEYS = (
    "memory",
    "disk",
    "algorithm",
    "how",
    "order",
    "partitioning",
    "dead_letters",
    "parameters",
    "max_wait",
    "room",
)


def read_enrich(table: TomlTable, folder: Path) -> EnrichDescription:
    """Return how rows are enriched, whatever the dimension."""
    return EnrichDescription(
        memory_bytes=_read_bytes(table, "memory", "64MB"),
        disk_bytes=_read_bytes(table, "disk", "") if "disk" in table else None,
        algorithm=table.text("algorithm", DEFAULT_ALGORITHM, choices=tuple(ALGORITHMS)),
        how=read_how(table, "inner"),
        order=table.text("order", choices=("any", "input")) if "order" in table else None,
        partitioning=_read_partitioning(table),
        dead_letters=_read_dead_letters(table, folder),
        parameters=_read_parameters(table),
        max_wait_seconds=read_seconds(table, "max_wait") if "max_wait" in table else None,
        room=_read_room(table, folder),
    )


def read_how(table: TomlTable, default: str) -> str:
    """Return the kind of join by our name for it."""
    text = table.text("how", default)
    try:
        return join_type(text)
    except InvalidSettingError:
        raise table.wrong("how", f"cannot be {text!r}: {suggestion(text, JOIN_TYPES)}") from None


def read_seconds(table: TomlTable, key: str) -> float:
    """Return a duration."""
    try:
        return parse_seconds(table.value(key))  # type: ignore[arg-type]
    except InvalidSettingError:
        raise table.unexpected(key, 'a duration such as "10 seconds" or "1 day"') from None


def _read_room(table: TomlTable, folder: Path) -> str | None:
    if "room" not in table:
        return None
    is_address = scheme_of(table.text("room")) not in (None, "file")
    return table.text("room") if is_address else places.written_place(table, "room", folder)


def _read_bytes(table: TomlTable, key: str, default: str) -> int:
    value = table.value(key) if key in table else default
    try:
        return parse_bytes(value)  # type: ignore[arg-type]
    except InvalidSettingError:
        raise table.unexpected(key, 'a size such as "64MB" or "64 MiB"') from None


def _read_dead_letters(table: TomlTable, folder: Path) -> str | None:
    if "dead_letters" not in table:
        return None
    place = places.written_place(table, "dead_letters", folder)
    if not places.is_local(place):
        raise table.wrong("dead_letters", "must be a folder that all workers reach by the same path")
    return place


def _read_partitioning(table: TomlTable) -> str | int:
    if isinstance(table.value("partitioning"), int):
        return table.whole_number("partitioning", minimum=1) or 1
    if not isinstance(table.value("partitioning"), str | None):
        raise table.unexpected("partitioning", '"auto", "none" or a whole number')
    return table.text("partitioning", "auto", choices=("none", "auto"))


def _read_parameters(table: TomlTable) -> dict[str, float] | None:
    value = table.value("parameters")
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(number, int | float) for number in value.values()):
        raise table.unexpected("parameters", "a table of numbers, true and false, such as {cache_share = 0.5}")
    return {str(name): number if isinstance(number, bool) else float(number) for name, number in value.items()}
