"""Puts the rows of a table into the order of their use: what is asked for often lies together, on the first pages."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pyarrow as pa

from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream.store.paged.format.heat_map import HeatMap
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions.heat_classes import HeatClasses
from semistream.store.paged.versions.manifest import TableFile
from semistream.store.paged.versions.new_version import NewVersion, repeated
from semistream.store.paged.versions.order_by_use import OrderByUse
from semistream.store.paged.versions.page_index import PageIndex, in_order
from semistream.store.paged.write.coding import Progress, silent
from semistream.store.paged.write.duplicates import whole_codes
from semistream.store.paged.write.heat import Heat, HottestKeys, Use, heat_map_of
from semistream.store.paged.write.packing import codes_of
from semistream.store.paged.write.sorting import ExternalSort
from semistream.store.paged.write.table_rows import PagesInOrder, rows_by_code
from semistream.store.paged.write.writer import PageWriter, new_data_file
from semistream.store.places.choice import PlaceOrAddress, place_of

_SMALLEST_MEMORY = 1 << 20
_KEY_BYTES = 32
"""What it takes to choose a hot key."""
_MAX_KNOWN = 8
"""Of how many versions it is remembered that they have the same rows."""


def recluster(
    where: PlaceOrAddress,
    use: Use,
    *,
    index_memory: int | str | None = None,
    memory: int | str = "256MB",
    progress: Progress | None = None,
) -> int:
    """Write all rows in the order of their heat as the next version, and return its number.

    At most half of the keys count as hot: as many as can be chosen in a quarter of the memory, and as the map of hot
    keys can have within `index_memory`. Costs two reads of the table, and writes it twice.
    """
    memory_bytes = max(_SMALLEST_MEMORY, parse_bytes(memory))
    map_bytes = None if index_memory is None else parse_bytes(index_memory, "index_memory")
    place, report = place_of(where), progress or silent

    def attempt() -> int:
        with NewVersion(place) as version, PagedFileStore(place, version=version.base) as old:
            heat_map = _heat_map(old, use.heat(old.layout), map_bytes, memory_bytes, report)
            if not len(heat_map.entries):
                raise InvalidSettingError(
                    f"No row of {place.shown()} is hotter than the others by its {use.about}: name a column or give "
                    f"counts that tell them apart."
                )
            return _written(version, old, heat_map, use.about, memory_bytes, report)

    return repeated(place, attempt)


def _heat_map(old: PagedFileStore, heat: Heat, map_bytes: int | None, memory_bytes: int, report: Progress) -> HeatMap:
    max_keys = min(old.row_count // 2, memory_bytes // 4 // _KEY_BYTES)
    if map_bytes is not None:
        max_keys = min(max_keys, HeatMap.max_keys(map_bytes, old.row_count))
    hottest = HottestKeys(max(1, max_keys))
    done = 0
    for rows in whole_codes(rows_by_code(old, memory_bytes // 8)):
        hottest.add(codes_of(rows), heat(rows))
        done += rows.num_rows
        report("reading", done, old.row_count)
    return heat_map_of(hottest.by_heat(), old.row_count)


def _written(
    version: NewVersion, old: PagedFileStore, heat_map: HeatMap, by: str, memory_bytes: int, report: Progress
) -> int:
    place = version.place
    with ExitStack() as cleanup:
        sorts = []
        for number in range(heat_map.class_count):
            # The coldest classes have most of the rows, so that they have most of the memory.
            share = memory_bytes >> min(6, heat_map.class_count - number)
            sort = ExternalSort(place, f"{version.token}-class-{number}", old.layout.coded_schema, share)
            cleanup.callback(sort.close)
            sorts.append(sort)
        _sort(old, heat_map, sorts, memory_bytes // 8, report)
        file = new_data_file(place.new_object(version.data_name))
        try:
            parts, done = [], 0
            for number, sort in enumerate(sorts):
                writer = PageWriter(file, old.layout, old.manifest.page_bytes)
                # As whole codes, because all rows of one must come to one page.
                for rows in whole_codes(sort.sorted_rows()):
                    writer.add(rows)
                    done += rows.num_rows
                    report("writing", done, old.row_count)
                writer.write_rest()
                index = writer.index(0)
                parts.append((index, np.full(len(index), number, dtype=np.uint8)))
                sort.close()
            written = file.finish()
        finally:
            file.close()
    return _committed(version, old, by, written, in_order(parts, _without_pages(heat_map)))


def _sort(
    old: PagedFileStore, heat_map: HeatMap, sorts: list[ExternalSort], portion_bytes: int, report: Progress
) -> None:
    done = 0
    for rows in PagesInOrder(old, 0, old.page_count, portion_bytes):
        classes = heat_map.class_of(codes_of(rows))
        for number in np.flatnonzero(np.bincount(classes)).tolist():
            sorts[number].add(rows.filter(pa.array(classes == number)))
        done += rows.num_rows
        report("sorting", done, old.row_count)


def _without_pages(heat_map: HeatMap) -> HeatClasses:
    return HeatClasses(np.zeros(heat_map.class_count, dtype=np.int64), heat_map)


def _committed(version: NewVersion, old: PagedFileStore, by: str, written: TableFile, index: PageIndex) -> int:
    before = old.manifest.by_use.same_rows_as if old.manifest.by_use is not None else ()
    by_use = OrderByUse(by, same_rows_as=(old.identity, *before)[:_MAX_KNOWN])
    return version.commit(replace(old.manifest, files=(written,), copied={}, by_use=by_use), index)
