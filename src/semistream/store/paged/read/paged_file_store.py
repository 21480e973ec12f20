"""A version of a paged table, read page range by page range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.errors import CorruptTableError
from semistream.core.side_by_side import side_by_side
from semistream.store.contract import Capabilities, MasterStore, PageSet, PreparedRead, SaysOfCodes
from semistream.store.found_rows import RowReader
from semistream.store.paged.format.page_columns import PageColumns
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.read.checking import TOO_SHORT, checked_codes
from semistream.store.paged.read.data_reads import DataReads
from semistream.store.paged.read.descriptor_reads import DescriptorReads
from semistream.store.paged.read.far_pages import FarPages
from semistream.store.paged.read.page_locator import PageLocator
from semistream.store.paged.read.page_names import PageNames
from semistream.store.paged.read.page_set import FilePages
from semistream.store.paged.read.placing import (
    PlacedPages,
    count_pages,
    order_across,
    place_pages,
    range_bytes,
    ranges_bytes,
)
from semistream.store.paged.read.range_reads import RangeReads
from semistream.store.paged.read.read_memory import ReadMemory
from semistream.store.paged.read.row_reader import FileRowReader
from semistream.store.paged.versions import manifest as manifests
from semistream.store.paged.versions.heat_classes import class_bounds
from semistream.store.paged.versions.manifest import Manifest
from semistream.store.paged.versions.page_index import PageIndex, read_index
from semistream.store.paged.versions.unchanged import unchanged_codes
from semistream.store.places.choice import PlaceOrAddress, place_of
from semistream.store.places.place import Lease, Traffic

_ATTEMPTS = 3
_BLOCK_BYTES = 4096
"""What offsets, lengths and buffers of direct reads are multiples of."""


def _nothing_has_come() -> bool:
    return False


class PagedFileStore(MasterStore):
    """A version of the table in a directory; the current one unless `version` is given.

    A lease keeps the version from being vacuumed until the store is closed; with a manifest that is `known` there is
    none, because something else does, such as a pin. Every page is checked on every read. With
    `direct` reads go past the page cache of the operating system.
    """

    def __init__(
        self,
        where: PlaceOrAddress,
        *,
        version: int | None = None,
        direct: bool = False,
        known: Manifest | None = None,
    ) -> None:
        self._files: DataReads | None = None
        self._lease: Lease | None = None
        self.place = place_of(where)
        direct = direct and self.place.promises.lends_descriptors
        self._direct = direct
        self._block_bytes = _BLOCK_BYTES if direct else 1
        self.manifest, self._entries = self._open(version, known)
        self.layout = RowLayout(self.manifest.schema, self.manifest.key)
        self.schema = self.layout.schema
        self.key = self.layout.key
        self.codec = self.layout.codec
        self.version = self.manifest.version
        self.row_count = self.manifest.row_count
        self.page_count = len(self._entries)
        self.unique = self.manifest.unique
        self.capabilities = Capabilities(snapshot=True)
        self._columns = PageColumns(self.layout)
        self._names = PageNames(self.place, self.manifest, self._entries)
        self._index = PageLocator(self._entries)
        self._memory = ReadMemory()
        self._class_bounds = class_bounds(self._entries.classes, self.page_count)
        ends = self._entries.addresses + self._entries.lengths
        # A page at which another pread starts, because it does not follow the page before it on the disk.
        self._breaks = np.flatnonzero(self._entries.addresses[1:] != ends[:-1]).astype(np.int64) + 1

    @property
    def identity(self) -> str:
        """What tells this version from all others; stands in its manifest."""
        return self.manifest.identity

    def unchanged_since(self, version: int, identity: str) -> SaysOfCodes:
        """Return what says of codes whether they are on the same page as in another version, whose index is read."""
        return unchanged_codes(self.place, self.manifest, self._entries, version, identity)

    @property
    def entries(self) -> PageIndex:
        """Where each page lies."""
        return self._entries

    @property
    def index_bytes(self) -> int:
        """The size of the sparse index and of the places of the pages, and what a read needs besides its pages.

        In a table that is ordered by use the map of hot keys, too.
        """
        entries = self._entries
        places = entries.addresses.nbytes + entries.lengths.nbytes + entries.row_counts.nbytes
        in_transit = self._files.transit_bytes if self._files is not None else 0
        return self._index.size_bytes + places + entries.checksums.nbytes + self._breaks.nbytes + in_transit

    @property
    def largest_page_bytes(self) -> int:
        """The length of the longest page, with the blocks around it if reads are direct."""
        largest = int(self._entries.lengths.max(initial=0))
        return largest + 2 * _BLOCK_BYTES if self._direct and largest else largest

    def page_bytes(self) -> Int64Array:
        """Return the length of each page, with the blocks around it if reads are direct."""
        lengths: Int64Array = self._entries.lengths.astype(np.int64)
        return lengths + 2 * _BLOCK_BYTES if self._direct else lengths

    @property
    def first_codes(self) -> Int64Array | None:
        """The first code of each page; None if the table is ordered by use, so that they do not ascend."""
        return self._entries.first_codes if self._entries.classes is None else None

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the page of each code."""
        return self._index.locate(codes)

    def range_bytes(self, first_page: int, last_page: int) -> int:
        """Return the lengths of these pages together, with the blocks around them if reads are direct."""
        entries = self._entries
        size = range_bytes(first_page, last_page, entries.addresses, entries.lengths, self._breaks, self._block_bytes)
        if size < 0:
            raise self._no_such_pages(first_page, last_page)
        return int(size)

    def ranges_bytes(self, first_pages: Int64Array, last_pages: Int64Array) -> int:
        """Return the sum of `range_bytes` over these ranges; some nanoseconds a range."""
        entries = self._entries
        first_pages, last_pages = _as_numbers(first_pages), _as_numbers(last_pages)
        size = ranges_bytes(
            first_pages, last_pages, entries.addresses, entries.lengths, self._breaks, self._block_bytes
        )
        if size < 0:
            raise self._no_such_pages(first_pages, last_pages)
        return int(size)

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Read each range by one pread, or by one for each place on the disk if merges have parted it."""
        return self._fetched(self._placed(first_pages, last_pages))

    def expect(self, pages: Int64Array) -> None:
        """Let a place that is far away bring these pages nearer, where it can."""
        if self._files is not None and not self.place.promises.lends_descriptors:
            entries = self._entries
            extents = np.zeros((len(pages), 3), dtype=np.int64)
            extents[:, 0], extents[:, 1] = entries.addresses[pages], entries.lengths[pages]
            self._files.expect(extents)

    @property
    def max_expected_pages(self) -> int:
        """As many as the place can bring nearer."""
        return self.place.max_expected

    @property
    def traffic(self) -> Traffic:
        """What the place has brought."""
        return self.place.traffic

    def read_pages(self, first_pages: Int64Array, last_pages: Int64Array) -> FilePages:
        """Read as `read` does and show the bytes of the pages."""
        return self._fetched(self._placed(first_pages, last_pages))

    def prepared_read(self, first_pages: Int64Array, last_pages: Int64Array) -> PreparedRead:
        """Return what reads when it is called; all places and the memory are there by then."""
        placed = self._placed(first_pages, last_pages)
        begun: list[Callable[[], bool]] = []

        def begin() -> bool:
            assert self._files is not None
            waiting = self._files.begin(placed.extents, placed.memory)
            if waiting is not None:
                begun.append(waiting)
            return waiting is not None

        return PreparedRead(len(placed.memory), lambda: self._fetched(placed, *begun), begin)

    def row_reader(self, columns: Sequence[str], max_bytes: int, read_bytes: int = 1 << 20) -> RowReader | None:
        """Return what copies rows out of pages in one loop.

        None if a column is nested, or compiled loops cannot read the files of the table.
        """
        gathering, opened = self._columns.gathering(columns), self._files
        if gathering is None or opened is None or (isinstance(opened, DescriptorReads) and not opened.serves_loops):
            return None

        def raise_fault(page: int) -> None:
            where = np.array([page], dtype=np.int64)
            pages = self.read(where, where)
            pages.take(np.arange(len(pages.codes), dtype=np.int64), columns)

        return FileRowReader(
            self._entries,
            self.layout.code_bytes,
            gathering,
            max_bytes,
            files=opened if isinstance(opened, DescriptorReads) else None,
            far=FarPages(opened, self._entries, read_bytes) if isinstance(opened, RangeReads) else None,
            raise_fault=raise_fault,
        )

    def close(self) -> None:
        """Close all files and let the version go."""
        if self._files is not None:
            self._files.close()
        if self._lease is not None:
            self._lease.release()

    def __del__(self) -> None:
        self.close()

    def _placed(self, first_pages: Int64Array, last_pages: Int64Array) -> PlacedPages:
        """Work out where pages come from and where to, and take memory for them."""
        first_pages, last_pages = _as_numbers(first_pages), _as_numbers(last_pages)
        entries = self._entries
        count = count_pages(first_pages, last_pages, self.page_count)
        if count < 0:
            raise self._no_such_pages(first_pages, last_pages)
        pages, starts, ends = np.empty((3, count), dtype=np.int64)
        row_bounds = np.empty(count + 1, dtype=np.int64)
        bounds = np.empty(len(first_pages) + 1, dtype=np.int64)
        extents = np.empty((count, 3), dtype=np.int64)
        extent_count = place_pages(
            first_pages,
            last_pages,
            entries.addresses,
            entries.lengths,
            entries.row_counts,
            self._block_bytes,
            pages,
            starts,
            ends,
            row_bounds,
            bounds,
            extents,
        )
        size_bytes = int(extents[extent_count - 1, 1:].sum()) if extent_count else 0
        return PlacedPages(
            pages, starts, ends, row_bounds, bounds, extents[:extent_count], self._memory.take(size_bytes)
        )

    def _fetched(self, placed: PlacedPages, has_come: Callable[[], bool] = _nothing_has_come) -> FilePages:
        """Read the bytes of all extents unless they have come, check the pages and take their codes."""
        assert self._files is not None
        for attempt in range(_ATTEMPTS):
            if attempt or not has_come():
                self._files.fetch(placed.extents, placed.memory)
            try:
                codes = self._checked_codes(placed)
                break
            except CorruptTableError:
                # Perhaps a copy on the local disk is damaged, or went while it was read.
                if attempt == _ATTEMPTS - 1 or not self._files.distrust(placed.extents):
                    raise
        order = order_across(self._class_bounds, placed, codes) if self._entries.classes is not None else None
        return FilePages(
            self._columns,
            self._names,
            pa.py_buffer(placed.memory),
            placed.pages,
            placed.starts,
            placed.ends,
            placed.row_bounds,
            codes if order is None else codes[order],
            placed.bounds,
            _BLOCK_BYTES if self._direct else 0,
            order=order,
        )

    def _checked_codes(self, placed: PlacedPages) -> Int64Array:
        memory, expected = placed.memory, self._entries.checksums
        codes = np.empty(placed.row_bounds[-1], dtype=np.int64)
        wrong, checksum = checked_codes(
            memory,
            memory.view(np.int64),
            memory.view(np.int32),
            placed.starts,
            placed.ends,
            placed.pages,
            expected,
            placed.row_bounds,
            self.layout.code_bytes,
            codes,
        )
        if wrong == TOO_SHORT:
            raise CorruptTableError(f"A page of {self.place.shown()} is shorter than its rows: build the table again.")
        if wrong >= 0:
            page = int(placed.pages[wrong])
            raise self._names.fault(
                page,
                f"damaged: expected the checksum {int(expected[page])}, found {checksum}; "
                "restore the file or build again",
            )
        return codes

    def _no_such_pages(self, first_pages: Int64Array | int, last_pages: Int64Array | int) -> IndexError:
        return IndexError(f"pages {first_pages} to {last_pages} of {self.page_count}")

    def _open(self, version: int | None, known: Manifest | None) -> tuple[Manifest, PageIndex]:
        try:
            while True:
                if known is not None:
                    manifest, known = known, None
                else:
                    manifest, self._lease = manifests.leased(self.place, version)
                try:
                    if self.place.promises.lends_descriptors:
                        self._files = self._opened(manifest)
                        return manifest, read_index(self.place, manifest)
                    self._files, index = side_by_side(
                        partial(self._opened, manifest), partial(read_index, self.place, manifest)
                    )
                    return manifest, index
                except FileNotFoundError as error:
                    # Where there are no locks, a vacuum may have removed the version although there is a lease.
                    if manifest.version in manifests.versions(self.place):
                        raise CorruptTableError(
                            f"{error.filename} is missing: version {manifest.version} of {self.place.shown()} needs "
                            f"it; restore it."
                        ) from None
                self.close()
        except BaseException:
            self.close()
            raise

    def _opened(self, manifest: Manifest) -> DataReads:
        if self.place.promises.lends_descriptors:
            return DescriptorReads(self.place, manifest.files, direct=self._direct)
        return RangeReads(self.place, manifest.files)


def _as_numbers(pages: Int64Array) -> Int64Array:
    # Other types and strides would each compile the kernels anew.
    return np.ascontiguousarray(pages, dtype=np.int64)
