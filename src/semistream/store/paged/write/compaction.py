"""Keeps the number of data files small: pages of many files are copied into one, as they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array
from semistream.store.paged.format import layout
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions.new_version import NewVersion, repeated
from semistream.store.paged.versions.page_index import PageIndex, address
from semistream.store.paged.write.coding import Progress, silent
from semistream.store.paged.write.writer import AppendFile, new_data_file
from semistream.store.places.choice import PlaceOrAddress, place_of
from semistream.store.places.place import Place

_TIER_FILES = 8
"""So many files of about one size are copied into one."""
_SMALLEST_TIER_BYTES = 1 << 20
_OWN_FACTOR, _MIN_COPY_BYTES = 4, 64 << 20
_MAX_MERGED_FILES = 64
_COPY_BYTES = 4 << 20


def files_to_fold(live_bytes: Int64Array, names: list[str], own_bytes: int) -> BoolArray:
    """Choose the files whose pages a merge that writes `own_bytes` copies into its own file.

    Files of about one size are copied together once there are eight of them, the new one among them, so that a byte is
    copied about once for each eightfold growth; files without live pages count for nothing. A merge copies at most four
    times what it writes and 64 MiB. Where that leaves more than 64 files made by merges, it copies the smallest nine of
    them all the same: at most a seventh of the table, and eight files less with each merge.
    """
    chosen = np.zeros(len(names), dtype=np.bool_)
    room = _OWN_FACTOR * own_bytes + _MIN_COPY_BYTES
    tiers: dict[int, list[int]] = defaultdict(list)
    for place in np.flatnonzero(live_bytes).tolist():
        tiers[_tier(int(live_bytes[place]))].append(place)
    for tier in sorted(tiers):
        members = tiers[tier]
        size_bytes = int(live_bytes[members].sum())
        if len(members) >= _TIER_FILES - (tier == _tier(own_bytes)) and size_bytes <= room:
            chosen[members] = True
            room -= size_bytes
    # A build on Spark makes many files of one number, and they are as good as one: merges add one each.
    shared = Counter(layout.number_of(name) for name in names)
    merged = [place for place, name in enumerate(names) if live_bytes[place] and shared[layout.number_of(name)] == 1]
    left = sorted((place for place in merged if not chosen[place]), key=lambda place: int(live_bytes[place]))
    if len(left) >= _MAX_MERGED_FILES:
        chosen[left[: _TIER_FILES + 1]] = True
    return chosen


def copy_pages(old: PagedFileStore, pages: Int64Array, target: AppendFile, file_number: int) -> PageIndex:
    """Append pages to a file, in their order, and return their entries; each is checked on the way."""
    entries = old.entries.chosen(pages)
    offsets = np.empty(len(pages), dtype=np.int64)
    ends = np.cumsum(entries.lengths.astype(np.int64))
    first = 0
    while first < len(pages):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _COPY_BYTES, side="right")))
        read = old.read_pages(*_ranges(pages[first:last]))
        # Nothing lies between the pages of a read that is not direct.
        offsets[first:last] = target.append(read.buffer) + read.page_starts
        first = last
    return replace(entries, addresses=address(file_number, offsets))


def compact(where: PlaceOrAddress, *, progress: Progress | None = None) -> int:
    """Copy all pages of the current version into one file, in their order, as the next version; return its number.

    Rows and pages stay as they are, so that nothing that was cached becomes invalid. A table that is in one file
    without a gap stays at its version.
    """
    place = place_of(where)
    return repeated(place, lambda: _compact(place, progress or silent))


def _compact(place: Place, report: Progress) -> int:
    with NewVersion(place) as version, PagedFileStore(place, version=version.base) as old:
        if _is_compact(old):
            return old.version
        report("compacting", 0, old.page_count)
        target = new_data_file(place.new_object(version.data_name))
        try:
            copied = copy_pages(old, np.arange(old.page_count), target, 0)
            index = replace(copied, classes=old.entries.classes)
            file = target.finish()
        finally:
            target.close()
        report("compacting", old.page_count, old.page_count)
        described = replace(old.manifest, files=(file,), copied={file.name: layout.HEADER_BYTES})
        return version.commit(described, index)


def live_bytes_of(entries: PageIndex, file_count: int) -> Int64Array:
    """Return for each data file how many bytes of it are pages of this version."""
    counted = np.bincount(entries.files, weights=entries.lengths.astype(np.float64), minlength=file_count)
    return counted.astype(np.int64)


def _is_compact(store: PagedFileStore) -> bool:
    described = store.manifest.files
    live = int(store.entries.lengths.sum(dtype=np.int64))
    in_order = bool((np.diff(store.entries.addresses) > 0).all())
    whole = not described or described[0].size_bytes == layout.HEADER_BYTES + live
    return len(described) <= 1 and in_order and whole


def _tier(size_bytes: int) -> int:
    tier = 0
    while size_bytes > _SMALLEST_TIER_BYTES << (3 * tier):
        tier += 1
    return tier


def _ranges(pages: Int64Array) -> tuple[Int64Array, Int64Array]:
    starts = np.flatnonzero(np.diff(pages, prepend=-2) > 1)
    ends = np.append(starts[1:], len(pages)) - 1
    return pages[starts], pages[ends]
