"""A version that is being written: one writer at a time, and nothing is left behind unless it is committed."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from semistream.core import durable_files as files
from semistream.core.errors import CorruptTableError, InvalidSettingError, MasterNotFoundError, SemistreamError
from semistream.store.paged.format import layout
from semistream.store.paged.versions import manifest
from semistream.store.paged.versions.locks import WriterLock
from semistream.store.paged.versions.manifest import Manifest, TableFile
from semistream.store.paged.versions.page_index import PageIndex, write_index


class NewVersion:
    """Holds the writer's lock, names the files of the next version, and commits it or removes them.

    Whether it was committed is asked of the disk and not remembered: an interrupt may come between the link that makes
    the version exist and the line that would remember it.
    """

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        self.directory = directory
        self.token = uuid.uuid4().hex[:8]
        self.number = 1
        self._create = create
        self._lock = WriterLock(directory)

    def __enter__(self) -> Self:
        if self._create:
            _make_directory(self.directory)
        elif not files.is_directory(self.directory):
            raise MasterNotFoundError(
                f"There is no master table at {self.directory}: build one with MasterTable.build(data, path, key=...)."
            )
        self._lock.__enter__()
        try:
            self.number = self._next_number()
            remove_leftovers(self.directory)
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self._clean_up(error)
        finally:
            self._lock.__exit__(kind, error, trace)

    @property
    def data_path(self) -> Path:
        """Where the pages of this version go."""
        return self.directory / layout.data_name(self.number, self.token)

    def commit(self, described: Manifest, index: PageIndex) -> int:
        """Write the index and the manifest, and return the number of the version; its data must be on the disk."""
        complete = replace(
            described,
            version=self.number,
            index=write_index(self._index_path, index),
            row_count=int(index.row_counts.sum()),
            page_count=len(index),
        )
        # Where locks do not reach, another writer may have taken our files for those of one that died.
        check_sizes(self.directory, (complete.index, *complete.files))
        manifest.commit(self.directory, complete, self._lock)
        return self.number

    @property
    def _index_path(self) -> Path:
        return self.directory / layout.index_name(self.number, self.token)

    def _next_number(self) -> int:
        names = files.names_in(self.directory)
        used = max((layout.version_of(name, "manifest") or 0 for name in names), default=0)
        noted = self._lock.highest_number()
        if noted is None:
            # A table of an earlier semistream: a file may be all that is left of a version.
            noted = max((layout.version_of(name, kind) or 0 for name in names for kind in ("data", "index")), default=0)
        return max(used, noted) + 1

    def _clean_up(self, error: BaseException | None) -> None:
        """Remove the files of a version that does not exist; of one that does, only say what went wrong."""
        if self._is_committed():
            if isinstance(error, OSError):
                raise SemistreamError(
                    f"Version {self.number} of {self.directory} was committed, but the system does not confirm that it "
                    f"is on the disk ({error.strerror}): check the disk; the version may be gone after a power failure."
                ) from error
            return
        # What cannot be removed is a leftover for the next writer.
        with suppress(OSError):
            for name in files.names_in(self.directory):
                if f"-{self.token}" in name:
                    files.remove_if_possible(self.directory / name)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise SemistreamError(
                f"The disk of {self.directory} is full: free some space and try again; the table is as it was before."
            ) from error

    def _is_committed(self) -> bool:
        """Say whether the manifest of our number is ours; if nobody can tell it counts as ours."""
        try:
            return manifest.load(self.directory, self.number).index.name == self._index_path.name
        except MasterNotFoundError:
            return False
        except (CorruptTableError, OSError):
            return True


def remove_leftovers(directory: Path) -> list[Path]:
    """Remove what writers that died have left; must be called with the writer's lock held.

    A version names only files of its own number or of lower ones. Therefore only files above the newest manifest are
    taken for leftovers, and those of its own number that it does not name: tasks that were repeated leave such. Older
    ones are left to a vacuum, which looks at all manifests.
    """
    names = files.names_in(directory)
    newest = max((layout.version_of(name, "manifest") or 0 for name in names), default=0)
    leftovers = [name for name in names if name.startswith(layout.TEMPORARY_PREFIX)]
    numbers = {name: number for name in names if (number := layout.number_of(name))}
    leftovers += [name for name, number in numbers.items() if number > newest]
    of_newest = {name for name, number in numbers.items() if number == newest}
    if len(of_newest) > 2:
        # A damaged one may need any of the files, and somebody may want to rescue it.
        with suppress(CorruptTableError):
            leftovers += of_newest - names_of(manifest.load(directory, newest))
    for name in sorted(leftovers):
        files.remove(directory / name)
    return [directory / name for name in sorted(leftovers)]


def names_of(described: Manifest) -> set[str]:
    """Return the names of all files that a version needs."""
    return {described.index.name, *(file.name for file in described.files)}


def check_sizes(directory: Path, needed: Iterable[TableFile]) -> None:
    """Raise CorruptTableError unless all these files are there in their full size."""
    for file in needed:
        path = directory / file.name
        status = files.status_of(path)
        if status is None:
            raise CorruptTableError(f"{path} is missing: restore it or build the table again.")
        if status.st_size != file.size_bytes:
            raise CorruptTableError(
                f"{path} is truncated or damaged: expected {file.size_bytes} bytes, found {status.st_size}."
            )


def _make_directory(directory: Path) -> None:
    if files.status_of(directory) is None:
        files.make_directories(directory)
        return
    if not files.is_directory(directory):
        raise InvalidSettingError(f"{directory} is a file: give the path of a new or empty directory.")
    names = files.names_in(directory)
    foreign = sorted(name for name in names if not layout.belongs_to_a_table(name))
    if foreign and not any(layout.version_of(name, "manifest") for name in names):
        raise InvalidSettingError(
            f"{directory} has other files such as {foreign[0]!r}: give the path of a new or empty directory."
        )
