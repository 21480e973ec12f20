"""Brings pages of a place that lends no descriptors for a look-up: from copies on the local disk, or into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.store.paged.read.range_reads import RangeReads
from semistream.store.paged.read.read_memory import ReadMemory
from semistream.store.paged.versions.page_index import PageIndex
from semistream.store.places.place import Copies


@dataclass(frozen=True)
class Portion:
    """The pages of some codes, where they are to be read."""

    end: int
    """The first code that is not one of them."""
    held: Int64Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """By code where its page is in the memory, -1 if a file has it."""
    memory: UInt8Array = field(default_factory=lambda: np.empty(0, dtype=np.uint8))
    descriptors: Int32Array = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """By file number, of the copies that `kept_open` has; -1 where there are none."""
    kept_open: Sequence[Copies | None] = ()


class FarPages:
    """Brings pages in portions: those that have no copy on the local disk take at most about `read_bytes`."""

    def __init__(self, reads: RangeReads, entries: PageIndex, read_bytes: int) -> None:
        self._reads = reads
        self._entries = entries
        self._read_bytes = read_bytes
        self._memory = ReadMemory()

    def next_portion(self, pages: Int32Array, first: int) -> Portion:
        """Bring the pages of the codes from one on, of as many as may come together."""
        starts = first + np.flatnonzero(np.diff(pages[first:], prepend=-1))
        extents = self._extents(pages[starts[: self._reads.max_expected]])
        self._reads.expect(extents)
        near = self._reads.near(extents)
        far_bytes = np.cumsum(np.where(near, 0, extents[:, 1]))
        count = max(1, int(np.searchsorted(far_bytes, self._read_bytes, side="right")))
        end = int(starts[count]) if count < len(starts) else len(pages)
        return self._brought(pages, starts[:count], end, extents[:count], near[:count])

    def page_again(self, pages: Int32Array, first: int) -> Portion:
        """Bring the page of a code without its copy, which is thrown away; a portion of its own."""
        extents = self._extents(pages[first : first + 1])
        self._reads.distrust(extents)
        end = int(np.searchsorted(pages, pages[first], side="right"))
        return self._brought(pages, np.array([first]), end, extents, np.zeros(1, dtype=np.bool_))

    def _extents(self, pages: Int32Array) -> Int64Array:
        extents = np.zeros((len(pages), 3), dtype=np.int64)
        extents[:, 0], extents[:, 1] = self._entries.addresses[pages], self._entries.lengths[pages]
        return extents

    def _brought(
        self, pages: Int32Array, starts: Int64Array, end: int, extents: Int64Array, near: np.ndarray
    ) -> Portion:
        sizes = np.where(near, 0, extents[:, 1])
        extents[:, 2] = np.cumsum(sizes) - sizes
        memory = self._memory.take(int(sizes.sum()))
        if not near.all():
            self._reads.fetch_past_copies(extents[~near], memory)
        held = np.full(len(pages), -1, dtype=np.int64)
        first = int(starts[0])
        held[first:end] = np.repeat(np.where(near, -1, extents[:, 2]), np.diff(np.append(starts, end)))
        copies = self._reads.copies() if near.any() else []
        descriptors = [-1 if copy is None else copy.descriptor for copy in copies]
        return Portion(end, held, memory, np.array(descriptors, dtype=np.int32), copies)
