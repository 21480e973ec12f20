"""Memory that pages are read into, apart from the common heap."""

from __future__ import annotations

import mmap
import weakref
from collections import deque

import numpy as np

from semistream.core.arrays import UInt8Array

_BLOCK_BYTES = 65_536
_SPARE = 2


class ReadMemory:
    """Hands out blocks of memory, aligned to pages of the system, and uses a block again once nobody refers to it.

    What is read lives for quite different times; from the common heap it would leave holes that no later read fits
    into. A few free blocks are kept, because fresh memory costs as much time as the read itself; the others leave the
    process at once. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._spare: deque[mmap.mmap] = deque()

    def take(self, size_bytes: int) -> UInt8Array:
        """Return writable memory of this size; what is in it is of no meaning."""
        block = self._spare_of(size_bytes)
        if block is None:
            rounded = -(-max(1, size_bytes) // _BLOCK_BYTES) * _BLOCK_BYTES
            block = mmap.mmap(-1, rounded, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory = np.frombuffer(block, dtype=np.uint8, count=size_bytes)
        weakref.finalize(memory, self._give_back, block).atexit = False
        return memory

    def _spare_of(self, size_bytes: int) -> mmap.mmap | None:
        for _ in range(len(self._spare)):
            try:
                block = self._spare.popleft()
            except IndexError:
                return None
            if len(block) >= size_bytes and len(block) <= 4 * size_bytes + _BLOCK_BYTES:
                return block
        return None

    def _give_back(self, block: mmap.mmap) -> None:
        if len(self._spare) < _SPARE:
            self._spare.append(block)
