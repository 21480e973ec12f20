"""A folder of this machine, or of a file system that several machines share."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from semistream.core import durable_files as files
from semistream.core.errors import InvalidSettingError, MasterNotFoundError
from semistream.store.places.local_locks import FileLease, FolderTurn, LockedFile, taken_alone
from semistream.store.places.place import (
    NO_LIMIT,
    TEMPORARY_PREFIX,
    Held,
    Lease,
    NewObject,
    ObjectStatus,
    Place,
    Promises,
    WriterTurn,
)
from semistream.store.saved_rows import NewRows

LOCK_NAME = "writer.lock"


class LocalFolder(Place):
    """Objects are files; a link gives a complete file its name, and `flock` keeps writers and vacuums apart."""

    promises = Promises(locks_writers=True, lends_descriptors=True, lists_cheaply=True)

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def shown(self, name: str = "") -> str:
        """Return the path."""
        return str(self.folder / name)

    def make(self, belongs: Callable[[str], bool], is_table: Callable[[str], bool]) -> None:
        """Make the folder, or see that it is empty or a table."""
        folder = self.folder
        if files.status_of(folder) is None:
            files.make_directories(folder)
            return
        if not files.is_directory(folder):
            raise InvalidSettingError(f"{folder} is a file: give the path of a new or empty directory.")
        names = files.names_in(folder)
        foreign = sorted(name for name in names if not belongs(name))
        if foreign and not any(is_table(name) for name in names):
            raise InvalidSettingError(
                f"{folder} has other files such as {foreign[0]!r}: give the path of a new or empty directory."
            )

    def check_exists(self) -> None:
        """Raise MasterNotFoundError unless there is a folder."""
        if not files.is_directory(self.folder):
            raise _no_table(self.folder)

    def names(self, folder: str = "", *, starting: str = "") -> list[str]:
        """Return the names of the files and folders in a folder."""
        try:
            names = files.names_in(self.folder / folder)
        except FileNotFoundError:
            if folder:
                return []
            raise _no_table(self.folder) from None
        except NotADirectoryError:
            if folder:
                return []
            raise MasterNotFoundError(
                f"{self.folder} is a file, but a master table is a directory: give the directory that was built."
            ) from None
        return [name for name in names if name.startswith(starting)] if starting else names

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder."""
        path = self.folder / folder
        names = sorted(files.names_in(path)) if files.is_directory(path) else []
        return [name for name in names if files.is_directory(path / name)]

    def newest(self, name_of: Callable[[int], str], number_in: Callable[[str], int | None]) -> int | None:  # noqa: ARG002
        """Look through all names."""
        return max((number for name in self.names() if (number := number_in(name)) is not None), default=None)

    def status(self, name: str) -> ObjectStatus | None:
        """Return what the file system knows of a file."""
        status = files.status_of(self.folder / name)
        return None if status is None else ObjectStatus(status.st_size, status.st_mtime)

    def statuses(self, names: Iterable[str]) -> dict[str, ObjectStatus]:
        """Ask for one file after the other."""
        known = ((name, self.status(name)) for name in names)
        return {name: status for name, status in known if status is not None}

    def read(self, name: str, *, max_bytes: int = NO_LIMIT) -> bytes:
        """Return the content of a regular file that is not a symbolic link."""
        return files.read_file(self.folder / name, max_bytes=max_bytes)

    def stream(self, name: str) -> BinaryIO:
        """Return an open file."""
        return os.fdopen(files.open_to_read(self.folder / name), "rb")

    def put_new(self, name: str, content: bytes | memoryview, *, before: Callable[[], None] | None = None) -> bool:
        """Write a file, force it to the disk and link it to its name."""
        path = self.folder / name
        folder = path.parent
        if folder == self.folder:
            temporary = folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{path.name}"
        else:
            temporary = folder / f".{uuid.uuid4().hex}"
        try:
            if folder != self.folder:
                files.make_directories(folder)
            files.write_durably(temporary, content)
            if before is not None:
                files.sync_directory(folder)
                before()
            files.link(temporary, path)
            files.sync_directory(folder)
        except FileExistsError:
            return False
        finally:
            files.remove_if_possible(temporary)
        return True

    def replace(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Write a file and rename it."""
        path = self.folder / name
        complete = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        files.make_directories(path.parent)
        try:
            with _NewFile(complete) as file:
                write(file)
            files.rename(complete, path)
        finally:
            files.remove_if_possible(complete)

    def remove(self, name: str) -> None:
        """Remove a file."""
        files.remove(self.folder / name)

    def remove_if_possible(self, name: str) -> None:
        """Remove a file, or leave it."""
        files.remove_if_possible(self.folder / name)

    def settle(self, folder: str = "") -> None:
        """Force the names in a folder to the disk."""
        files.sync_directory(self.folder / folder)

    def new_object(self, name: str) -> NewObject:
        """Return a new file under its name."""
        return WrittenFile(self.folder / name)

    def scratch(self, label: str) -> NewObject:
        """Return a new temporary file beside the others."""
        return WrittenFile(self.folder / f"{TEMPORARY_PREFIX}{label}")

    def lease(self, name: str) -> Lease:
        """Lock a file together with others."""
        return FileLease(self.folder / name)

    def taken_alone(self, name: str) -> Held | None:
        """Lock a file alone."""
        file = taken_alone(self.folder / name)
        return None if file is None else LockedFile(file)

    def turn(self) -> WriterTurn:
        """Return the lock of writers."""
        return FolderTurn(self.folder / LOCK_NAME)

    def open_descriptor(self, name: str, *, direct: bool = False) -> int:
        """Open a regular file."""
        return files.open_to_read(self.folder / name, direct=direct)


_BEGUN_BYTES = 8 << 20


class WrittenFile(NewObject):
    """A file that is written under its name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.descriptor = files.open_new(path)
        self._written = self._begun = 0

    def write(self, data: bytes | memoryview) -> None:
        """Write all bytes, and let the disk begin with them long before they are forced to it."""
        files.write_all(self.descriptor, data)
        self._written += len(data)
        if self._written - self._begun >= _BEGUN_BYTES:
            files.begin_sync(self.descriptor, self._begun, self._written - self._begun)
            self._begun = self._written

    def finish(self) -> None:
        """Force the file to the disk."""
        files.sync(self.descriptor)
        self.close()

    def close(self) -> None:
        """Close the file."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            files.close(descriptor)

    def discard(self) -> None:
        """Close and remove the file."""
        self.close()
        files.remove_if_possible(self.path)

    def set_aside(self, label: str) -> NewObject:
        """Give the file a temporary name."""
        path = self.path.with_name(f"{TEMPORARY_PREFIX}{label}")
        files.rename(self.path, path)
        self.path, self.name = path, path.name
        return self


class _NewFile(files.NewFile, NewRows):
    pass


def _no_table(folder: Path) -> MasterNotFoundError:
    return MasterNotFoundError(
        f"There is no master table at {folder}: build one with MasterTable.build(data, path, key=...)."
    )
