"""Saved rows in a folder of this machine."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from semistream.core import durable_files as files
from semistream.core.errors import CorruptTableError
from semistream.store.saved_rows import NewRows, SavedRows


class SavedInFolder(SavedRows):
    """Each object is a file; it is written beside its name and then renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str, max_bytes: int) -> bytes:
        """Return the content of a file that is not a symbolic link."""
        try:
            return files.read_file(self.folder / name, max_bytes=max_bytes)
        except (OSError, CorruptTableError):
            return b""

    def replace(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Write a file and rename it; a folder that cannot be written is left as it is."""
        complete = self.folder / f"tmp-{uuid.uuid4().hex}"
        try:
            files.make_directories(self.folder)
            try:
                with _NewFile(complete) as file:
                    write(file)
                files.rename(complete, self.folder / name)
            finally:
                files.remove_if_possible(complete)
        except OSError:
            return


class _NewFile(files.NewFile, NewRows):
    pass
