"""Tells which rows of a table are the same in two of its versions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.errors import CorruptTableError, MasterNotFoundError
from semistream.store.contract import SaysOfCodes
from semistream.store.paged.format.heat_map import HeatMap
from semistream.store.paged.versions import manifest as manifests
from semistream.store.paged.versions.manifest import Manifest
from semistream.store.paged.versions.page_index import PageIndex, read_index
from semistream.store.places.place import Place


class UnchangedCodes:
    """Says of codes whether they are in one of some ranges; costs a search among the ends of ranges for each code."""

    def __init__(self, ends: Int64Array, *, begins_within: bool) -> None:
        self._ends = ends
        self._begins_within = begins_within

    def __call__(self, codes: Int64Array) -> BoolArray:
        """Say for each code whether it is within."""
        is_odd = (np.searchsorted(self._ends, codes, side="right") & 1).astype(np.bool_)
        return ~is_odd if self._begins_within else is_odd


class UnchangedInClasses:
    """Says it of codes by their heat class."""

    def __init__(self, heat_map: HeatMap, of_classes: list[UnchangedCodes]) -> None:
        self._heat_map = heat_map
        self._of_classes = of_classes

    def __call__(self, codes: Int64Array) -> BoolArray:
        """Say for each code whether it is within the ranges of its class."""
        same = np.zeros(len(codes), dtype=np.bool_)
        classes = self._heat_map.class_of(codes)
        for number in np.flatnonzero(np.bincount(classes)).tolist():
            chosen = classes == number
            same[chosen] = self._of_classes[number](codes[chosen])
        return same


_NO_ENDS = np.zeros(0, dtype=np.int64)
_ALL = UnchangedCodes(_NO_ENDS, begins_within=True)
_NONE = UnchangedCodes(_NO_ENDS, begins_within=False)


def unchanged_codes(place: Place, manifest: Manifest, entries: PageIndex, version: int, identity: str) -> SaysOfCodes:
    """Return what says of codes whether their rows, or their absence, are the same in `version` as in the manifest's.

    `identity` is that of the version, since a table that was removed and built again has the same numbers. Pages are
    immutable, so rows whose page is at the same place of the same file are the same. A page that lies among the copies
    of a compaction is the same, too, if it has the first code, the number of rows, the length and the checksum of the
    page that was there then. A version that was only put into another order has the same rows. Of all others nothing is
    known, nor of any if the other version is gone, has other columns or is in another order. Costs a read of that
    version's index, and a walk along both.
    """
    if identity == manifest.identity or (manifest.by_use is not None and identity in manifest.by_use.same_rows_as):
        return _ALL
    try:
        other = manifests.load(place, version)
        if identity != other.identity:
            return _NONE
        other_entries = read_index(place, other)
    except (FileNotFoundError, MasterNotFoundError, CorruptTableError):
        return _NONE
    if not other.schema.equals(manifest.schema) or other.key != manifest.key:
        return _NONE
    both = _Both(manifest, entries, other, other_entries)
    if entries.classes is None and other_entries.classes is None:
        return both.unchanged(0, len(other_entries), 0, len(entries))
    if (
        entries.classes is None
        or other_entries.classes is None
        or not entries.classes.heat_map.is_same_as(other_entries.classes.heat_map)
    ):
        return _NONE
    then, now = (pages.classes.bounds.tolist() for pages in (other_entries, entries) if pages.classes is not None)
    ranges = zip(then[:-1], then[1:], now[:-1], now[1:], strict=True)
    return UnchangedInClasses(entries.classes.heat_map, [both.unchanged(*of_class) for of_class in ranges])


@dataclass(frozen=True)
class _Both:
    """Two versions of a table."""

    manifest: Manifest
    entries: PageIndex
    other: Manifest
    other_entries: PageIndex

    def unchanged(self, first_then: int, after_then: int, first_now: int, after_now: int) -> UnchangedCodes:
        """Return what says it of codes that are on some pages of the other version and on some of this one."""
        if first_then == after_then or first_now == after_now:
            return _NONE
        # Between two neighbouring ones of these codes, each version has one page; below the first, each has its first.
        firsts_then = self.other_entries.first_codes[first_then:after_then]
        firsts_now = self.entries.first_codes[first_now:after_now]
        begins = np.sort(np.concatenate([firsts_then, firsts_now]), kind="stable")
        then, now = (
            np.append(0, np.maximum(np.searchsorted(firsts, begins, side="right") - 1, 0)) + first
            for firsts, first in ((firsts_then, first_then), (firsts_now, first_now))
        )
        same = _same_place(self.manifest, self.entries, self.other, self.other_entries, then, now)
        same |= _same_copy(self.manifest, self.entries, self.other_entries, then, now)
        return UnchangedCodes(begins[same[1:] != same[:-1]], begins_within=bool(same[0]))


def _same_place(
    manifest: Manifest, entries: PageIndex, other: Manifest, other_entries: PageIndex, then: Int64Array, now: Int64Array
) -> BoolArray:
    places = {file.name: place for place, file in enumerate(manifest.files)}
    new_files = np.array([places.get(file.name, -1) for file in other.files], dtype=np.int64)
    addresses = other_entries.renumbered(np.maximum(new_files, 0)).addresses
    addresses[new_files[other_entries.files] < 0] = -1
    same: BoolArray = addresses[then] == entries.addresses[now]
    return same


def _same_copy(
    manifest: Manifest, entries: PageIndex, other_entries: PageIndex, then: Int64Array, now: Int64Array
) -> BoolArray:
    starts = np.array([manifest.copied.get(file.name, file.size_bytes) for file in manifest.files], dtype=np.int64)
    same: BoolArray = (entries.offsets >= starts[entries.files])[now]
    if not same.any():
        return same
    for old, new in (
        (other_entries.first_codes, entries.first_codes),
        (other_entries.lengths, entries.lengths),
        (other_entries.row_counts, entries.row_counts),
        (other_entries.checksums, entries.checksums),
    ):
        same &= old[then] == new[now]
    return same
