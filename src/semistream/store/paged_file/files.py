"""The few system calls that all file access of paged tables goes through."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from semistream.core.errors import ConcurrentWriteError, CorruptTableError, SemistreamError
from semistream.store.paged_file.layout import LOCK_NAME


def open_to_read(path: Path, *, direct: bool = False) -> int:
    """Return a descriptor of a regular file; a symbolic link in its place is refused."""
    # O_NONBLOCK keeps a planted FIFO from hanging the open; it does nothing to regular files.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    if direct:
        flags |= os.O_DIRECT
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CorruptTableError(f"{path} is a symbolic link: a master table must hold its files itself.") from None
        if direct and error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            raise SemistreamError(
                f"The file system of {path} refuses direct reads: open the table without `direct`."
            ) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptTableError(f"{path} is not a regular file: restore it or build the table again.")
    return descriptor


def open_new(path: Path) -> int:
    """Return a descriptor to read and write a file that did not exist before."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)


def write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    """Write every byte of `data` at the descriptor's position."""
    view = memoryview(data)
    while len(view):
        view = view[os.write(descriptor, view) :]


def read_into(descriptor: int, view: memoryview, offset: int) -> int:
    """Fill `view` from `offset` on, as far as the file goes, and return the bytes read."""
    done = os.preadv(descriptor, [view], offset)
    while 0 < done < len(view):
        more = os.preadv(descriptor, [view[done:]], offset + done)
        if not more:
            break
        done += more
    return done


def read_file(path: Path, *, most_bytes: int = 1 << 62) -> bytes:
    """Return the content of a regular file that is not a symbolic link; nothing if it has more than `most_bytes`."""
    descriptor = open_to_read(path)
    try:
        if os.fstat(descriptor).st_size > most_bytes:
            return b""
        content = bytearray(os.fstat(descriptor).st_size)
        return bytes(content[: read_into(descriptor, memoryview(content), 0)]) if content else b""
    finally:
        os.close(descriptor)


def names_in(directory: Path) -> list[str]:
    """Return the names of the files in a directory."""
    return [path.name for path in directory.iterdir()]


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file and force it to the disk."""
    descriptor = open_new(path)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class WriterLock:
    """Keeps a second writer away from a table while the first one works; freed by the system if the process dies."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_NAME
        self._descriptor = -1

    def __enter__(self) -> Self:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._path, flags, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise ConcurrentWriteError(
                f"Another writer is at work on {self._path.parent}: wait until it has finished and try again."
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
