"""Reads data files of a place that lends no descriptors: many stretches by one call."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.errors import SemistreamError
from semistream.store.paged.read.data_reads import DataReads
from semistream.store.paged.versions.manifest import TableFile
from semistream.store.paged.versions.new_version import check_sizes
from semistream.store.paged.versions.page_index import file_of, offset_of
from semistream.store.places.place import Place


class RangeReads(DataReads):
    """Asks the place for all extents of a file at once; that all files are there is checked when it is made."""

    def __init__(self, place: Place, needed: tuple[TableFile, ...]) -> None:
        self._place = place
        self._needed = needed
        self._closed = False
        self.transit_bytes = place.transit_bytes
        check_sizes(place, needed)

    def fetch(self, extents: Int64Array, memory: UInt8Array) -> None:
        """Read file after file."""
        if self._closed:
            raise SemistreamError(f"{self._place.shown()} was closed: open the table again to read it.")
        numbers = file_of(extents[:, 0])
        for number in np.unique(numbers).tolist():
            ours = extents[numbers == number].copy()
            ours[:, 0] = offset_of(ours[:, 0])
            name = self._needed[number].name
            try:
                self._place.read_ranges(name, ours, memory)
            except FileNotFoundError:
                raise SemistreamError(
                    f"{self._place.shown(name)} has been removed while its version was read: open the table again, and "
                    f"let a vacuum keep versions for as long as they are read."
                ) from None

    def close(self) -> None:
        """Refuse further reads."""
        self._closed = True
