"""Writes results as JSON into files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from semistream.core.errors import InvalidSettingError
from semistream.core.flat_json import Scalar, as_json

__all__ = ["Scalar", "as_json", "check_writable", "write_json"]


def check_writable(path: Path) -> None:
    """Raise InvalidSettingError if `path` cannot be written, so that nobody waits for results that are lost."""
    if path.is_dir():
        raise InvalidSettingError(f"The JSON file cannot be written because {path} is a directory: name a file in it.")
    if _is_special(path):
        return
    if path.exists() and not os.access(path, os.W_OK):
        raise InvalidSettingError(f"The JSON file {path} is read-only: name another file or change its permissions.")
    trial = _temporary(path)
    try:
        trial.touch(exist_ok=False)
    except OSError as error:
        raise _unwritable(path, error) from None
    trial.unlink()


def write_json(path: Path, rows: Iterable[Mapping[str, Scalar]]) -> None:
    """Write the rows so that a reader sees the old file or the whole new one."""
    text = as_json(rows)
    if _is_special(path):
        path.write_text(text)
        return
    temporary = _temporary(path)
    try:
        temporary.write_text(text)
        temporary.replace(_target(path))
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise _unwritable(path, error) from None


def _is_special(path: Path) -> bool:
    """Say whether the path is a pipe or a device, which must not be replaced by a file."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _target(path: Path) -> Path:
    """Return the file itself, so that a link to it stays a link."""
    return path.resolve()


def _temporary(path: Path) -> Path:
    target = _target(path)
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")


def _unwritable(path: Path, error: OSError) -> InvalidSettingError:
    why = (error.strerror or str(error)).lower()
    return InvalidSettingError(f"The JSON file {path} cannot be written ({why}): name a file in a writable folder.")
