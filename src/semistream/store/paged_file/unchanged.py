"""Tells which rows of a table are the same in two of its versions."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.errors import CorruptTableError, MasterNotFoundError
from semistream.store.paged_file import manifest as manifests
from semistream.store.paged_file.page_index import read_index
from semistream.store.paged_file.reader import PagedFileStore
from semistream.store.sparse_index import SparseIndex


def unchanged_since(store: PagedFileStore, version: int, identity: str, codes: Int64Array) -> BoolArray:
    """Say for each code whether its rows, or their absence, are the same in `version` as in the store's.

    `identity` is that of the version, since a table that was removed and built again has the same numbers. Pages are
    immutable, so rows whose page is at the same place of the same file are the same; of all others nothing is known,
    nor of any if the other version is gone or has other columns. Costs a read of that version's index.
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
    places = {file.name: place for place, file in enumerate(store.manifest.files)}
    new_files = np.array([places.get(file.name, -1) for file in other.files], dtype=np.int64)
    then = entries.renumbered(np.maximum(new_files, 0)).addresses
    then[new_files[entries.files] < 0] = -1
    pages = SparseIndex(entries.first_codes).locate(codes)
    unchanged: BoolArray = then[pages] == store.entries.addresses[store.locate(codes)]
    return unchanged
