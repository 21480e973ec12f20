"""What a manifest says of a version that is ordered by use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class OrderByUse:
    """How a version is ordered by use: in heat classes, the hottest first."""

    by: str
    """Where the heat of the rows was taken from, for people."""
    pages: tuple[int, ...] = ()
    """The pages of each class."""
    keys: int = 0
    """The keys in the map of hot keys, which stands in the index file."""
    map_bytes: int = 0
    same_rows_as: tuple[str, ...] = ()
    """The identities of versions that have the very same rows in another order."""

    @classmethod
    def of_fields(cls, fields: dict[str, Any] | None) -> Self | None:
        """Return what a manifest says; None if it says nothing."""
        if fields is None:
            return None
        return cls(
            by=str(fields["by"]),
            pages=tuple(int(count) for count in fields["pages"]),
            keys=int(fields["keys"]),
            map_bytes=int(fields["map_bytes"]),
            same_rows_as=tuple(str(identity) for identity in fields["same_rows_as"]),
        )
