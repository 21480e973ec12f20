"""A place that shows another place; the base of those that add something to some calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.store.places.place import (
    NO_LIMIT,
    Copies,
    Held,
    Lease,
    NewObject,
    ObjectStatus,
    Place,
    TakeSpans,
    WriterTurn,
)
from semistream.store.saved_rows import NewRows


class WrappingPlace(Place):
    """Passes everything on to the place inside."""

    def __init__(self, inside: Place) -> None:
        self.inside = inside
        self.promises = inside.promises
        self.max_attempts = inside.max_attempts
        self.leftover_seconds = inside.leftover_seconds
        self.transit_bytes = inside.transit_bytes
        self.traffic = inside.traffic

    def shown(self, name: str = "") -> str:
        """Return what the place inside is called."""
        return self.inside.shown(name)

    def make(self, belongs: Callable[[str], bool], is_table: Callable[[str], bool]) -> None:
        """Let a table begin inside."""
        self.inside.make(belongs, is_table)

    def check_exists(self) -> None:
        """See that the place inside exists."""
        self.inside.check_exists()

    def names(self, folder: str = "", *, starting: str = "") -> list[str]:
        """Return the names inside."""
        return self.inside.names(folder, starting=starting)

    def folders(self, folder: str) -> list[str]:
        """Return the folders inside."""
        return self.inside.folders(folder)

    def newest(self, name_of: Callable[[int], str], number_in: Callable[[str], int | None]) -> int | None:
        """Return the highest number inside."""
        return self.inside.newest(name_of, number_in)

    def lease_newest(
        self, name_of: Callable[[int], str], number_in: Callable[[str], int | None]
    ) -> tuple[int, Lease] | None:
        """Hold the newest object inside."""
        return self.inside.lease_newest(name_of, number_in)

    def status(self, name: str) -> ObjectStatus | None:
        """Return what is known of an object inside."""
        return self.inside.status(name)

    def statuses(self, names: Iterable[str]) -> dict[str, ObjectStatus]:
        """Return what is known of objects inside."""
        return self.inside.statuses(names)

    def read(self, name: str, *, max_bytes: int = NO_LIMIT) -> bytes:
        """Read an object inside."""
        return self.inside.read(name, max_bytes=max_bytes)

    def stream(self, name: str) -> BinaryIO:
        """Read an object inside from its beginning."""
        return self.inside.stream(name)

    def put_new(self, name: str, content: bytes | memoryview, *, before: Callable[[], None] | None = None) -> bool:
        """Put an object inside if its name is free."""
        return self.inside.put_new(name, content, before=before)

    def put_or_found(self, name: str, content: bytes | memoryview) -> bytes | None:
        """Put an object inside, or return what is there."""
        return self.inside.put_or_found(name, content)

    def replace(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Replace an object inside."""
        self.inside.replace(name, write)

    def remove(self, name: str) -> None:
        """Remove an object inside."""
        self.inside.remove(name)

    def remove_if_possible(self, name: str) -> None:
        """Remove an object inside, or leave it."""
        self.inside.remove_if_possible(name)

    def settle(self, folder: str = "") -> None:
        """Make removals inside last."""
        self.inside.settle(folder)

    def new_object(self, name: str) -> NewObject:
        """Return a large object to write inside."""
        return self.inside.new_object(name)

    def scratch(self, label: str) -> NewObject:
        """Return a temporary object."""
        return self.inside.scratch(label)

    def lease(self, name: str) -> Lease:
        """Hold an object inside."""
        return self.inside.lease(name)

    def taken_alone(self, name: str) -> Held | None:
        """Begin to remove an object inside."""
        return self.inside.taken_alone(name)

    def wait_for_holders(self) -> None:
        """Wait inside."""
        self.inside.wait_for_holders()

    def turn(self) -> WriterTurn:
        """Return the right to write inside."""
        return self.inside.turn()

    def open_descriptor(self, name: str, *, direct: bool = False) -> int:
        """Return a descriptor of an object inside."""
        return self.inside.open_descriptor(name, direct=direct)

    def read_ranges(self, name: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Read stretches of an object inside."""
        self.inside.read_ranges(name, extents, memory)

    def bring_spans(self, name: str, starts: Int64Array, ends: Int64Array, take: TakeSpans) -> None:
        """Bring whole stretches of an object inside."""
        self.inside.bring_spans(name, starts, ends, take)

    @property
    def gap_bytes(self) -> int:
        """What a request costs inside."""
        return self.inside.gap_bytes

    def expect(self, name: str, extents: Int64Array) -> None:
        """Tell the place inside what will be read."""
        self.inside.expect(name, extents)

    @property
    def max_expected(self) -> int:
        """How many stretches the place inside can bring nearer."""
        return self.inside.max_expected

    def near(self, name: str, extents: Int64Array) -> BoolArray:
        """Ask inside for copies."""
        return self.inside.near(name, extents)

    def copies(self, name: str) -> Copies | None:
        """Return what has copies inside."""
        return self.inside.copies(name)

    def read_past_copies(self, name: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Read inside."""
        self.inside.read_past_copies(name, extents, memory)

    def replace_soon(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Replace an object inside."""
        self.inside.replace_soon(name, write)

    def distrust(self, name: str, extents: Int64Array) -> bool:
        """Let the place inside throw copies away."""
        return self.inside.distrust(name, extents)
