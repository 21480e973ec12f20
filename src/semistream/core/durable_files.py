"""What is done with files that must outlive a crash, in terms of the few calls of `file_system.py`."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import RawIOBase
from pathlib import Path
from typing import Any

from semistream.core.errors import CorruptTableError, SemistreamError
from semistream.core.file_system import system


def open_to_read(path: Path, *, direct: bool = False) -> int:
    """Return a descriptor of a regular file; a symbolic link in its place is refused."""
    # O_NONBLOCK keeps a planted FIFO from hanging the open; it does nothing to regular files.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    if direct:
        flags |= os.O_DIRECT
    try:
        descriptor = system().open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CorruptTableError(f"{path} is a symbolic link: a master table must hold its files itself.") from None
        if direct and error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            raise SemistreamError(
                f"The file system of {path} refuses direct reads: open the table without `direct`."
            ) from None
        raise
    if not stat.S_ISREG(system().status(descriptor).st_mode):
        system().close(descriptor)
        raise CorruptTableError(f"{path} is not a regular file: restore it or build the table again.")
    return descriptor


def open_new(path: Path) -> int:
    """Return a descriptor to read and write a file that did not exist before."""
    return system().open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)


def close(descriptor: int) -> None:
    """Close a descriptor."""
    system().close(descriptor)


def write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    """Write every byte of `data` at the descriptor's position."""
    view = memoryview(data).cast("B")
    while len(view):
        view = view[system().write(descriptor, view) :]


def write_all_at(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    """Write every byte of `data` from an offset on."""
    view = memoryview(data)
    while len(view):
        done = system().write_at(descriptor, view, offset)
        view, offset = view[done:], offset + done


def read_into(descriptor: int, view: memoryview, offset: int) -> int:
    """Fill `view` from `offset` on, as far as the file goes, and return the bytes read."""
    done = system().read_into(descriptor, view, offset)
    while 0 < done < len(view):
        more = system().read_into(descriptor, view[done:], offset + done)
        if not more:
            break
        done += more
    return done


def content_of(descriptor: int, *, max_bytes: int = 1 << 62) -> bytes:
    """Return all bytes of an open file; nothing if it has more than `max_bytes`."""
    size_bytes = system().status(descriptor).st_size
    if not 0 < size_bytes <= max_bytes:
        return b""
    content = bytearray(size_bytes)
    return bytes(content[: read_into(descriptor, memoryview(content), 0)])


def read_file(path: Path, *, max_bytes: int = 1 << 62) -> bytes:
    """Return the content of a regular file that is not a symbolic link; nothing if it has more than `max_bytes`."""
    descriptor = open_to_read(path)
    try:
        return content_of(descriptor, max_bytes=max_bytes)
    finally:
        system().close(descriptor)


def names_in(directory: Path) -> list[str]:
    """Return the names of the files in a directory."""
    return system().names(directory)


def status_of(place: Path | int) -> os.stat_result | None:
    """Return what is known of a path or descriptor; None if there is no such path."""
    try:
        return system().status(place)
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_directory(path: Path) -> bool:
    """Say whether a path leads to a directory, perhaps by a symbolic link."""
    status = status_of(path)
    if status is not None and stat.S_ISLNK(status.st_mode):
        return path.is_dir()
    return status is not None and stat.S_ISDIR(status.st_mode)


def sync(descriptor: int) -> None:
    """Force a file to the disk."""
    system().sync(descriptor)


def begin_sync(descriptor: int, offset: int, count: int) -> None:
    """Let the disk begin to write a part of a file, so that a later `sync` takes less long."""
    system().begin_sync(descriptor, offset, count)


def write_durably(path: Path, data: bytes | memoryview) -> None:
    """Write a new file and force it to the disk."""
    descriptor = open_new(path)
    try:
        write_all(descriptor, data)
        system().sync(descriptor)
    finally:
        system().close(descriptor)


class NewFile(RawIOBase):
    """A new file that libraries may write to."""

    def __init__(self, path: Path) -> None:
        self._descriptor = open_new(path)

    def writable(self) -> bool:
        """Say that it can be written."""
        return True

    def write(self, data: Any) -> int:
        """Write all bytes."""
        view = memoryview(data).cast("B")
        write_all(self._descriptor, view)
        return len(view)

    def write_start(self, data: bytes) -> None:
        """Replace the first bytes."""
        write_all_at(self._descriptor, data, 0)

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            system().close(descriptor)
        super().close()


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk."""
    descriptor = system().open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        system().sync(descriptor)
    finally:
        system().close(descriptor)


def make_directories(path: Path) -> None:
    """Make a directory, and those above it that are missing, so that they are there for good."""
    if is_directory(path):
        return
    make_directories(path.parent)
    with suppress(FileExistsError):
        system().make_directory(path)
    sync_directory(path.parent)


def link(existing: Path, new: Path) -> None:
    """Give a file a second name; FileExistsError if there is one."""
    system().link(existing, new)


def rename(old: Path, new: Path) -> None:
    """Give a file another name, in place of a file that may have it."""
    system().rename(old, new)


def remove(path: Path) -> None:
    """Remove a file; it does not matter if it is gone already."""
    with suppress(FileNotFoundError):
        system().unlink(path)


def remove_if_possible(path: Path) -> None:
    """Remove a file that does no harm if it stays, as a leftover that the next writer or vacuum removes."""
    with suppress(OSError):
        system().unlink(path)
