"""Names pages in errors, so that people find them in their files."""

from __future__ import annotations

from dataclasses import dataclass

from semistream.core.errors import CorruptTableError
from semistream.store.paged.versions.manifest import Manifest
from semistream.store.paged.versions.page_index import PageIndex, parted
from semistream.store.places.place import Place


@dataclass(frozen=True)
class PageNames:
    """The table, the file and the place of each page of a version."""

    place: Place
    manifest: Manifest
    index: PageIndex

    def file_path(self, number: int) -> str:
        """Return how people call a data file."""
        return self.place.shown(self.manifest.files[number].name)

    def fault(self, page: int, what: str) -> CorruptTableError:
        """Return the error that something is wrong with a page."""
        file, offset = parted(int(self.index.addresses[page]))
        return CorruptTableError(f"Page {page} in {self.file_path(file)} at byte {offset} is {what}.")
