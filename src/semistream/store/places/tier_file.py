"""Copies of blocks of one object, in a sparse file of the local disk, and the map of which blocks are there.

    NAME.blocks   a file as long as the object, with holes where no block is
    NAME.map      a header of 4096 bytes, one byte a block for its state, and one byte a block for its use

The map is read and written, never mapped into memory: a file that somebody cuts short or a full disk is then an error
that can be answered. States are written by whoever holds the lock of the tier, and in an order that makes a kill at any
moment harmless: a block is in doubt before its bytes change, and present when they are there.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import time
import weakref
from contextlib import ExitStack, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from semistream.core import durable_files as files
from semistream.core.arrays import Int64Array, UInt8Array

BLOCK_BYTES = 1 << 14
"""A few pages, so that a tier too small for a table keeps what was asked for; large enough that a map is small."""
ABSENT, IN_DOUBT, PRESENT = range(3)
MAX_USE = 3
_HEADER_BYTES = 4096
_MAP, _BLOCKS = ".map", ".blocks"
_MAGIC = "semistream tier 1"
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class TierFile:
    """An open pair of files. Reads may come from several threads and processes; changes need the lock of the tier."""

    def __init__(self, folder: Path, name: str, size_bytes: int, map_file: int, blocks_file: int) -> None:
        self.name = name
        self.size_bytes = size_bytes
        self.block_count = _blocks_in(size_bytes)
        self.map_bytes = _HEADER_BYTES * (2 + 2 * self.block_count // _HEADER_BYTES)
        """What the map takes on the disk, by whole blocks of the file system."""
        self._folder = folder
        self._map = map_file
        self._blocks = blocks_file
        # Not before the last thread is done with them: their numbers could be those of other files by then.
        weakref.finalize(self, _close, map_file, blocks_file).atexit = False

    @classmethod
    def made(cls, folder: Path, identity: str, size_bytes: int) -> TierFile:
        """Open the files of an object, or begin new ones if there are none that belong together; needs the lock."""
        name = hashlib.sha256(identity.encode()).hexdigest()[:32]
        header = json.dumps({"magic": _MAGIC, "size_bytes": size_bytes, "block_bytes": BLOCK_BYTES}).encode()
        try:
            found = cls.found(folder, name)
        except (OSError, ValueError):
            found = None
        if found is not None and found.size_bytes == size_bytes:
            return found
        remove_files(folder, name)
        blocks_file = files.open_new(folder / (name + _BLOCKS))
        try:
            os.ftruncate(blocks_file, size_bytes)
            map_file = files.open_new(folder / (name + _MAP))
        except BaseException:
            files.close(blocks_file)
            raise
        made = cls(folder, name, size_bytes, map_file, blocks_file)
        # The header comes last: what lacks it is begun anew.
        files.write_all_at(map_file, bytes(2 * made.block_count), _HEADER_BYTES)
        files.write_all_at(map_file, header.ljust(_HEADER_BYTES, b"\0"), 0)
        return made

    @classmethod
    def found(cls, folder: Path, name: str) -> TierFile:
        """Open the files of a name; OSError or ValueError if they do not belong together."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        with ExitStack() as opened:
            map_file = os.open(folder / (name + _MAP), flags)
            opened.callback(_close, map_file)
            size_bytes = _size_in_header(os.pread(map_file, _HEADER_BYTES, 0))
            blocks_file = os.open(folder / (name + _BLOCKS), flags)
            opened.pop_all()
        found = cls(folder, name, size_bytes, map_file, blocks_file)
        if not found.is_whole:
            raise ValueError("a file was cut short")
        return found

    @property
    def descriptor(self) -> int:
        """Of the file that has the blocks; open as long as this is."""
        return self._blocks

    def touch(self) -> None:
        """Note that the object is in use."""
        os.utime(self._map)

    @property
    def untouched_seconds(self) -> float:
        """How long ago somebody has last used or changed it."""
        return time.time() - os.fstat(self._map).st_mtime

    @property
    def is_whole(self) -> bool:
        """Whether both files have their names and their full length."""
        map_status, blocks_status = os.fstat(self._map), os.fstat(self._blocks)
        return (
            min(map_status.st_nlink, blocks_status.st_nlink) > 0
            and map_status.st_size == _HEADER_BYTES + 2 * self.block_count
            and blocks_status.st_size == self.size_bytes
        )

    def states(self) -> UInt8Array:
        """Return the state of each block; what a map that was cut short lacks is absent."""
        return self._read_map(0)

    def set_states(self, blocks: Int64Array, state: int) -> None:
        """Change the state of ascending blocks; needs the lock."""
        if len(blocks):
            first, last = int(blocks[0]), int(blocks[-1])
            states = self.states()[first : last + 1]
            states[blocks - first] = state
            files.write_all_at(self._map, states.tobytes(), _HEADER_BYTES + first)

    def uses(self) -> UInt8Array:
        """Return how often each block was used recently; a hint."""
        return self._read_map(1)

    def set_uses(self, first: int, uses: UInt8Array) -> None:
        """Write how often blocks from one on were used; what others write meanwhile may be lost."""
        files.write_all_at(self._map, uses.tobytes(), _HEADER_BYTES + self.block_count + first)

    def count_use(self, blocks: Int64Array) -> None:
        """Count one more use of each of these ascending blocks."""
        if len(blocks):
            first = int(blocks[0])
            uses = self.uses()[first : int(blocks[-1]) + 1]
            before = uses[blocks - first]
            if (before < MAX_USE).any():
                uses[blocks - first] = np.minimum(before + 1, MAX_USE)
                self.set_uses(first, uses)

    def read_all(self, extents: Int64Array, memory: UInt8Array) -> list[bool]:
        """Read stretches, each (offset, length, position in `memory`), and say which of them the file has in full."""
        view, blocks = _view(memory), self._blocks
        return [
            files.read_into(blocks, view[position : position + length], offset) == length
            for offset, length, position in extents.tolist()
        ]

    def write_blocks(self, first: int, content: UInt8Array) -> None:
        """Write the bytes of a block and of those after it, which must be in doubt."""
        offset = first * BLOCK_BYTES
        files.write_all_at(self._blocks, _view(content[: self.size_bytes - offset]), offset)

    def punch(self, blocks: Int64Array) -> None:
        """Free what ascending blocks take on the disk; they must be in doubt."""
        for begin, end in runs_of(blocks):
            _punch_hole(self._blocks, int(blocks[begin]) * BLOCK_BYTES, (end - begin) * BLOCK_BYTES)

    def empty(self, blocks: Int64Array) -> None:
        """Make ascending blocks absent; needs the lock."""
        self.set_states(blocks, IN_DOUBT)
        self.punch(blocks)
        self.set_states(blocks, ABSENT)

    def _read_map(self, part: int) -> UInt8Array:
        content: UInt8Array = np.zeros(self.block_count, dtype=np.uint8)
        files.read_into(self._map, _view(content), _HEADER_BYTES + part * self.block_count)
        return content


def names_of_files(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of all pairs of files in a folder, and those of blocks whose map is gone, both sorted."""
    found = files.names_in(folder)
    maps, blocks = ({name.removesuffix(end) for name in found if name.endswith(end)} for end in (_MAP, _BLOCKS))
    return sorted(maps), sorted(blocks - maps)


def remove_files(folder: Path, name: str) -> None:
    """Remove a pair of files; needs the lock."""
    for suffix in (_MAP, _BLOCKS):
        with suppress(FileNotFoundError):
            (folder / (name + suffix)).unlink()


def _size_in_header(content: bytes) -> int:
    """Return how large the object is; ValueError if this is no header of ours."""
    try:
        header: Any = json.loads(content.rstrip(b"\0") or b"null")
    except RecursionError:
        raise ValueError("no header") from None
    if not isinstance(header, dict) or header.get("magic") != _MAGIC:
        raise ValueError("no header")
    size_bytes = header.get("size_bytes")
    if not isinstance(size_bytes, int) or header.get("block_bytes") != BLOCK_BYTES:
        raise ValueError("another format")
    return size_bytes


def runs_of(blocks: Int64Array) -> list[tuple[int, int]]:
    """Return where runs of neighbours in ascending blocks begin and end."""
    if not len(blocks):
        return []
    breaks = (np.flatnonzero(np.diff(blocks) != 1) + 1).tolist()
    return list(pairwise((0, *breaks, len(blocks))))


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            files.close(descriptor)


def _view(content: Any) -> memoryview:
    return memoryview(content).cast("B")


def _blocks_in(size_bytes: int) -> int:
    return -(-size_bytes // BLOCK_BYTES)


@cache
def _fallocate() -> Any:
    call = ctypes.CDLL(None, use_errno=True).fallocate64
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return call


def _punch_hole(descriptor: int, offset: int, length: int) -> None:
    try:
        failed = _fallocate()(descriptor, _PUNCH_HOLE | _KEEP_SIZE, offset, length)
    except AttributeError:
        raise OSError(errno.EOPNOTSUPP, "this system cannot free parts of files") from None
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
