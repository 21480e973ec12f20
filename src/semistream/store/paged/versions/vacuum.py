"""Removes old versions of a table and says why the others stay."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from semistream.core.durations import format_seconds, parse_seconds
from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream.store.paged.format import layout
from semistream.store.paged.versions import manifest, pins
from semistream.store.paged.versions.manifest import Manifest
from semistream.store.paged.versions.new_version import NewVersion, check_sizes, names_of
from semistream.store.paged.versions.page_index import read_index
from semistream.store.places.place import Held, ObjectStatus, Place

KEEP_FOR = "10 minutes"
_LOCKED_AT_ONCE = 32


def vacuum(
    place: Place,
    keep_versions: int = 1,
    *,
    keep_for: float | str = KEEP_FOR,
    also_keep: Iterable[int] = (),
    pins_older_than: float | str | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    """Remove old versions and return what was freed, and for each version that stays the reasons.

    These stay: the newest `keep_versions`, those that were current within the time `keep_for`, those in `also_keep`,
    those that a query may replay, and those that somebody reads. Queries whose newest pin is older than
    `pins_older_than` are taken for gone: their pins are removed, and should one come back, it replays its last batch
    with the newest version. Nothing is removed unless everything that stays is whole: manifests and indexes by their
    checksums, all files by their sizes.
    """
    if keep_versions < 1:
        raise InvalidSettingError(f"keep_versions is {keep_versions}: at least the current version must stay.")
    keep_seconds = parse_seconds(keep_for)
    pin_seconds = None if pins_older_than is None else parse_seconds(pins_older_than)
    with NewVersion(place):
        moment = time.time() if now is None else now
        manifest.current(place)
        gone = {} if pin_seconds is None else pins.pins_of_gone(place, pin_seconds, now=moment)
        task = _Vacuum(place, moment)
        task.keep_newest(keep_versions)
        task.keep_recent(keep_seconds)
        task.keep(also_keep, "asked for")
        task.keep_pinned(besides=gone)
        if task.has_work or gone:
            task.check()
            pins.let_go(place, gone)
            task.remove()
        pins.remove_half_written(place, now=moment)
        return {
            "versions": sorted(task.removed),
            "files": task.removed_files,
            "bytes": task.freed_bytes,
            "kept": sorted(task.reasons),
            "reasons": {version: task.reasons[version] for version in sorted(task.reasons)},
            "queries": sorted(gone),
        }


@dataclass
class _Vacuum:
    place: Place
    now: float
    reasons: dict[int, list[str]] = field(default_factory=dict)
    """By version why it stays."""
    removed: set[int] = field(default_factory=set)
    removed_files: list[str] = field(default_factory=list)
    freed_bytes: int = 0

    def __post_init__(self) -> None:
        self.known = manifest.readable(self.place)
        self._whole: set[int] = set()

    def keep(self, versions: Iterable[int], reason: str) -> None:
        """Note that these versions stay, if they are there."""
        for version in versions:
            if version in self.known and version not in self.removed:
                reasons = self.reasons.setdefault(version, [])
                if reason not in reasons:
                    reasons.append(reason)

    def keep_newest(self, count: int) -> None:
        """Keep the newest versions that can be read."""
        readable = [version for version, described in self.known.items() if isinstance(described, Manifest)]
        self.keep(readable[-1:], "the newest")
        self.keep(readable[-count:-1], f"one of the newest {count}")

    def keep_recent(self, seconds: float) -> None:
        """Keep what was current a moment ago: somebody may have found it and not yet said so."""
        numbers = list(self.known)
        statuses = self.place.statuses([layout.manifest_name(number) for number in numbers[1:]])
        for version, successor in pairwise(numbers):
            status = statuses.get(layout.manifest_name(successor))
            age = self.now - status.modified if status is not None else 0.0
            if age < seconds:
                self.keep([version], f"current until {format_seconds(max(0.0, age))} ago")

    def keep_pinned(self, besides: Collection[str] = ()) -> None:
        """Keep what the newest pins of queries name."""
        for pin in pins.pins_of(self.place, now=self.now, besides=besides):
            age = format_seconds(pin.age_seconds)
            self.keep([pin.version], f"pinned by query {pin.owner}, batch {pin.batch}, {age} ago")

    @property
    def has_work(self) -> bool:
        """Whether there is a version without a reason to stay, or a file that no version names."""
        named = {
            name for described in self.known.values() if isinstance(described, Manifest) for name in names_of(described)
        }
        unnamed = [name for name in self.place.names() if _may_be_left(name) and name not in named]
        return bool(unnamed) or len(self.reasons) < len(self.known)

    def check(self) -> None:
        """Raise CorruptTableError unless all versions that stay are whole."""
        for version in set(self.reasons) - self._whole:
            described = self.known[version]
            try:
                if not isinstance(described, Manifest):
                    raise described
                read_index(self.place, described)
                check_sizes(self.place, described.files)
            except (CorruptTableError, FileNotFoundError) as error:
                raise CorruptTableError(
                    f"Nothing more was removed, because version {version} is to stay "
                    f"({'; '.join(self.reasons[version])}) and is not whole; restore it from a backup, or keep fewer "
                    f"versions: {error}"
                ) from None
            self._whole.add(version)

    def remove(self) -> None:
        """Remove all versions without a reason to stay, and then the files that no version needs."""
        doomed = [version for version in self.known if version not in self.reasons]
        for start in range(0, len(doomed), _LOCKED_AT_ONCE):
            self._remove_manifests(doomed[start : start + _LOCKED_AT_ONCE])
        # The manifests must be gone before their files are: a version exists in whole or not at all.
        self.place.settle()
        kept = [self.known[version] for version in self.reasons]
        used = {name for described in kept if isinstance(described, Manifest) for name in names_of(described)}
        unused = [name for name in sorted(set(self.place.names()) - used) if _may_be_left(name)]
        statuses = self.place.statuses(unused)
        gone = [self.known[version] for version in self.removed]
        named_before = {name for described in gone if isinstance(described, Manifest) for name in names_of(described)}
        for name in unused:
            status = statuses.get(name)
            # A writer that is at work may name in a moment what no version has named yet.
            if status is not None and (name in named_before or self._is_left_over(status)):
                self.place.remove(name)
                self.freed_bytes += status.size_bytes
                self.removed_files.append(name)

    def _is_left_over(self, status: ObjectStatus) -> bool:
        return self.now - status.modified >= self.place.leftover_seconds

    def _remove_manifests(self, doomed: Sequence[int]) -> None:
        """Remove manifests that nobody has leased and no pin names; see the protocol in `pins.py`."""
        locked: dict[int, Held] = {}
        try:
            for version in doomed:
                held = self.place.taken_alone(layout.manifest_name(version))
                if held is None:
                    self.keep([version], "being read")
                else:
                    locked[version] = held
            if locked:
                self.place.wait_for_holders()
            # Only now: who has pinned one of them before it was locked is seen here, nobody can from here on.
            self.keep_pinned()
            self.check()
            for version in locked:
                if version not in self.reasons:
                    self._unlink(layout.manifest_name(version))
                    self.removed.add(version)
        finally:
            for held in locked.values():
                held.release()

    def _unlink(self, name: str) -> None:
        status = self.place.status(name)
        self.place.remove(name)
        self.freed_bytes += status.size_bytes if status is not None else 0


def _may_be_left(name: str) -> bool:
    return bool(layout.number_of(name)) or name.startswith(layout.TEMPORARY_PREFIX)
