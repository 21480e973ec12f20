"""A paged table at a place: its versions, and the pins of queries."""

from __future__ import annotations

from semistream.store.contract import MasterStore, StoredTable
from semistream.store.paged.format.layout import HOT_NAME
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions import manifest as manifests
from semistream.store.paged.versions import pins
from semistream.store.paged.versions.manifest import Manifest
from semistream.store.places.place import Place
from semistream.store.places.saved_in_place import SavedInPlace
from semistream.store.saved_rows import SavedRows


class PagedTable(StoredTable):
    """The table at a place; holds nothing but that, and what it has last pinned."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._pinned: Manifest | None = None

    def current_version(self) -> int:
        """Return the number of the newest version; costs one small read."""
        return manifests.current(self.place).version

    def open(self, version: int | None = None, *, direct: bool = False) -> MasterStore:
        """Return a store that shows one version and keeps it from being vacuumed."""
        pinned = self._pinned
        known = pinned if pinned is not None and pinned.version == version and self.pins_take_long else None
        return PagedFileStore(self.place, version=version, direct=direct, known=known)

    def identity(self, version: int) -> str:
        """Return the identity that stands in the manifest of a version."""
        pinned = self._pinned
        known = pinned if pinned is not None and pinned.version == version else manifests.load(self.place, version)
        return known.identity

    def pin(self, owner: str, batch: int, version: int | None = None) -> int:
        """Return the version that a batch of a query is pinned to; the first caller pins it."""
        pinned, self._pinned = pins.pinned(self.place, owner, batch, version)
        return pinned

    @property
    def pins_take_long(self) -> bool:
        """Whether the place is far away."""
        return not self.place.promises.lists_cheaply

    @property
    def saved_rows(self) -> SavedRows:
        """A folder inside that of the table, so that cached rows go where the table goes."""
        return SavedInPlace(self.place, HOT_NAME)
