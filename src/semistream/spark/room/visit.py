"""What is known about one slot of a room in one micro-batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from semistream.spark.room.room import Room, RoomTerms
from semistream.store.address import LOCAL, Address


@dataclass(frozen=True)
class RoomUse:
    """How a query uses its room."""

    address: Address
    slots: int
    max_wait_seconds: float
    retry_seconds: float
    parks: bool = False
    terms: RoomTerms | None = None
    """What the room is made for, if the query has yet to make it."""

    @property
    def dead_letters(self) -> Path | None:
        """Where parked rows go in the end unless users name a folder; only a room in a folder has a place for them."""
        return self.address.path / "dead_letters" if self.address.scheme == LOCAL and self.parks else None


@dataclass
class RoomNumbers:
    """What a task says about its slot of the room."""

    returned: int = 0
    waiting: int = 0
    parked: int = 0
    released: int = 0
    dead: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True)
class Visit:
    """A slot of a room in a micro-batch: whose it is, when it is, and what its rows are joined with."""

    room: Room
    use: RoomUse
    query: str
    batch: int
    slot: int
    now_seconds: float
    version: int
    identity: str
    schema: pa.Schema
    """The columns of the stream, when a row first came, and how often it was looked for in vain."""

    @property
    def width(self) -> int:
        """How many columns the stream has."""
        return len(self.schema) - 2
