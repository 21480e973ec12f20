"""Reads data files by their descriptors, in compiled loops."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.durable_files import read_into
from semistream.core.errors import CorruptTableError
from semistream.store.paged.read.data_reads import DataReads
from semistream.store.paged.read.fetching import announce_extents, read_extents
from semistream.store.paged.read.open_files import OpenFiles
from semistream.store.paged.read.system_reads import SystemReads, requests_for
from semistream.store.paged.versions.manifest import TableFile
from semistream.store.paged.versions.page_index import file_of, offset_of, parted
from semistream.store.places.place import Place

_EXTENTS_AT_ONCE = 256
"""How many system calls are made before Python may answer a signal."""
_EXTENTS_TIMED = 32
_CACHED_SECONDS, _CACHED_BANDWIDTH = 20e-6, 1e9
"""The first extents of a read take longer than this only if they come from a disk. Then the others are announced, so
that the disk works on many of them at a time; were they in memory already, that would cost as much as to read them."""


class DescriptorReads(OpenFiles, DataReads):
    """Reads each extent by one pread; direct reads may also be left to the system."""

    def __init__(self, place: Place, needed: tuple[TableFile, ...], *, direct: bool) -> None:
        self._system = SystemReads()
        super().__init__(place, needed, direct=direct)

    @property
    def serves_loops(self) -> bool:  # type: ignore[override]
        """Whether all files are open at once, and reads are not direct."""
        return self.keeps_all and not self.direct

    def fetch(self, extents: Int64Array, memory: UInt8Array) -> None:
        """Read the bytes of all extents."""
        for first, last, numbers in self.runs(extents[:, 0]):
            descriptors = self.borrow(numbers)
            try:
                self._fetch(descriptors, extents, first, last, memory)
            finally:
                self.give_back(numbers)

    def begin(self, extents: Int64Array, memory: UInt8Array) -> Callable[[], bool] | None:
        """Leave direct reads to the system; others would hold up the caller as long as `fetch`."""
        if not self.direct or not self.keeps_all:
            return None
        numbers, offsets = file_of(extents[:, 0]), offset_of(extents[:, 0])
        descriptors = self.borrow(())
        try:
            begun = self._system.begin(requests_for(descriptors, numbers, offsets, extents, memory), memory)
        finally:
            self.give_back(())
        if begun is None:
            return None
        ends = np.array([file.size_bytes for file in self.needed], dtype=np.int64)
        expected = np.minimum(extents[:, 1], ends[numbers] - offsets)
        return lambda: bool((begun.wait() >= expected).all())

    def close(self) -> None:
        """Close all files, those that are read from when nothing is read from them any more."""
        super().close()
        self._system.close()

    def _fetch(self, descriptors: Int32Array, extents: Int64Array, done: int, count: int, memory: UInt8Array) -> None:
        """Read the bytes of the extents from `done` to before `count`."""
        is_announced = self.direct
        while done < count:
            first, last = done, min(count, done + (_EXTENTS_AT_ONCE if is_announced else _EXTENTS_TIMED))
            began = time.perf_counter()
            done = read_extents(descriptors, extents, first, last, memory)
            if done < last:
                # Here the end of a file, an error or a signal is told from a short read and answered.
                self._fetch_one(descriptors, memory, *extents[done].tolist())
                done += 1
            if not is_announced:
                is_announced = True
                usual_seconds = (last - first) * _CACHED_SECONDS + int(extents[first:last, 1].sum()) / _CACHED_BANDWIDTH
                if time.perf_counter() - began > usual_seconds:
                    announce_extents(descriptors, extents, done, count)

    def _fetch_one(self, descriptors: Int32Array, memory: UInt8Array, address: int, length: int, position: int) -> None:
        number, offset = parted(address)
        done = read_into(int(descriptors[number]), _writable(memory)[position : position + length], offset)
        # The file may end inside the last block, but no page reaches behind its end.
        file = self.needed[number]
        expected = min(length, file.size_bytes - offset)
        if done < expected:
            raise CorruptTableError(
                f"{self.place.shown(file.name)} is truncated: expected {expected} bytes from {offset} on, found {done}."
            )


def _writable(memory: Any) -> memoryview:
    return memoryview(memory).cast("B")
