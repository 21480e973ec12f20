"""Reads a whole version and checks everything that can be checked."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.errors import CorruptTableError
from semistream.store.paged.format.page import decode
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions.heat_classes import class_bounds
from semistream.store.paged.versions.page_index import parted
from semistream.store.places.choice import PlaceOrAddress

_RUN_BYTES = 4 << 20


def verify(where: PlaceOrAddress, *, version: int | None = None) -> dict[str, int]:
    """Check the files of a version (the current one unless it is named) and return what was checked.

    Raises CorruptTableError with the file and the page at the first fault: a wrong checksum, rows that Arrow finds
    invalid, codes that do not belong to their keys, rows out of order, or an index that says something else.
    """
    with PagedFileStore(where, version=version) as store:
        ends = np.cumsum(store.entries.lengths.astype(np.int64))
        bounds = class_bounds(store.entries.classes, store.page_count).tolist()
        for number, (first, after) in enumerate(itertools.pairwise(bounds)):
            while first < after:
                before = int(ends[first - 1]) if first else 0
                last = max(first, int(np.searchsorted(ends, before + _RUN_BYTES, side="right")) - 1)
                last = min(last, after - 1)
                _check_run(store, number, first, last, after)
                first = last + 1
        return {
            "version": store.version,
            "files": len(store.manifest.files),
            "pages": store.page_count,
            "rows": store.row_count,
            "bytes": int(ends[-1]) if len(ends) else 0,
        }


def _check_run(store: PagedFileStore, number: int, first: int, last: int, after: int) -> None:
    """Check some pages of a heat class, which ends before page `after`; a table in one order has one class."""
    pages = store.read_pages(np.array([first]), np.array([last]))
    layout = store.layout
    batches = decode(pages.buffer, pages.page_starts.tolist(), layout.page_schema)
    for page, batch in enumerate(batches, first):
        try:
            batch.validate(full=True)
        except pa.ArrowException as error:
            raise _fault(store, page, f"Arrow says: {error}") from None
        if batch.num_rows != store.entries.row_counts[page]:
            raise _fault(store, page, f"it has {batch.num_rows} rows, but the index {store.entries.row_counts[page]}")
    rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    codes = pages.codes
    encoded = layout.codec.encode([rows.column(layout.position(name)) for name in layout.key])
    faults = {
        "rows have null keys": np.zeros(0, dtype=np.int64) if not encoded.null_count else np.arange(1),
        "codes do not belong to their keys": np.flatnonzero(encoded.codes != codes),
        "rows are out of order": np.flatnonzero(codes[1:] < codes[:-1]) + 1,
        "a key is repeated": _repeated(store, codes),
        "rows are in another heat class than their keys": _misplaced(store, number, codes),
    }
    for what, places in faults.items():
        if len(places):
            raise _fault(store, first + pages.page_of(int(places[0])), what)
    starts = pages.page_bounds[:-1]
    wrong = np.flatnonzero(codes[starts] != store.entries.first_codes[first : last + 1])
    if len(wrong):
        raise _fault(store, first + int(wrong[0]), "its first code is not the one in the index")
    next_code = int(store.entries.first_codes[last + 1]) if last + 1 < after else None
    if next_code is not None and codes[-1] >= next_code:
        raise _fault(store, last, "its last code belongs to the next page")
    parting = np.flatnonzero(codes[starts[1:]] == codes[starts[1:] - 1])
    if len(parting):
        raise _fault(store, first + int(parting[0]), "its last code goes on in the next page")


def _repeated(store: PagedFileStore, codes: Int64Array) -> Int64Array:
    if not store.unique or not store.codec.exact:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(codes[1:] == codes[:-1]) + 1


def _misplaced(store: PagedFileStore, number: int, codes: Int64Array) -> Int64Array:
    classes = store.entries.classes
    if classes is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(classes.heat_map.class_of(codes) != number)


def _fault(store: PagedFileStore, page: int, what: str) -> CorruptTableError:
    file, offset = parted(int(store.entries.addresses[page]))
    name = store.place.shown(store.manifest.files[file].name)
    return CorruptTableError(f"Page {page} in {name} at byte {offset} is wrong: {what}; restore it or build again.")
