"""Tells which rows of a table are the same in two of its versions."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.errors import CorruptTableError, MasterNotFoundError
from semistream.store.paged_file import manifest as manifests
from semistream.store.paged_file.page_index import PageIndex, read_index
from semistream.store.paged_file.reader import PagedFileStore
from semistream.store.sparse_index import SparseIndex


def unchanged_since(store: PagedFileStore, version: int, identity: str, codes: Int64Array) -> BoolArray:
    """Say for each code whether its rows, or their absence, are the same in `version` as in the store's.

    `identity` is that of the version, since a table that was removed and built again has the same numbers. Pages are
    immutable, so rows whose page is at the same place of the same file are the same. A page that lies among the copies
    of a compaction is the same, too, if it has the first code, the number of rows, the length and the checksum of the
    page that was there then. Of all others nothing is known, nor of any if the other version is gone or has other
    columns. Costs a read of that version's index.
    """
    if identity == store.identity:
        return np.ones(len(codes), dtype=np.bool_)
    nothing = np.zeros(len(codes), dtype=np.bool_)
    try:
        other = manifests.load(store.path, version)
        if identity != other.identity:
            return nothing
        entries = read_index(store.path, other)
    except (FileNotFoundError, MasterNotFoundError, CorruptTableError):
        return nothing
    if not other.schema.equals(store.manifest.schema) or other.key != store.manifest.key:
        return nothing
    if not len(entries) or not store.page_count:
        return nothing
    then, now = SparseIndex(entries.first_codes).locate(codes), store.locate(codes)
    return _same_place(store, other, entries, then, now) | _same_copy(store, entries, then, now)


def _same_place(
    store: PagedFileStore, other: manifests.Manifest, entries: PageIndex, then: Int32Array, now: Int32Array
) -> BoolArray:
    places = {file.name: place for place, file in enumerate(store.manifest.files)}
    new_files = np.array([places.get(file.name, -1) for file in other.files], dtype=np.int64)
    addresses = entries.renumbered(np.maximum(new_files, 0)).addresses
    addresses[new_files[entries.files] < 0] = -1
    same: BoolArray = addresses[then] == store.entries.addresses[now]
    return same


def _same_copy(store: PagedFileStore, entries: PageIndex, then: Int32Array, now: Int32Array) -> BoolArray:
    copied = store.manifest.copied
    starts = np.array([copied.get(file.name, file.size_bytes) for file in store.manifest.files], dtype=np.int64)
    same: BoolArray = (store.entries.offsets >= starts[store.entries.files])[now]
    if not same.any():
        return same
    for old, new in (
        (entries.first_codes, store.entries.first_codes),
        (entries.lengths, store.entries.lengths),
        (entries.row_counts, store.entries.row_counts),
        (entries.checksums, store.entries.checksums),
    ):
        same &= old[then] == new[now]
    return same
