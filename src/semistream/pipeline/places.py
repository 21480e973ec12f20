"""Paths in pipelines: relative to the pipeline's file, and written only where they say they are."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from semistream.pipeline.toml_table import TomlTable

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
REMOTE_SCHEMES = ("hdfs", "s3a", "abfss", "gs")
_GLOB = set("*?[{")


def read_place(table: TomlTable, key: str, folder: Path) -> str:
    """Return where to read: an absolute local path, or an address of a store that Spark knows."""
    text = table.text(key)
    return _address(table, key, text) or str(_absolute(_local(table, key, text), folder))


def written_place(table: TomlTable, key: str, folder: Path) -> str:
    """Return where to write; refused if `..` or a symbolic link leads out of where the path says it is."""
    text = table.text(key)
    return _address(table, key, text) or str(_contained(table, key, _local(table, key, text), folder))


def written_file(table: TomlTable, key: str, folder: Path) -> Path:
    """Return the local file to write; what is there already must be a plain file."""
    path = _contained(table, key, _local(table, key, table.text(key)), folder)
    if path.exists() and not path.is_file():
        raise table.wrong(key, "must name a file, but a directory or device is there")
    return path


def is_local(place: str) -> bool:
    """Say whether a place is a path on this machine."""
    return _SCHEME.match(place) is None


def has_pattern(place: str) -> bool:
    """Say whether a place stands for several, as in landing/*.json."""
    return any(character in place for character in _GLOB)


def is_inside(place: str, other: str) -> bool:
    """Say whether a local place lies in another one, or is it; a pattern counts as the folder before it."""
    if not (is_local(place) and is_local(other)):
        return place.rstrip("/") == other.rstrip("/")
    inner, outer = (_before_pattern(Path(each)).resolve() for each in (place, other))
    return inner == outer or outer in inner.parents


def _address(table: TomlTable, key: str, text: str) -> str | None:
    match = _SCHEME.match(text)
    if match is None or match[1].lower() == "file":
        return None
    if match[1].lower() not in REMOTE_SCHEMES:
        raise table.wrong(key, f"cannot be at {match[1]}: give a path, or an address of {', '.join(REMOTE_SCHEMES)}")
    if ".." in urlsplit(text).path.split("/"):
        raise table.wrong(key, "has '..' in its address: write the address without it")
    return text


def _local(table: TomlTable, key: str, text: str) -> Path:
    match = _SCHEME.match(text)
    if match is None:
        return Path(text)
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise table.wrong(key, "names a file on another machine: give a path on this one")
    return Path(unquote(parts.path))


def _absolute(path: Path, folder: Path) -> Path:
    return path if path.is_absolute() else folder / path


def _contained(table: TomlTable, key: str, path: Path, folder: Path) -> Path:
    """Return the absolute path, or raise an error if what is written there would land elsewhere."""
    if ".." in path.parts:
        # Compared as text and not resolved: whatever links there are, a path that climbs is refused.
        depth = 0
        for part in path.parts:
            depth += -1 if part == ".." else 1
            if path.is_absolute() or depth < 0:
                raise table.wrong(key, "leaves the pipeline's folder through '..': give a path without it")
    whole = _absolute(path, folder)
    # A link above an absolute path is the administrator's; a link at its end, or anywhere below the folder of the
    # pipeline, may have been put there to lead what is written elsewhere.
    trusted = whole.parent if path.is_absolute() else folder
    if whole.is_symlink() or not whole.resolve().is_relative_to(trusted.resolve()):
        raise table.wrong(key, "is a symbolic link, or is behind one, that leads elsewhere: give the real path")
    if has_pattern(str(path)):
        raise table.wrong(key, "has a pattern in it, but output goes to one place: give a plain path")
    return whole


def _before_pattern(path: Path) -> Path:
    parts = []
    for part in path.parts:
        if _GLOB & set(part):
            break
        parts.append(part)
    return Path(*parts)
