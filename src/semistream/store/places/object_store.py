"""A prefix in an object store: S3, Google Cloud Storage or Azure, through the package obstore.

There are no locks. Writers race by conditional puts: of those that put the same name one wins. Who removes an object
that others may hold says so first, by a mark in the folder `condemned`; whoever relies on the object puts what makes it
count, and then looks for such a mark: of two that come at once at least one sees the other.
"""

from __future__ import annotations

import errno
import math
import os
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, BinaryIO

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.errors import InvalidSettingError, SemistreamError, StoreUnavailableError
from semistream.core.side_by_side import side_by_side
from semistream.store.address import Address
from semistream.store.places.object_client import ObjectClient
from semistream.store.places.object_holds import HOLDERS_SECONDS, Mark, RacingTurn, ReadLease
from semistream.store.places.object_ranges import ObjectRanges
from semistream.store.places.place import (
    NO_LIMIT,
    Held,
    Lease,
    NewObject,
    ObjectStatus,
    Place,
    Promises,
    TakeSpans,
    WriterTurn,
)
from semistream.store.places.spooled_object import SpooledObject, SpooledRows
from semistream.store.saved_rows import NewRows

HINT_NAME, CONDEMNED = "newest", "condemned"
_PUT_ATTEMPTS = 4
_MAX_PROBES = 32
_HEADS_AT_ONCE = 2
_RACE_SECONDS = 0.005
_sending: set[str] = set()
_sending_lock = Lock()
_newest_seen: dict[str, int] = {}
"""By place the highest number that this process has found, where the next search begins."""


class ObjectStore(Place):
    """Objects below a prefix; an object is complete when it is there, and lasts."""

    promises = Promises(locks_writers=False, lends_descriptors=False, lists_cheaply=False)
    max_attempts = 1000
    leftover_seconds = 86_400.0
    transit_bytes = ObjectRanges.transit_bytes

    def __init__(self, address: Address) -> None:
        bucket, _, prefix = address.text.partition("://")[2].partition("/")
        if not bucket or "?" in address.text or "#" in address.text or "@" in bucket:
            raise InvalidSettingError(
                f"An address of {address.scheme}:// must be {address.scheme}://BUCKET/FOLDER: write it like that, and "
                f"give keys in the environment."
            )
        self._address = address
        self._prefix = prefix.strip("/")
        self._client = ObjectClient(address.scheme, bucket)
        self._ranges = ObjectRanges(self._client, str(address), self.traffic)
        self.removed_at = -math.inf
        """When this place has last removed an object, by the monotonic clock."""
        self._marked_at = -math.inf

    def shown(self, name: str = "") -> str:
        """Return the address."""
        return f"{self._address}/{name}" if name else str(self._address)

    def make(self, belongs: Callable[[str], bool], is_table: Callable[[str], bool]) -> None:
        """See that the prefix is empty or has a table."""
        objects, folders = self._listed("")
        names = [*objects, *folders]
        foreign = sorted(name for name in names if not belongs(name) and name not in (HINT_NAME, CONDEMNED))
        if foreign and not any(is_table(name) for name in names):
            raise InvalidSettingError(
                f"{self.shown()} has other objects such as {foreign[0]!r}: give the address of a new or empty folder."
            )

    def check_exists(self) -> None:
        """Do nothing: every prefix exists."""

    def names(self, folder: str = "", *, starting: str = "") -> list[str]:
        """Return the names of the objects in a folder."""
        return sorted(name for name in self._listed(folder)[0] if name.startswith(starting))

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder."""
        return sorted(self._listed(folder)[1])

    def newest(self, name_of: Callable[[int], str], number_in: Callable[[str], int | None]) -> int | None:
        """Begin with what this process or a hint knows, and try the next numbers; list only where that fails."""
        number = _newest_seen.get(self.shown()) or self._hinted()
        if number:
            begin = number
            here, after = side_by_side(lambda: self.status(name_of(begin)), lambda: self.status(name_of(begin + 1)))
            for _ in range(_MAX_PROBES if here is not None else 0):
                if after is None:
                    _newest_seen[self.shown()] = number
                    return number
                number += 1
                after = self.status(name_of(number + 1))
        listed = max((found for name in self.names() if (found := number_in(name)) is not None), default=None)
        if listed is None:
            _newest_seen.pop(self.shown(), None)
        else:
            _newest_seen[self.shown()] = listed
        return listed

    def lease_newest(
        self, name_of: Callable[[int], str], number_in: Callable[[str], int | None]
    ) -> tuple[int, Lease] | None:
        """Read the object that was the newest when this process looked last, and try the next number meanwhile."""
        number = _newest_seen.get(self.shown())
        if number is not None:
            began = time.monotonic()
            with suppress(FileNotFoundError):
                content, following = side_by_side(
                    lambda: self.read(name_of(number)), lambda: self.status(name_of(number + 1))
                )
                if following is None:
                    return number, ReadLease(self, name_of(number), content, began)
        return super().lease_newest(name_of, number_in)

    def status(self, name: str) -> ObjectStatus | None:
        """Ask for the head of an object."""
        return self._client.status(self._key(name), self.shown(name))

    def statuses(self, names: Iterable[str]) -> dict[str, ObjectStatus]:
        """Ask for one or two; list all where there are more."""
        wanted = list(names)
        if len(wanted) > _HEADS_AT_ONCE:
            listed = self._listed("")[0]
            return {name: listed[name] for name in wanted if name in listed}
        found: tuple[ObjectStatus | None, ...]
        if len(wanted) == _HEADS_AT_ONCE:
            first, second = wanted
            found = side_by_side(lambda: self.status(first), lambda: self.status(second))
        else:
            found = tuple(self.status(name) for name in wanted)
        return {name: status for name, status in zip(wanted, found, strict=True) if status is not None}

    def read(self, name: str, *, max_bytes: int = NO_LIMIT) -> bytes:
        """Get an object."""
        return self._client.get(self._key(name), self.shown(name), max_bytes)

    def stream(self, name: str) -> BinaryIO:
        """Bring an object to a temporary file of this machine."""
        return self._client.download(self._key(name), self.shown(name))

    def put_new(self, name: str, content: bytes | memoryview, *, before: Callable[[], None] | None = None) -> bool:
        """Put an object on the condition that there is none; what became of a lost answer is read back."""
        if before is not None:
            before()
        try:
            return self._put_or_found(name, content, lambda: (self._put(name, content), None)) in (None, content)
        except FileNotFoundError:
            return False

    def put_or_found(self, name: str, content: bytes | memoryview) -> bytes | None:
        """Put an object on the condition that there is none; else return what is there, which may be our own.

        It is our own if the answer to an attempt was lost, which the library may have repeated by itself. What others
        put at the same time is read while the answer is still on its way.
        """

        def read_soon() -> bytes | None:
            time.sleep(_RACE_SECONDS)
            try:
                return self.read(name)
            except (FileNotFoundError, SemistreamError):
                return None

        return self._put_or_found(name, content, lambda: side_by_side(lambda: self._put(name, content), read_soon))

    def _put(self, name: str, content: bytes | memoryview) -> bool:
        return self._client.put_if_absent(self._key(name), self.shown(name), content)

    def _put_or_found(
        self, name: str, content: bytes | memoryview, attempt_first: Callable[[], tuple[bool, bytes | None]]
    ) -> bytes | None:
        for attempt in range(_PUT_ATTEMPTS):
            try:
                was_put, found = (self._put(name, content), None) if attempt else attempt_first()
            except StoreUnavailableError:
                # The put may have been done, or may be done in a moment: only a further answer tells.
                if attempt == _PUT_ATTEMPTS - 1:
                    raise
                continue
            if was_put or found is not None:
                return None if was_put else found
            with suppress(FileNotFoundError):
                return self.read(name)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.shown(name))

    def replace(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Write to a temporary file of this machine, and put that."""
        with SpooledRows() as rows:
            write(rows)
            self._client.upload(self._key(name), self.shown(name), rows.spool.descriptor)

    def replace_soon(self, name: str, write: Callable[[NewRows], None]) -> None:
        """Write to a temporary file now, and put that in a thread; do nothing while the last one is on its way."""
        with _sending_lock:
            if self.shown(name) in _sending:
                return
            _sending.add(self.shown(name))

        def send() -> None:
            try:
                with rows, suppress(OSError, SemistreamError):
                    self._client.upload(self._key(name), self.shown(name), rows.spool.descriptor)
            finally:
                _sending.discard(self.shown(name))

        rows = SpooledRows()
        try:
            write(rows)
            Thread(target=send, name="semistream-save", daemon=True).start()
        except BaseException as error:
            rows.spool.close()
            _sending.discard(self.shown(name))
            if not isinstance(error, OSError | SemistreamError):
                raise

    def remove(self, name: str) -> None:
        """Delete an object."""
        self._client.delete(self._key(name), self.shown(name))
        self.removed_at = time.monotonic()

    def remove_if_possible(self, name: str) -> None:
        """Delete an object, or leave it."""
        with suppress(SemistreamError):
            self.remove(name)

    def settle(self, folder: str = "") -> None:
        """Do nothing: what was deleted stays so."""

    def new_object(self, name: str) -> NewObject:
        """Return an object that is sent when it is finished."""
        return SpooledObject(
            name, lambda descriptor: self._client.upload(self._key(name), self.shown(name), descriptor)
        )

    def scratch(self, label: str) -> NewObject:
        """Return a temporary file of this machine that has no name."""
        return SpooledObject(label, None)

    def lease(self, name: str) -> Lease:
        """Read the object; whoever removes it is found out later."""
        return ReadLease(self, name, self.read(name))

    def taken_alone(self, name: str) -> Held | None:
        """Say that the object will be removed."""
        mark = f"{CONDEMNED}/{name}/{uuid.uuid4().hex}"
        self.put_new(mark, b"-")
        self._marked_at = time.monotonic()
        return Mark(self, mark)

    def wait_for_holders(self) -> None:
        """Wait until what was put by those who had seen no mark can be seen; see `ReadLease.still_there`."""
        time.sleep(max(0.0, self._marked_at + HOLDERS_SECONDS - time.monotonic()))

    def is_condemned(self, name: str) -> bool:
        """Say whether somebody is about to remove an object; marks of those who died count for a day."""
        now = time.time()
        marks = self._listed(f"{CONDEMNED}/{name}")[0]
        return any(now - mark.modified < self.leftover_seconds for mark in marks.values())

    def turn(self) -> WriterTurn:
        """Return a right that everybody has."""
        return RacingTurn(self)

    def note_newest(self, number: int) -> None:
        """Leave a hint for those who look for the newest version; it may be lost, or too low."""
        _newest_seen[self.shown()] = number
        with suppress(SemistreamError):
            self._client.put(self._key(HINT_NAME), self.shown(HINT_NAME), b"%d" % number)

    def hinted_number(self) -> int:
        """Return the number of the hint; 0 if there is none."""
        return self._hinted()

    def read_ranges(self, name: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Get all stretches in few calls, near ones together, and copy them to their places."""
        self._ranges.read(self._key(name), self.shown(name), extents, memory)

    def bring_spans(self, name: str, starts: Int64Array, ends: Int64Array, take: TakeSpans) -> None:
        """Get stretches, some at a time."""
        self._ranges.bring(self._key(name), self.shown(name), starts, ends, take)

    @property
    def gap_bytes(self) -> int:
        """The recent cost of a request, in bytes that could have been transferred in the same time."""
        return self._ranges.gap_bytes

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _listed(self, folder: str) -> tuple[dict[str, ObjectStatus], list[str]]:
        key = self._key(folder) if folder else self._prefix
        return self._client.listed(key, self.shown(folder))

    def _hinted(self) -> int:
        try:
            text = self.read(HINT_NAME, max_bytes=32)
        except FileNotFoundError:
            return 0
        return int(text) if text.isdigit() else 0

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("places are not pickled: send the address")
