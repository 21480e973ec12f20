"""Small objects by name that workers leave beside a table for workers that start later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from io import RawIOBase


class NewRows(RawIOBase):
    """What the content of an object is written to before it takes its name."""

    def write_start(self, data: bytes) -> None:
        """Replace the first bytes."""
        raise NotImplementedError


class SavedRows(ABC):
    """Objects that are replaced as a whole; nobody depends on them, so that whatever goes wrong is no error."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all objects; none if they cannot be told."""

    @abstractmethod
    def read(self, name: str, max_bytes: int) -> bytes:
        """Return the content of an object; nothing if there is none, it cannot be read or has more than `max_bytes`."""

    @abstractmethod
    def replace(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Put what `write` writes in the place of an object, all of it or nothing, perhaps a moment later."""
