"""A version that is being written: one writer at a time, and nothing is left behind unless it is committed."""

from __future__ import annotations

import errno
import uuid
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from semistream.core.errors import CorruptTableError, InvalidSettingError, MasterNotFoundError, SemistreamError
from semistream.store.paged_file import layout, manifest
from semistream.store.paged_file.files import WriterLock, names_in, sync_directory
from semistream.store.paged_file.manifest import Manifest
from semistream.store.paged_file.page_index import PageIndex, write_index


class NewVersion:
    """Holds the writer's lock, names the files of the next version, and commits it or removes them."""

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        self.directory = directory
        self.token = uuid.uuid4().hex[:8]
        self.number = 1
        self._create = create
        self._lock = WriterLock(directory)

    def __enter__(self) -> Self:
        if self._create:
            _make_directory(self.directory)
        elif not self.directory.is_dir():
            raise MasterNotFoundError(
                f"There is no master table at {self.directory}: build one with MasterTable.build(data, path, key=...)."
            )
        self._lock.__enter__()
        try:
            remove_leftovers(self.directory)
            self.number = max(manifest.versions(self.directory), default=0) + 1
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                for name in names_in(self.directory):
                    if f"-{self.token}" in name:
                        (self.directory / name).unlink(missing_ok=True)
                if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise SemistreamError(
                        f"The disk of {self.directory} is full: free some space and try again; "
                        f"the table is as it was before."
                    ) from error
        finally:
            self._lock.__exit__(kind, error, trace)

    @property
    def data_path(self) -> Path:
        """Where the pages of this version go."""
        return self.directory / layout.data_name(self.number, self.token)

    def commit(self, described: Manifest, index: PageIndex) -> int:
        """Write the index and the manifest, and return the number of the version; its data must be on the disk."""
        path = self.directory / layout.index_name(self.number, self.token)
        complete = replace(
            described,
            version=self.number,
            index=write_index(path, index),
            row_count=int(index.row_counts.sum()),
            page_count=len(index),
        )
        manifest.commit(self.directory, complete)
        return self.number


def remove_leftovers(directory: Path) -> list[Path]:
    """Remove what writers that died have left; must be called with the writer's lock held."""
    names = set(names_in(directory))
    used: set[str] = set()
    for version in manifest.versions(directory):
        try:
            known = manifest.load(directory, version)
        except CorruptTableError:
            # It may need any of the files, and somebody may want to rescue it.
            names = {name for name in names if name.startswith(layout.TEMPORARY_PREFIX)}
            continue
        used.update([known.index.name, *(file.name for file in known.files)])
    removed = []
    for name in sorted(names - used):
        numbered = any(layout.version_of(name, kind) is not None for kind in ("data", "index"))
        if numbered or name.startswith(layout.TEMPORARY_PREFIX):
            (directory / name).unlink(missing_ok=True)
            removed.append(directory / name)
    return removed


def _make_directory(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise InvalidSettingError(f"{directory} is a file: give the path of a new or empty directory.")
    new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    if new:
        sync_directory(directory.parent)
        return
    names = names_in(directory)
    foreign = sorted(name for name in names if not layout.belongs_to_a_table(name))
    if foreign and not any(layout.version_of(name, "manifest") for name in names):
        raise InvalidSettingError(
            f"{directory} has other files such as {foreign[0]!r}: give the path of a new or empty directory."
        )
