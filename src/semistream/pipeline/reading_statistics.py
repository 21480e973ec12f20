"""Reads the table [statistics] of a pipeline's file."""

from __future__ import annotations

import re
from pathlib import Path

from semistream.core.durations import parse_seconds
from semistream.pipeline import places
from semistream.pipeline.description import LivePageDescription, StatisticsDescription
from semistream.pipeline.toml_table import TomlTable

_FILES = ("json_lines", "prometheus")
_PAGE = ("port", "host", "keys", "max_batch_time", "max_master_age")
_MAX_PORT = 65_535
_HOST = re.compile(r"[A-Za-z0-9.:_-]{1,253}")


def read_statistics(values: object, folder: Path) -> StatisticsDescription:
    """Return what the table says; a port asks for the page."""
    table = TomlTable("[statistics]", values, (*_FILES, *_PAGE))
    files = {key: places.written_file(table, key, folder) for key in _FILES if key in table}
    if len(set(files.values())) < len(files):
        raise table.wrong("prometheus", "is the same file as json_lines: give two files")
    return StatisticsDescription(files.get("json_lines"), files.get("prometheus"), _read_page(table))


def _read_page(table: TomlTable) -> LivePageDescription:
    default = LivePageDescription()
    port = table.whole_number("port", minimum=0)
    if port is not None and port > _MAX_PORT:
        raise table.unexpected("port", f"a whole number of at most {_MAX_PORT}")
    host = table.text("host", default.host)
    if not _HOST.fullmatch(host):
        raise table.unexpected("host", 'an address of this machine, such as "127.0.0.1" or "0.0.0.0"')
    return LivePageDescription(
        wanted=port is not None,
        port=port,
        host=host,
        keys=table.flag("keys"),
        max_batch_seconds=_seconds(table, "max_batch_time", default.max_batch_seconds),
        max_master_age_seconds=_seconds(table, "max_master_age", default.max_master_age_seconds),
    )


def _seconds(table: TomlTable, key: str, default: float | None) -> float | None:
    if key not in table:
        return default
    text = table.interval(key)
    if text.startswith("0 ") or "milli" in text:
        raise table.unexpected(key, 'a length of time of at least "1 second"')
    return parse_seconds(text)
