"""The data files of a version, of which only so many are open at once."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np

from semistream.core import durable_files as files
from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.errors import CorruptTableError, SemistreamError
from semistream.store.paged.format.layout import HEADER_BYTES, PAGES_MAGIC, decode_header
from semistream.store.paged.read.read_memory import ReadMemory
from semistream.store.paged.versions.manifest import TableFile
from semistream.store.paged.versions.page_index import file_of
from semistream.store.places.place import Place

MAX_OPEN = 64
"""How many data files a version keeps open. Merges keep a table below that, so that usually all of them are."""
MAX_AT_ONCE = 16
"""How many files may be borrowed at once where not all can be open."""
_BLOCK_BYTES = 4096


class OpenFiles:
    """Lends descriptors of data files, opens those that are closed, and closes the ones that were not used for long.

    A descriptor is closed only when nobody has borrowed it, so that its number never comes to mean another file while a
    compiled loop reads from it. May be called from several threads. Costs less than a microsecond where all files are
    open, and some ten for each file that has to be opened.
    """

    def __init__(self, place: Place, needed: tuple[TableFile, ...], *, direct: bool) -> None:
        self.place = place
        self.needed = needed
        self.direct = direct
        self._lock = Lock()
        self._closed = False
        self._borrowers = 0
        self._descriptors = np.full(len(needed), -1, dtype=np.int32)
        self._borrowed: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        """Open files that nobody has borrowed, those first that were used longest ago; only where not all are open."""
        self._keeps_all = len(needed) <= MAX_OPEN
        try:
            for number in range(len(needed)):
                descriptor = self._opened(number)
                if number < MAX_OPEN:
                    self._descriptors[number] = descriptor
                    self._idle[number] = None
                else:
                    # Each is looked at, so that damage shows when a version is opened.
                    files.close(descriptor)
        except BaseException:
            self.close()
            raise

    @property
    def keeps_all(self) -> bool:
        """Whether all files are open as long as this is, so that any of them may be read with any other."""
        return self._keeps_all

    def runs(self, addresses: Int64Array) -> list[tuple[int, int, list[int]]]:
        """Part stretches at these addresses into runs of few different files: first, end and file numbers of each."""
        if self._keeps_all:
            return [(0, len(addresses), [])]
        runs: list[tuple[int, int, list[int]]] = []
        first = 0
        numbers: dict[int, None] = {}
        for place, number in enumerate(file_of(addresses).tolist()):
            if number not in numbers and len(numbers) == MAX_AT_ONCE:
                runs.append((first, place, list(numbers)))
                first, numbers = place, {}
            numbers[number] = None
        return [*runs, (first, len(addresses), list(numbers))]

    def borrow(self, numbers: Sequence[int]) -> Int32Array:
        """Return the descriptors by file number, of which those of `numbers` may be used until they are given back."""
        with self._lock:
            if self._closed:
                raise SemistreamError(f"{self.place.shown()} was closed: open the table again to read it.")
            if self._keeps_all:
                self._borrowers += 1
                return self._descriptors
            for number in numbers:
                self._idle.pop(number, None)
                self._borrowed[number] = self._borrowed.get(number, 0) + 1
            self._close_idle(MAX_OPEN)
            try:
                for number in numbers:
                    if self._descriptors[number] < 0:
                        self._descriptors[number] = self._reopened(number)
            except BaseException:
                self._end_use(numbers)
                raise
            self._borrowers += 1
            return self._descriptors.copy()

    def give_back(self, numbers: Sequence[int]) -> None:
        """End the use of what was borrowed; must be called once for each `borrow`, with the same numbers."""
        with self._lock:
            self._borrowers -= 1
            if not self._keeps_all:
                self._end_use(numbers)
            if self._closed and not self._borrowers:
                self._close_all()

    def close(self) -> None:
        """Close all files, those that are borrowed as soon as they are given back."""
        with self._lock:
            self._closed = True
            if not self._borrowers:
                self._close_all()

    def _end_use(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._borrowed[number] -= 1
            if not self._borrowed[number]:
                del self._borrowed[number]
                if self._descriptors[number] >= 0:
                    self._idle[number] = None
        self._close_idle(MAX_OPEN)

    def _close_idle(self, limit: int) -> None:
        while self._idle and len(self._idle) + len(self._borrowed) > limit:
            number, _ = self._idle.popitem(last=False)
            self._close_one(number)

    def _close_all(self) -> None:
        for number in np.flatnonzero(self._descriptors >= 0).tolist():
            self._close_one(number)

    def _close_one(self, number: int) -> None:
        descriptor, self._descriptors[number] = int(self._descriptors[number]), -1
        # What was only read cannot be lost by closing it.
        with suppress(OSError):
            files.close(descriptor)

    def _reopened(self, number: int) -> int:
        try:
            return self._opened(number)
        except FileNotFoundError:
            raise SemistreamError(
                f"{self.place.shown(self.needed[number].name)} was removed while its version was being read: open the "
                f"table again, and have vacuum keep versions for as long as they are read."
            ) from None

    def _opened(self, number: int) -> int:
        """Open a file and check its size and header."""
        file = self.needed[number]
        path = self.place.shown(file.name)
        descriptor = self.place.open_descriptor(file.name)
        try:
            size_bytes = os.fstat(descriptor).st_size
            if size_bytes != file.size_bytes:
                raise CorruptTableError(
                    f"{path} is truncated or damaged: expected {file.size_bytes} bytes, found {size_bytes}."
                )
            head = bytearray(HEADER_BYTES)
            files.read_into(descriptor, memoryview(head), 0)
            decode_header(path, PAGES_MAGIC, bytes(head))
            if not self.direct:
                return descriptor
            direct = self._opened_directly(file.name, descriptor)
        except BaseException:
            files.close(descriptor)
            raise
        files.close(descriptor)
        return direct

    def _opened_directly(self, name: str, descriptor: int) -> int:
        path = self.place.shown(name)
        direct = self.place.open_descriptor(name, direct=True)
        try:
            if not os.path.sameopenfile(direct, descriptor) or not stat.S_ISREG(os.fstat(direct).st_mode):
                raise CorruptTableError(f"{path} was replaced while it was opened.")
            # Some file systems take the flag and refuse the first read.
            files.read_into(direct, _writable(ReadMemory().take(_BLOCK_BYTES)), 0)
        except OSError:
            files.close(direct)
            raise SemistreamError(
                f"The file system of {path} refuses direct reads: open the table without `direct`."
            ) from None
        except BaseException:
            files.close(direct)
            raise
        return direct


def _writable(memory: Any) -> memoryview:
    return memoryview(memory).cast("B")
