"""Tells which rows of a table are the same in two of its versions."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.errors import CorruptTableError, MasterNotFoundError
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


_NO_ENDS = np.zeros(0, dtype=np.int64)
_ALL = UnchangedCodes(_NO_ENDS, begins_within=True)
_NONE = UnchangedCodes(_NO_ENDS, begins_within=False)


def unchanged_codes(
    place: Place, manifest: Manifest, entries: PageIndex, version: int, identity: str
) -> UnchangedCodes:
    """Return what says of codes whether their rows, or their absence, are the same in `version` as in the manifest's.

    `identity` is that of the version, since a table that was removed and built again has the same numbers. Pages are
    immutable, so rows whose page is at the same place of the same file are the same. A page that lies among the copies
    of a compaction is the same, too, if it has the first code, the number of rows, the length and the checksum of the
    page that was there then. Of all others nothing is known, nor of any if the other version is gone or has other
    columns. Costs a read of that version's index, and a walk along both.
    """
    if identity == manifest.identity:
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
    if not len(other_entries) or not len(entries):
        return _NONE
    # Between two neighbouring ones of these codes, each version has one page; below the first, each has its first.
    begins = np.sort(np.concatenate([other_entries.first_codes, entries.first_codes]), kind="stable")
    then, now = (
        np.maximum(np.searchsorted(pages.first_codes, begins, side="right") - 1, 0)
        for pages in (other_entries, entries)
    )
    then, now = np.append(0, then), np.append(0, now)
    same = _same_place(manifest, entries, other, other_entries, then, now)
    same |= _same_copy(manifest, entries, other_entries, then, now)
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
