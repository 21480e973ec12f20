"""Memory that pages are read into, apart from the common heap."""

from __future__ import annotations

import contextlib
import mmap
import weakref
from collections import deque

import numpy as np

from semistream.core.arrays import UInt8Array

_BLOCK_BYTES = 65_536
_HUGE_PAGE_BYTES = 2 << 20
_SPARE = 2
_PATIENCE = 16


class ReadMemory:
    """Hands out blocks of memory, aligned to pages of the system, and uses a block again once nobody refers to it.

    What is read lives for quite different times; from the common heap it would leave holes that no later read fits
    into. A few free blocks are kept, because fresh memory costs more time than the read itself; the others leave the
    process at once, and so does a block that was of no use for some reads. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._spare: deque[tuple[mmap.mmap, int]] = deque()
        """Free blocks, each with the number of reads that it did not fit."""

    def take(self, size_bytes: int) -> UInt8Array:
        """Return writable memory of this size; what is in it is of no meaning."""
        block = self._spare_of(size_bytes)
        if block is None:
            block = _fresh(size_bytes)
        memory = np.frombuffer(block, dtype=np.uint8, count=size_bytes)
        weakref.finalize(memory, self._give_back, block).atexit = False
        return memory

    def _spare_of(self, size_bytes: int) -> mmap.mmap | None:
        for _ in range(len(self._spare)):
            try:
                block, passed_over = self._spare.popleft()
            except IndexError:
                return None
            if len(block) >= size_bytes and len(block) <= 4 * size_bytes + _BLOCK_BYTES:
                return block
            if passed_over < _PATIENCE:
                self._keep(block, passed_over + 1)
        return None

    def _give_back(self, block: mmap.mmap) -> None:
        self._keep(block, 0)

    def _keep(self, block: mmap.mmap, passed_over: int) -> None:
        if len(self._spare) < _SPARE:
            self._spare.append((block, passed_over))


def _fresh(size_bytes: int) -> mmap.mmap:
    # Room for a read that is a little longer takes no memory before it is written to.
    step = max(_BLOCK_BYTES, 1 << max(0, size_bytes.bit_length() - 3))
    block = mmap.mmap(-1, -(-max(1, size_bytes) // step) * step, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    huge_bytes = size_bytes // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES
    if huge_bytes:
        # Faults of small pages would cost several times what the read costs. Not for the room behind: it would count.
        with contextlib.suppress(OSError):
            block.madvise(mmap.MADV_HUGEPAGE, 0, huge_bytes)
    return block
