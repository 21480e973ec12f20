"""Pins: which version of a table a batch of a query was joined with, so that a replay sees the same rows.

A pin must never name a version that a vacuum has removed: its batch could not be replayed. Both sides lock the manifest
of the version, the pin with others (a lease), the vacuum alone:

    pin:     lease the version > see that its manifest has its name > link the pin > release the lease
    vacuum:  lock the manifest alone > read all pins > remove the manifest unless it is pinned > unlock

If the pin has its lease first, the vacuum cannot lock the manifest and leaves the version. If the vacuum locks first,
the pin waits, finds the manifest without its name, and takes the newest version or says that its version is gone; it
has written nothing by then. If the vacuum locks after the pin has released its lease, it reads the pin. Where the file
system has no locks, two things remain: a vacuum keeps versions for some time after they were replaced, and the pin
looks at the manifest once more after it was linked, and goes if that is gone.
"""

from __future__ import annotations

import json
import re
import time
import uuid
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from semistream.core import durable_files as files
from semistream.core.errors import CorruptTableError, InvalidSettingError, MasterNotFoundError, SemistreamError
from semistream.store.paged.format.layout import PINS_NAME, manifest_name
from semistream.store.paged.versions import manifest

HONOURED = 2
"""How many of the newest pins of each query a vacuum honours: a restart replays the last batch or the one before."""
_KEPT = 10
_OWNER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_PIN = re.compile(r"(\d{1,18})\.json")
_HALF_WRITTEN = re.compile(r"\.[0-9a-f]{32}")
_HALF_WRITTEN_SECONDS = 3600.0
_WITHOUT_CHECKSUM = re.compile(rb'\{"version": ([1-9]\d{0,17})\}')
"""What a pin of an earlier semistream looks like. Nothing else is read without a checksum: a flipped bit must not make
one that has a checksum look like one that has none."""


@dataclass(frozen=True)
class Pin:
    """A batch of a query and the version it was joined with."""

    owner: str
    batch: int
    version: int
    age_seconds: float


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
        raise InvalidSettingError(f"{batch!r} is not the number of a batch: number the batches from 0 on.")
    path = table / PINS_NAME / owner / f"{batch}.json"
    while True:
        try:
            return _pinned_version(path)
        except FileNotFoundError:
            pass
        try:
            wanted, lease = manifest.leased(table, version)
        except MasterNotFoundError:
            if version is None:
                raise
            raise SemistreamError(f"Version {version} of {table} is gone: it was vacuumed; start again.") from None
        with lease:
            if not _put_if_absent(path, wanted.version):
                continue
            if files.status_of(table / manifest_name(wanted.version)) is not None:
                _forget_old(path.parent, batch)
                return wanted.version
            files.remove(path)


def pins_of(table: Path, *, now: float | None = None, besides: Collection[str | Path] = ()) -> list[Pin]:
    """Return the pins that a vacuum honours: the newest ones of each query, with the time since they were written.

    Those of the queries and of the files `besides` are left out.
    """
    moment = time.time() if now is None else now
    pins = []
    for folder, batch in _honoured(table):
        path = folder / f"{batch}.json"
        status = files.status_of(path)
        if status is None or folder.name in besides or path in besides:
            continue
        try:
            version = _pinned_version(path)
        except FileNotFoundError:
            continue
        pins.append(Pin(folder.name, batch, version, max(0.0, moment - status.st_mtime)))
    return pins


def damaged_pins(table: Path) -> list[Path]:
    """Return those of the newest pins of each query that cannot be read, and that a vacuum therefore stops at."""
    damaged = []
    for folder, batch in _honoured(table):
        path = folder / f"{batch}.json"
        try:
            _pinned_version(path)
        except FileNotFoundError:
            continue
        except SemistreamError:
            damaged.append(path)
    return damaged


def pinned_versions(table: Path) -> set[int]:
    """Return the versions that the newest pins of all queries name."""
    return {pin.version for pin in pins_of(table)}


def pins_of_gone(table: Path, older_than_seconds: float, *, now: float | None = None) -> dict[str, list[Path]]:
    """Return by query all pins of those queries whose newest pin is older than this."""
    moment = time.time() if now is None else now
    gone = {}
    for folder in _folders(table):
        statuses = {folder / name: files.status_of(folder / name) for name in files.names_in(folder)}
        ages = [moment - status.st_mtime for status in statuses.values() if status is not None]
        if ages and min(ages) > older_than_seconds:
            gone[folder.name] = [path for path in statuses if _PIN.fullmatch(path.name)]
    return {owner: paths for owner, paths in gone.items() if paths}


def let_go(gone: Iterable[Sequence[Path]]) -> None:
    """Remove pins, query by query; those that were written since then stay, for their query has come back."""
    for paths in gone:
        for path in paths:
            files.remove(path)
        files.sync_directory(paths[0].parent)


def remove_half_written(table: Path, *, now: float | None = None) -> None:
    """Remove what processes that died while they wrote a pin have left."""
    moment = time.time() if now is None else now
    for folder in _folders(table):
        for name in files.names_in(folder):
            status = files.status_of(folder / name) if _HALF_WRITTEN.fullmatch(name) else None
            if status is not None and moment - status.st_mtime > _HALF_WRITTEN_SECONDS:
                files.remove_if_possible(folder / name)


def _put_if_absent(path: Path, version: int) -> bool:
    folder = path.parent
    complete = folder / f".{uuid.uuid4().hex}"
    try:
        files.make_directories(folder)
        files.write_durably(complete, _encoded(path, version))
        files.link(complete, path)
        files.sync_directory(folder)
    except FileExistsError:
        return False
    except (PermissionError, NotADirectoryError):
        raise SemistreamError(
            f"{folder} cannot be written: let the workers write there so that batches can be replayed exactly, "
            f"or pass pin=False to do without."
        ) from None
    finally:
        files.remove_if_possible(complete)
    return True


def _encoded(path: Path, version: int) -> bytes:
    return json.dumps({"version": version, "crc": _checksum(path, version)}).encode()


def _checksum(path: Path, version: int) -> int:
    """Return the checksum of a pin's meaning, so that the pin of another batch or query in its place is noticed."""
    return zlib.crc32(f"{path.parent.name} {path.name} {version}".encode())


def _pinned_version(path: Path) -> int:
    try:
        content = files.read_file(path, max_bytes=4096)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise SemistreamError(
            f"The pin {path} cannot be read ({error.strerror}): check the disk and try again."
        ) from error
    if match := _WITHOUT_CHECKSUM.fullmatch(content):
        return int(match[1])
    try:
        fields = json.loads(content)
        version, checksum = fields["version"], fields["crc"]
        if type(version) is int and version > 0 and checksum == _checksum(path, version):
            return version
    except (ValueError, KeyError, TypeError):
        pass
    raise CorruptTableError(
        f"The pin {path} is damaged: restore it, or remove it, but then a replay of that batch sees the newest version."
    )


def _folders(table: Path) -> list[Path]:
    pins = table / PINS_NAME
    names = sorted(files.names_in(pins)) if files.is_directory(pins) else []
    return [pins / name for name in names if files.is_directory(pins / name)]


def _honoured(table: Path) -> list[tuple[Path, int]]:
    return [(folder, batch) for folder in _folders(table) for batch in _batches(folder)[-HONOURED:]]


def _batches(folder: Path) -> list[int]:
    return sorted(int(match[1]) for name in files.names_in(folder) if (match := _PIN.fullmatch(name)))


def _forget_old(folder: Path, newest: int) -> None:
    for batch in _batches(folder):
        if batch <= newest - _KEPT:
            files.remove_if_possible(folder / f"{batch}.json")
