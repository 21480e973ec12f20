"""Pins: which version of a table a batch of a query was joined with, so that a replay sees the same rows.

A pin must never name a version that a vacuum has removed: its batch could not be replayed. Both sides lock the manifest
of the version, the pin with others (a lease), the vacuum alone:

    pin:     lease the version > see that its manifest has its name > link the pin > release the lease
    vacuum:  lock the manifest alone > read all pins > remove the manifest unless it is pinned > unlock

If the pin has its lease first, the vacuum cannot lock the manifest and leaves the version. If the vacuum locks first,
the pin waits, finds the manifest without its name, and takes the newest version or says that its version is gone; it
has written nothing by then. If the vacuum locks after the pin has released its lease, it reads the pin. Where the file
system has no locks, two things remain: a vacuum keeps versions for some time after they were replaced, and the pin
looks at the manifest once more after it was linked, and goes if that is gone. An object store has no locks, either:
there the vacuum says beforehand what it will remove and then waits for a moment; the pin looks for that after it was
put, unless the version was the newest so short a time ago that a vacuum would still wait (`Lease.still_there`).
"""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from threading import Thread

from semistream.core.errors import CorruptTableError, InvalidSettingError, MasterNotFoundError, SemistreamError
from semistream.core.side_by_side import all_at_once
from semistream.store.paged.format.layout import PINS_NAME
from semistream.store.paged.versions import manifest
from semistream.store.places.place import Lease, Place

HONOURED = 2
"""How many of the newest pins of each query a vacuum honours: a restart replays the last batch or the one before."""
_KEPT = 10
_FORGET_EVERY, _FORGET_AT_ONCE = 8, 32
"""Old pins are looked for so seldom where it is dear to list them."""
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


def pin(place: Place, owner: str, batch: int, version: int | None = None) -> int:
    """Return the version that a batch of a query is pinned to; the first caller pins it.

    The first caller's `version`, by default the current one, is put into a complete file that is then linked to its
    name, so that of several callers one wins and all others read what it wrote. Costs about 0.1 ms once it is pinned.
    """
    return pinned(place, owner, batch, version)[0]


def pinned(place: Place, owner: str, batch: int, version: int | None = None) -> tuple[int, manifest.Manifest | None]:
    """Return as `pin` does, and the manifest of that version if it was read on the way."""
    if not _OWNER.fullmatch(owner):
        raise InvalidSettingError(
            f"{owner!r} cannot name a pin: use up to 128 letters, digits, '_', '.' and '-', the last two not first."
        )
    if isinstance(batch, bool) or not 0 <= batch < 10**18:
        raise InvalidSettingError(f"{batch!r} is not the number of a batch: number the batches from 0 on.")
    name = _name(owner, batch)
    while True:
        found, leased = _looked_up(place, name, version)
        with leased if leased is not None else nullcontext():
            wanted = leased.manifest if leased is not None else None
            if found is None:
                assert leased is not None
                try:
                    found = _put_or_found(place, name, leased.manifest.version)
                except FileNotFoundError:
                    continue
                if found is None:
                    if leased.lease.still_there():
                        _forget_old(place, owner, batch)
                        return leased.manifest.version, leased.manifest
                    place.remove(name)
                    continue
            return found, wanted if wanted is not None and wanted.version == found else None


@contextmanager
def held(place: Place, owner: str, version: int) -> Iterator[None]:
    """Keep a version from being vacuumed by a pin, for as long as the block lasts."""
    pin(place, owner, 0, version)
    try:
        yield
    finally:
        place.remove_if_possible(_name(owner, 0))


def pins_of(place: Place, *, now: float | None = None, besides: Collection[str] = ()) -> list[Pin]:
    """Return the pins that a vacuum honours: the newest ones of each query, with the time since they were written.

    Those of the queries and of the files `besides` are left out.
    """
    moment = time.time() if now is None else now
    pins = []
    for owner, batch in _honoured(place):
        status = place.status(_name(owner, batch))
        if status is None or owner in besides or _name(owner, batch) in besides:
            continue
        try:
            version = _pinned_version(place, _name(owner, batch))
        except FileNotFoundError:
            continue
        pins.append(Pin(owner, batch, version, max(0.0, moment - status.modified)))
    return pins


def damaged_pins(place: Place) -> list[str]:
    """Return those of the newest pins of each query that cannot be read, and that a vacuum therefore stops at."""
    damaged = []
    for owner, batch in _honoured(place):
        try:
            _pinned_version(place, _name(owner, batch))
        except FileNotFoundError:
            continue
        except SemistreamError:
            damaged.append(_name(owner, batch))
    return damaged


def pinned_versions(place: Place) -> set[int]:
    """Return the versions that the newest pins of all queries name."""
    return {pin.version for pin in pins_of(place)}


def pins_of_gone(place: Place, older_than_seconds: float, *, now: float | None = None) -> dict[str, list[str]]:
    """Return by query all pins of those queries whose newest pin is older than this."""
    moment = time.time() if now is None else now
    gone = {}
    for owner in place.folders(PINS_NAME):
        folder = f"{PINS_NAME}/{owner}"
        statuses = {name: place.status(f"{folder}/{name}") for name in place.names(folder)}
        ages = [moment - status.modified for status in statuses.values() if status is not None]
        if ages and min(ages) > older_than_seconds:
            gone[owner] = [f"{folder}/{name}" for name in statuses if _PIN.fullmatch(name)]
    return {owner: names for owner, names in gone.items() if names}


def let_go(place: Place, gone: Mapping[str, Sequence[str]]) -> None:
    """Remove pins, query by query; those that were written since then stay, for their query has come back."""
    for owner, names in gone.items():
        for name in names:
            place.remove(name)
        place.settle(f"{PINS_NAME}/{owner}")


def remove_half_written(place: Place, *, now: float | None = None) -> None:
    """Remove what processes that died while they wrote a pin have left."""
    moment = time.time() if now is None else now
    for owner in place.folders(PINS_NAME):
        folder = f"{PINS_NAME}/{owner}"
        for name in place.names(folder):
            status = place.status(f"{folder}/{name}") if _HALF_WRITTEN.fullmatch(name) else None
            if status is not None and moment - status.modified > _HALF_WRITTEN_SECONDS:
                place.remove_if_possible(f"{folder}/{name}")


class _Leased:
    """The version that would be pinned, held until that is decided."""

    def __init__(self, wanted: manifest.Manifest, lease: Lease) -> None:
        self.manifest = wanted
        self.lease = lease

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.lease.release()


def _looked_up(place: Place, name: str, version: int | None) -> tuple[int | None, _Leased | None]:
    """Return the version of a pin, None if none is known, and the version that would be pinned then.

    Where reads take long nobody looks for the pin, because the attempt to put one will find it.
    """

    def pinned_version() -> int | None:
        try:
            return _pinned_version(place, name)
        except FileNotFoundError:
            return None

    found = pinned_version() if place.promises.lists_cheaply else None
    if found is not None:
        return found, None
    try:
        return None, _Leased(*manifest.leased(place, version))
    except MasterNotFoundError:
        found = pinned_version()
        if found is not None:
            return found, None
        if version is None:
            raise
    raise SemistreamError(f"Version {version} of {place.shown()} is gone: it was vacuumed; start again.") from None


def _name(owner: str, batch: int) -> str:
    return f"{PINS_NAME}/{owner}/{batch}.json"


def _put_or_found(place: Place, name: str, version: int) -> int | None:
    """Put a pin; the version of the one that is there, if there is one that is not our own."""
    encoded = _encoded(name, version)
    try:
        found = place.put_or_found(name, encoded)
        return None if found is None or found == encoded else _decoded(place, name, found)
    except (PermissionError, NotADirectoryError):
        raise SemistreamError(
            f"{place.shown(name.rpartition('/')[0])} cannot be written: let the workers write there so that batches "
            f"can be replayed exactly, or pass pin=False to do without."
        ) from None


def _encoded(name: str, version: int) -> bytes:
    return json.dumps({"version": version, "crc": _checksum(name, version)}).encode()


def _checksum(name: str, version: int) -> int:
    """Return the checksum of a pin's meaning, so that the pin of another batch or query in its place is noticed."""
    _, owner, file = name.split("/")
    return zlib.crc32(f"{owner} {file} {version}".encode())


def _pinned_version(place: Place, name: str) -> int:
    try:
        content = place.read(name, max_bytes=4096)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(place.shown(name)) from None
    except OSError as error:
        raise SemistreamError(
            f"The pin {place.shown(name)} cannot be read ({error.strerror}): check the disk and try again."
        ) from error
    return _decoded(place, name, content)


def _decoded(place: Place, name: str, content: bytes) -> int:
    if match := _WITHOUT_CHECKSUM.fullmatch(content):
        return int(match[1])
    try:
        fields = json.loads(content)
        version, checksum = fields["version"], fields["crc"]
        if type(version) is int and version > 0 and checksum == _checksum(name, version):
            return version
    except (ValueError, KeyError, TypeError):
        pass
    raise CorruptTableError(
        f"The pin {place.shown(name)} is damaged: restore it, or remove it, but then a replay of that batch sees the "
        f"newest version."
    )


def _honoured(place: Place) -> list[tuple[str, int]]:
    return [(owner, batch) for owner in place.folders(PINS_NAME) for batch in _batches(place, owner)[-HONOURED:]]


def _batches(place: Place, owner: str) -> list[int]:
    names = place.names(f"{PINS_NAME}/{owner}")
    return sorted(int(match[1]) for name in names if (match := _PIN.fullmatch(name)))


def _forget_old(place: Place, owner: str, newest: int) -> None:
    """Remove pins that no vacuum honours; where that takes long, now and then and while the caller goes on."""

    def old() -> list[str]:
        return [_name(owner, batch) for batch in _batches(place, owner) if batch <= newest - _KEPT]

    def forget() -> None:
        with suppress(OSError, SemistreamError):
            all_at_once([partial(place.remove_if_possible, name) for name in old()[:_FORGET_AT_ONCE]])

    if place.promises.lists_cheaply:
        for name in old():
            place.remove_if_possible(name)
    elif not newest % _FORGET_EVERY:
        Thread(target=forget, name="semistream-pins", daemon=True).start()
