"""The seam to the operating system: what writes, names, lists and locks the files of master tables goes through here.

Whoever tries what happens when a call fails, is interrupted, or is lost with the power puts another `System` in its
place. Pages that a join reads are not read through it but by a compiled loop (`fetching.py`).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_SYNC_FILE_RANGE_WRITE = 2


@cache
def _sync_file_range() -> Any:
    call = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if call is None:
        return lambda *_: None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return call


class System:
    """The system calls, as they are."""

    def open(self, path: Path, flags: int) -> int:
        """Return a descriptor of a file or directory, which is not passed on to other programs."""
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        os.close(descriptor)

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write some of the bytes at the descriptor's position and return how many."""
        return os.write(descriptor, data)

    def write_at(self, descriptor: int, data: memoryview, offset: int) -> int:
        """Write some of the bytes at an offset and return how many."""
        return os.pwrite(descriptor, data, offset)

    def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
        """Read some bytes from an offset on and return how many; none at the end of the file."""
        return os.preadv(descriptor, [view], offset)

    def sync(self, descriptor: int) -> None:
        """Force a file, or the names in a directory, to the disk."""
        os.fsync(descriptor)

    def begin_sync(self, descriptor: int, offset: int, count: int) -> None:
        """Let the disk begin to write a part of a file, without waiting for it; a hint."""
        _sync_file_range()(descriptor, offset, count, _SYNC_FILE_RANGE_WRITE)

    def link(self, existing: Path, new: Path) -> None:
        """Give a file a second name, which must not exist."""
        os.link(existing, new)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in place of a file that may have it."""
        old.replace(new)

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        path.unlink()

    def make_directory(self, path: Path) -> None:
        """Make a directory in one that exists."""
        path.mkdir()

    def names(self, path: Path) -> list[str]:
        """Return the names in a directory."""
        return os.listdir(path)  # noqa: PTH208

    def status(self, place: Path | int) -> os.stat_result:
        """Return what is known of a path, without following a symbolic link, or of a descriptor."""
        return os.fstat(place) if isinstance(place, int) else place.lstat()

    def lock(self, descriptor: int, kind: int) -> None:
        """Lock a file (`fcntl.LOCK_…`) until its descriptor and all copies of it are closed."""
        fcntl.flock(descriptor, kind)


_installed = [System()]


def system() -> System:
    """Return the system that is in place."""
    return _installed[-1]


@contextmanager
def installed(other: System) -> Iterator[None]:
    """Put another system in place, for all threads of the process."""
    _installed.append(other)
    try:
        yield
    finally:
        _installed.remove(other)
