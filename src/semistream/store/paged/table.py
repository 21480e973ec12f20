"""A paged table in a folder: its versions, and the pins of queries."""

from __future__ import annotations

from pathlib import Path

from semistream.store.contract import MasterStore, StoredTable
from semistream.store.paged.format.layout import HOT_NAME
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions import manifest as manifests
from semistream.store.paged.versions import pins
from semistream.store.places.saved_in_folder import SavedInFolder
from semistream.store.saved_rows import SavedRows


class PagedTable(StoredTable):
    """The table in a folder; holds nothing but the path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def current_version(self) -> int:
        """Return the number of the newest version; costs one small read."""
        return manifests.current(self.path).version

    def open(self, version: int | None = None, *, direct: bool = False) -> MasterStore:
        """Return a store that shows one version and keeps it from being vacuumed."""
        return PagedFileStore(self.path, version=version, direct=direct)

    def identity(self, version: int) -> str:
        """Return the identity that stands in the manifest of a version."""
        return manifests.load(self.path, version).identity

    def pin(self, owner: str, batch: int, version: int | None = None) -> int:
        """Return the version that a batch of a query is pinned to; the first caller pins it."""
        return pins.pin(self.path, owner, batch, version)

    @property
    def saved_rows(self) -> SavedRows:
        """A folder inside that of the table, so that cached rows go where the table goes."""
        return SavedInFolder(self.path / HOT_NAME)
