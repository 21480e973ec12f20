"""Saved rows at the place of a table."""

from __future__ import annotations

from collections.abc import Callable

from semistream.core.errors import SemistreamError
from semistream.store.places.place import Place
from semistream.store.saved_rows import NewRows, SavedRows


class SavedInPlace(SavedRows):
    """Each object lies in a folder of the place; a place that refuses is left as it is."""

    def __init__(self, place: Place, folder: str) -> None:
        self._place = place
        self._folder = folder

    def names(self) -> list[str]:
        """Return the names in the folder."""
        try:
            return sorted(self._place.names(self._folder))
        except (OSError, SemistreamError):
            return []

    def read(self, name: str, max_bytes: int) -> bytes:
        """Return the content of an object."""
        try:
            return self._place.read(f"{self._folder}/{name}", max_bytes=max_bytes)
        except (OSError, SemistreamError):
            return b""

    def replace(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Replace an object."""
        self._place.replace_soon(f"{self._folder}/{name}", write)
