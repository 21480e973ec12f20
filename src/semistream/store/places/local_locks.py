"""Locks on the files of a table: one for all writers, and leases of versions for readers.

All of them are `flock`s, so the system frees them when a process dies, and they reach over machines where the file
system's locks do. A descriptor that a forked process has inherited keeps its lock until both have closed it. Locked
descriptors belong to file objects, which are closed by one call or with the object that holds them: an interrupt cannot
leave a lock behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import zlib
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Self

from semistream.core import durable_files as files
from semistream.core.errors import ConcurrentWriteError, SemistreamError
from semistream.core.file_system import system
from semistream.store.places.place import Held, Lease, WriterTurn

_HELD_BY_OTHERS = (errno.EWOULDBLOCK, errno.EACCES)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF)
_PAUSE_SECONDS = 0.01
_PATIENCE_SECONDS = 10.0


class FolderTurn(WriterTurn):
    """Keeps a second writer away from a table while the first one works.

    The file that is locked also remembers the highest number that a version was given, so that a number is not used
    twice even if the newest manifest was removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None

    def __enter__(self) -> Self:
        self._file = FileIO(system().open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW))
        try:
            system().lock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            _close(self._file)
            if isinstance(error, OSError) and error.errno in _HELD_BY_OTHERS:
                raise ConcurrentWriteError(
                    f"Another writer is writing to {self._path.parent}: wait until it has finished, then try again."
                ) from None
            raise
        return self

    def release(self) -> None:
        """Let the next writer begin."""
        _close(self._file)

    def __del__(self) -> None:
        # An interrupt may come between the locking and the block that would free the lock.
        _close(self._file)

    @property
    def _descriptor(self) -> int:
        assert self._file is not None
        return self._file.fileno()

    def highest_number(self) -> int | None:
        """Return the highest number that a version was given; None if nobody has noted one that can be read."""
        text, _, checksum = files.content_of(self._descriptor, max_bytes=64).strip().partition(b" ")
        is_noted = text.isdigit() and checksum == b"%08x" % zlib.crc32(text)
        return int(text) if is_noted else None

    def note_number(self, number: int) -> None:
        """Remember, for good, that a version was given this number; must come before the version exists."""
        # Always as long, so that a shorter line never leaves the end of a longer one behind it.
        text = b"%018d" % number
        files.write_all_at(self._descriptor, b"%b %08x\n" % (text, zlib.crc32(text)), 0)
        files.sync(self._descriptor)

    def note_commit(self, number: int) -> None:
        """Do nothing: the names in the folder tell which version is the newest."""


class FileLease(Lease):
    """Keeps a version from being vacuumed while somebody reads it: a shared lock on its manifest.

    A vacuum locks a manifest for itself before it removes it. Whoever gets the lease after that finds that the manifest
    has lost its name, and raises FileNotFoundError as if it had come later. On a file system without locks a lease does
    nothing, and only the time for which a vacuum keeps old versions protects readers.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._file = FileIO(files.open_to_read(path))
        try:
            _lock_shared(self._file.fileno(), path)
            named = system().status(path)
            held = system().status(self._file.fileno())
            if (named.st_ino, named.st_dev) != (held.st_ino, held.st_dev):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        except BaseException:
            self.release()
            raise

    def content(self) -> bytes:
        """Return the bytes of the manifest."""
        assert self._file is not None
        return files.content_of(self._file.fileno())

    def still_there(self) -> bool:
        """Say whether the manifest has its name; a vacuum that honours locks cannot have begun to remove it."""
        return files.status_of(self._path) is not None

    def release(self) -> None:
        """Let the version go."""
        _close(self._file)

    def __del__(self) -> None:
        self.release()


class LockedFile(Held):
    """A file with a lock that nobody shares."""

    def __init__(self, file: FileIO) -> None:
        self._file = file

    def release(self) -> None:
        """Unlock and close the file."""
        self._file.close()


def taken_alone(path: Path) -> FileIO | None:
    """Return a manifest with a lock that nobody shares, until it is closed; None if somebody has a lease on it."""
    try:
        # Some network file systems lock for one alone only what is open for writing.
        file = FileIO(system().open(path, os.O_RDWR | os.O_NOFOLLOW))
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        file = FileIO(files.open_to_read(path))
    try:
        system().lock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD_BY_OTHERS:
            _close(file)
            return None
        if error.errno not in _NO_LOCKS:
            _close(file)
            raise
    return file


def _close(file: FileIO | None) -> None:
    if file is not None:
        # Whatever closing says, the lock is free; what the file holds was synced when it was written.
        with suppress(OSError):
            file.close()


def _lock_shared(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            system().lock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return
            if error.errno not in _HELD_BY_OTHERS:
                raise
        if time.monotonic() > deadline:
            raise SemistreamError(f"A vacuum holds {path} and makes no progress: stop it or let it finish.")
        time.sleep(_PAUSE_SECONDS)
