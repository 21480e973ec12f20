"""Pins: which version of a table a batch of a query was joined with, so that a replay sees the same rows."""

from __future__ import annotations

import json
import os
import re
import uuid
from pathlib import Path

from semistream.core.errors import CorruptTableError, InvalidSettingError, SemistreamError
from semistream.store.paged_file import manifest
from semistream.store.paged_file.files import names_in, read_file, sync_directory, write_durably
from semistream.store.paged_file.layout import PINS_NAME

HONOURED = 2
"""How many of the newest pins of each query a vacuum honours: a restart replays the last batch or the one before."""
_KEPT = 10
_OWNER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_PIN = re.compile(r"(\d{1,18})\.json")


def pin(table: Path, owner: str, batch: int, version: int | None = None) -> int:
    """Return the version that a batch of a query is pinned to; the first caller pins it.

    The first caller's `version`, by default the current one, is put into a complete file that is then linked to its
    name, so that of several callers one wins and all others read what it wrote. Costs about 0.1 ms once it is pinned.
    """
    if not _OWNER.fullmatch(owner):
        raise InvalidSettingError(
            f"{owner!r} cannot name a pin: use up to 128 letters, digits, '_', '.' and '-', the last two not first."
        )
    if isinstance(batch, bool) or not 0 <= batch < 10**18:
        raise InvalidSettingError(f"{batch!r} is no number of a batch: number the batches from 0 on.")
    folder = table / PINS_NAME / owner
    path = folder / f"{batch}.json"
    while True:
        try:
            return _pinned_version(path)
        except FileNotFoundError:
            pass
        wanted = manifest.current(table).version if version is None else version
        if not _put_if_absent(folder, path, wanted):
            continue
        # A vacuum that ran between the choice and the pin may have removed the version.
        if wanted in manifest.versions(table):
            _forget_old(folder, batch)
            return wanted
        path.unlink(missing_ok=True)
        if version is not None:
            raise SemistreamError(f"Version {version} of {table} is gone: it was vacuumed; start again.")


def pinned_versions(table: Path) -> set[int]:
    """Return the versions that the newest pins of all queries name."""
    kept: set[int] = set()
    pins = table / PINS_NAME
    for owner in names_in(pins) if pins.is_dir() else []:
        folder = pins / owner
        batches = _batches(folder) if folder.is_dir() else []
        for batch in batches[-HONOURED:]:
            try:
                kept.add(_pinned_version(folder / f"{batch}.json"))
            except FileNotFoundError:
                continue
    return kept


def _put_if_absent(folder: Path, path: Path, version: int) -> bool:
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            sync_directory(folder.parent)
        complete = folder / f".{uuid.uuid4().hex}"
        write_durably(complete, json.dumps({"version": version}).encode())
        try:
            os.link(complete, path)
        except FileExistsError:
            return False
        finally:
            complete.unlink()
        sync_directory(folder)
    except PermissionError:
        raise SemistreamError(
            f"{folder} cannot be written: let the workers write there so that batches can be replayed exactly, "
            f"or pass pin=False to do without."
        ) from None
    return True


def _pinned_version(path: Path) -> int:
    content = read_file(path)
    try:
        version = json.loads(content)["version"]
        if isinstance(version, int) and version > 0:
            return version
    except (ValueError, KeyError, TypeError):
        pass
    raise CorruptTableError(
        f"The pin {path} is damaged: remove it, but then a replay of that batch sees the newest version."
    )


def _batches(folder: Path) -> list[int]:
    return sorted(int(found[1]) for name in names_in(folder) if (found := _PIN.fullmatch(name)))


def _forget_old(folder: Path, newest: int) -> None:
    for batch in _batches(folder):
        if batch <= newest - _KEPT:
            (folder / f"{batch}.json").unlink(missing_ok=True)


def current_version(table: Path) -> int:
    """Return the newest version; what a reader without a pin sees."""
    return manifest.current(table).version
