"""The contract of a place: where the objects of a table are, and what may be relied on there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import BinaryIO, Protocol, Self, TypeAlias

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.core.errors import SemistreamError
from semistream.store.saved_rows import NewRows

NO_LIMIT = 1 << 62
MAX_SPAN_BYTES = 1 << 20
TEMPORARY_PREFIX = "tmp-"
"""What the names of objects begin with that no version ever names."""


@dataclass(frozen=True)
class Promises:
    """What a place can do beyond the contract."""

    locks_writers: bool
    """One writer works at a time and a second one is sent away; else they race, and who loses begins again."""
    lends_descriptors: bool
    """Objects are files of the operating system, so that compiled loops may read them."""
    lists_cheaply: bool
    """To list names costs no more than to read a small object."""


@dataclass(frozen=True)
class ObjectStatus:
    """How large an object is and when it was written, in seconds since 1970."""

    size_bytes: int
    modified: float
    tag: str = ""
    """What differs between contents that have had this name, where the place tells one."""


@dataclass
class Traffic:
    """What was read of a place over the network, and what a tier on the local disk has saved of that."""

    remote_requests: int = 0
    remote_bytes: int = 0
    tier_hits: int = 0
    """Stretches that were read from the tier."""
    tier_misses: int = 0
    """Stretches of which some block had to be fetched."""
    tier_blocks: int = 0
    """Blocks that were fetched into the tier."""
    tier_bytes: int = 0
    """What the tier takes on the disk now."""
    tier_failures: int = 0
    """How often the tier could not keep what was fetched, as on a full disk."""


TakeSpans: TypeAlias = Callable[[int, Sequence[UInt8Array]], None]
"""Takes stretches that have been brought: the number of the first one, and the content of it and those after it."""


class NewObject(ABC):
    """An object that is being written and has no name that a reader would find, or no content yet.

    Blocks go to a file of this machine, so that what was written can be read back before it is finished.
    """

    name: str
    descriptor: int
    """Of the file that has what was written so far; -1 once it is closed."""

    @abstractmethod
    def write(self, data: bytes | memoryview) -> None:
        """Append all of these bytes."""

    @abstractmethod
    def finish(self) -> None:
        """Make all that was written last, under its name, and close it."""

    @abstractmethod
    def close(self) -> None:
        """Free what it holds; what is not finished need not last."""

    @abstractmethod
    def discard(self) -> None:
        """Close it and leave nothing behind, as far as that is possible."""

    @abstractmethod
    def set_aside(self, label: str) -> NewObject:
        """Return what was written so far as a temporary object, which is never finished; this one must not be used."""


class Held(ABC):
    """Something that is held until it is released or forgotten."""

    @abstractmethod
    def release(self) -> None:
        """Let it go; may be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Lease(Held):
    """Keeps an object from being removed by whoever asks with `taken_alone` first."""

    @abstractmethod
    def content(self) -> bytes:
        """Return all bytes of the object."""

    @abstractmethod
    def still_there(self) -> bool:
        """Say whether the object is there and nobody has begun to remove it.

        What was put before this is asked is seen by everybody who begins to remove the object after it.
        """


class WriterTurn(Held):
    """The right to write the next version, where writers do not race; and the highest number that was given."""

    @abstractmethod
    def __enter__(self) -> Self:
        """Begin; raises ConcurrentWriteError if another writer is at work and writers do not race."""

    @abstractmethod
    def highest_number(self) -> int | None:
        """Return the highest number that a version was given; None if nobody has noted one that can be read."""

    @abstractmethod
    def note_number(self, number: int) -> None:
        """Remember that a version is being given this number; must come before the version exists."""

    @abstractmethod
    def note_commit(self, number: int) -> None:
        """Remember that the version of this number exists, so that it is found quickly."""


class Copies(Protocol):
    """A file of this machine that has copies of stretches of an object at their places; open as long as it is held."""

    @property
    def descriptor(self) -> int:
        """Of the file; what has no copy may be read as zeros."""


class Place(ABC):
    """Objects by name; a name may lie in a folder, as in "pins/query/7.json".

    Cheap to make; may be used from several threads. An object that is there is complete. Errors of the place itself are
    OSError or SemistreamError; that an object is missing is FileNotFoundError.
    """

    promises: Promises
    max_attempts = 1
    """How often a writer that lost a race begins again."""
    leftover_seconds = 0.0
    """What no version names may be removed at this age; 0 where a writer's turn shows that nobody needs it."""

    @abstractmethod
    def shown(self, name: str = "") -> str:
        """Return how people call an object, or the place itself."""

    @abstractmethod
    def make(self, belongs: Callable[[str], bool], is_table: Callable[[str], bool]) -> None:
        """Let a table begin here: the place is empty, or all names belong to tables, or there is a table already."""

    @abstractmethod
    def check_exists(self) -> None:
        """Raise MasterNotFoundError if there cannot be a table here."""

    @abstractmethod
    def names(self, folder: str = "", *, starting: str = "") -> list[str]:
        """Return the names in a folder that start with a text; none if there is no such folder inside the place.

        Raises MasterNotFoundError if the place itself does not exist.
        """

    @abstractmethod
    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, sorted."""

    @abstractmethod
    def newest(self, name_of: Callable[[int], str], number_in: Callable[[str], int | None]) -> int | None:
        """Return the highest number of the objects that are numbered so; None if there is none."""

    def lease_newest(
        self, name_of: Callable[[int], str], number_in: Callable[[str], int | None]
    ) -> tuple[int, Lease] | None:
        """Return `newest`, and hold that object; FileNotFoundError if it went meanwhile."""
        number = self.newest(name_of, number_in)
        return None if number is None else (number, self.lease(name_of(number)))

    @abstractmethod
    def status(self, name: str) -> ObjectStatus | None:
        """Return what is known of an object; None if there is none."""

    @abstractmethod
    def statuses(self, names: Iterable[str]) -> dict[str, ObjectStatus]:
        """Return what is known of those of these objects that are there; all are in the outermost folder."""

    @abstractmethod
    def read(self, name: str, *, max_bytes: int = NO_LIMIT) -> bytes:
        """Return an object; nothing if it has more than `max_bytes`."""

    @abstractmethod
    def stream(self, name: str) -> BinaryIO:
        """Return an object as a file that is read from its beginning."""

    @abstractmethod
    def put_new(self, name: str, content: bytes | memoryview, *, before: Callable[[], None] | None = None) -> bool:
        """Put a complete object for good if its name is free, and say whether it was; `before` comes just before."""

    def put_or_found(self, name: str, content: bytes | memoryview) -> bytes | None:
        """Put a complete object if its name is free; else return what is there, FileNotFoundError if that has gone.

        For names that several are likely to put at about the same time.
        """
        return None if self.put_new(name, content) else self.read(name)

    @abstractmethod
    def replace(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Put what is written in the place of an object, all of it or nothing; it may be gone after a power loss."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove an object; it does not matter if it is gone already."""

    @abstractmethod
    def remove_if_possible(self, name: str) -> None:
        """Remove an object that does no harm if it stays."""

    @abstractmethod
    def settle(self, folder: str = "") -> None:
        """Make sure that what was removed in a folder does not come back."""

    @abstractmethod
    def new_object(self, name: str) -> NewObject:
        """Return a large object to write; its name must be free."""

    @abstractmethod
    def scratch(self, label: str) -> NewObject:
        """Return a temporary object on this machine, which is never finished."""

    @abstractmethod
    def lease(self, name: str) -> Lease:
        """Hold an object together with others; FileNotFoundError if it is gone."""

    @abstractmethod
    def taken_alone(self, name: str) -> Held | None:
        """Begin to remove an object; None if somebody holds it."""

    def wait_for_holders(self) -> None:  # noqa: B027
        """Wait until those who found an object before it was taken alone have put what makes it count.

        Must be called between `taken_alone` and a look at what they put.
        """

    @abstractmethod
    def turn(self) -> WriterTurn:
        """Return the right to write, which must be entered."""

    def open_descriptor(self, name: str, *, direct: bool = False) -> int:
        """Return a descriptor of an object, where the place lends them; `direct` goes past the page cache."""
        raise NotImplementedError

    def read_ranges(self, name: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Read many stretches of an object, each (offset, length, position in `memory`), where it lends no descriptors.

        Must bring all bytes or raise. Takes at most `transit_bytes` of memory besides.
        """
        raise NotImplementedError

    def bring_spans(self, name: str, starts: Int64Array, ends: Int64Array, take: TakeSpans) -> None:
        """Bring stretches of an object side by side and hand them over, each in full, perhaps from several threads.

        Where it lends no descriptors. Takes at most `transit_bytes` of memory, if no stretch is longer than
        `MAX_SPAN_BYTES`.
        """
        raise NotImplementedError

    def expect(self, name: str, extents: Int64Array) -> None:  # noqa: B027
        """Be told which stretches will be read soon, each as in `read_ranges`; a place may bring them nearer."""

    @property
    def max_expected(self) -> int:
        """How many stretches may be expected at a time, so that none has gone again when it is read."""
        return NO_LIMIT

    def near(self, name: str, extents: Int64Array) -> BoolArray:  # noqa: ARG002
        """Say of which stretches there are whole copies on the local disk, where stretches were expected."""
        return np.zeros(len(extents), dtype=np.bool_)

    def copies(self, name: str) -> Copies | None:  # noqa: ARG002
        """Return the file that has copies of stretches of an object; whoever reads it must check what comes."""
        return None

    def read_past_copies(self, name: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Read as `read_ranges` does, but no copies, and keep none."""
        self.read_ranges(name, extents, memory)

    def replace_soon(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Replace an object that nobody depends on, perhaps after this has returned, perhaps not at all."""
        with suppress(OSError, SemistreamError):
            self.replace(name, write)

    def distrust(self, name: str, extents: Int64Array) -> bool:  # noqa: ARG002
        """Throw away copies of stretches that were found wrong; False if there are none, so that they stay wrong."""
        return False

    @property
    def gap_bytes(self) -> int:
        """How many bytes take as long to bring as one request more."""
        return 0

    @cached_property
    def traffic(self) -> Traffic:
        """What was read over the network so far."""
        return Traffic()

    transit_bytes = 0
    """The memory that `read_ranges` takes besides what it fills."""
