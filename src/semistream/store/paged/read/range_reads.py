"""Reads data files of a place that lends no descriptors: many stretches by one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.core.errors import SemistreamError
from semistream.core.side_by_side import all_at_once
from semistream.store.paged.read.data_reads import DataReads
from semistream.store.paged.versions.manifest import TableFile
from semistream.store.paged.versions.new_version import check_sizes
from semistream.store.paged.versions.page_index import file_of, offset_of
from semistream.store.places.place import Copies, Place

_FILES_AT_ONCE = 4


class RangeReads(DataReads):
    """Asks the place for all extents of a file at once; that all files are there is checked when it is made."""

    def __init__(self, place: Place, needed: tuple[TableFile, ...]) -> None:
        self._place = place
        self._needed = needed
        self._closed = False
        self.transit_bytes = place.transit_bytes
        check_sizes(place, needed)

    def fetch(self, extents: Int64Array, memory: UInt8Array) -> None:
        """Read files side by side."""
        self._check_open()
        self._for_each_file(extents, lambda name, ours: self._place.read_ranges(name, ours, memory))

    def expect(self, extents: Int64Array) -> None:
        """Tell the place."""
        self._for_each_file(extents, self._place.expect)

    @property
    def max_expected(self) -> int:
        """How many extents may be expected at a time."""
        return self._place.max_expected

    def near(self, extents: Int64Array) -> BoolArray:
        """Say which extents have whole copies on the local disk."""
        numbers = file_of(extents[:, 0])
        is_near = np.zeros(len(extents), dtype=np.bool_)
        for number in np.unique(numbers).tolist():
            ours = extents[numbers == number].copy()
            ours[:, 0] = offset_of(ours[:, 0])
            is_near[numbers == number] = self._place.near(self._needed[number].name, ours)
        return is_near

    def copies(self) -> list[Copies | None]:
        """Return the copies of each file, which stay open as long as they are held."""
        return [self._place.copies(file.name) for file in self._needed]

    def fetch_past_copies(self, extents: Int64Array, memory: UInt8Array) -> None:
        """Read as `fetch` does, from where the files really are."""
        self._check_open()
        self._for_each_file(extents, lambda name, ours: self._place.read_past_copies(name, ours, memory))

    def distrust(self, extents: Int64Array) -> bool:
        """Ask the place, which may have read copies."""
        doubted = [self._place.distrust(name, ours) for name, ours in self._by_file(extents)]
        return any(doubted)

    def close(self) -> None:
        """Refuse further reads."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise SemistreamError(f"{self._place.shown()} was closed: open the table again to read it.")

    def _for_each_file(self, extents: Int64Array, work: Callable[[str, Int64Array], None]) -> None:
        files = self._by_file(extents)
        taking = Lock()

        def some() -> None:
            while True:
                with taking:
                    found = next(files, None)
                if found is None:
                    return
                with self._told_if_gone(found[0]):
                    work(*found)

        count = len(np.unique(file_of(extents[:, 0])))
        all_at_once([some] * min(_FILES_AT_ONCE, count))

    def _by_file(self, extents: Int64Array) -> Iterator[tuple[str, Int64Array]]:
        numbers = file_of(extents[:, 0])
        for number in np.unique(numbers).tolist():
            ours = extents[numbers == number].copy()
            ours[:, 0] = offset_of(ours[:, 0])
            yield self._needed[number].name, ours

    @contextmanager
    def _told_if_gone(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise SemistreamError(
                f"{self._place.shown(name)} has been removed while its version was read: open the table again, and let "
                f"a vacuum keep versions for as long as they are read."
            ) from None
