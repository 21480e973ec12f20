"""Tells which rows of a table are the same in two of its versions."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.errors import CorruptTableError, MasterNotFoundError
from semistream.store.paged.versions import manifest as manifests
from semistream.store.paged.versions.manifest import Manifest
from semistream.store.paged.versions.page_index import PageIndex, read_index
from semistream.store.places.place import Place
from semistream.store.sparse_index import SparseIndex


def unchanged_codes(
    place: Place, manifest: Manifest, entries: PageIndex, version: int, identity: str, codes: Int64Array
) -> BoolArray:
    """Say for each code whether its rows, or their absence, are the same in `version` as in the manifest's.

    `identity` is that of the version, since a table that was removed and built again has the same numbers. Pages are
    immutable, so rows whose page is at the same place of the same file are the same. A page that lies among the copies
    of a compaction is the same, too, if it has the first code, the number of rows, the length and the checksum of the
    page that was there then. Of all others nothing is known, nor of any if the other version is gone or has other
    columns. Costs a read of that version's index.
    """
    if identity == manifest.identity:
        return np.ones(len(codes), dtype=np.bool_)
    nothing = np.zeros(len(codes), dtype=np.bool_)
    try:
        other = manifests.load(place, version)
        if identity != other.identity:
            return nothing
        other_entries = read_index(place, other)
    except (FileNotFoundError, MasterNotFoundError, CorruptTableError):
        return nothing
    if not other.schema.equals(manifest.schema) or other.key != manifest.key:
        return nothing
    if not len(other_entries) or not len(entries):
        return nothing
    then, now = (SparseIndex(pages.first_codes).locate(codes) for pages in (other_entries, entries))
    at_same_place = _same_place(manifest, entries, other, other_entries, then, now)
    return at_same_place | _same_copy(manifest, entries, other_entries, then, now)


def _same_place(
    manifest: Manifest, entries: PageIndex, other: Manifest, other_entries: PageIndex, then: Int32Array, now: Int32Array
) -> BoolArray:
    places = {file.name: place for place, file in enumerate(manifest.files)}
    new_files = np.array([places.get(file.name, -1) for file in other.files], dtype=np.int64)
    addresses = other_entries.renumbered(np.maximum(new_files, 0)).addresses
    addresses[new_files[other_entries.files] < 0] = -1
    same: BoolArray = addresses[then] == entries.addresses[now]
    return same


def _same_copy(
    manifest: Manifest, entries: PageIndex, other_entries: PageIndex, then: Int32Array, now: Int32Array
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
