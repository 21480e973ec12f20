"""What is held of an object store, which has no locks: objects that were read, marks of those that go, turns."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from semistream.core.side_by_side import side_by_side
from semistream.store.places.place import Held, Lease, WriterTurn

if TYPE_CHECKING:
    from semistream.store.places.object_store import ObjectStore

_TOGETHER_SECONDS, _MARK_STAYS_SECONDS = 0.25, 1.0
"""Two answers that came within so short a time count as one moment, because a mark stays longer than its object."""
NEWEST_SECONDS, HOLDERS_SECONDS = 0.5, 1.0
"""What was put within so short a time after an object was seen to be the newest counts without another look, because
nobody removes the newest, and whoever marks an object waits for longer before he looks at what was put."""


class ReadLease(Lease):
    def __init__(self, place: ObjectStore, name: str, content: bytes, newest_at: float = -math.inf) -> None:
        self._place = place
        self._name = name
        self._content = content
        self._newest_at = newest_at

    def content(self) -> bytes:
        return self._content

    def still_there(self) -> bool:
        began = time.monotonic()
        if began - self._newest_at <= NEWEST_SECONDS:
            # A mark is younger than the object's successor, and that is younger than this; so who made the mark is
            # still waiting.
            return True
        is_condemned, status = side_by_side(
            lambda: self._place.is_condemned(self._name), lambda: self._place.status(self._name)
        )
        if is_condemned or status is None:
            return False
        # An object that was there when it was asked for, before its mark was looked for, may have gone together with
        # its mark in between, but not within a moment. Otherwise it is asked for again, now that there is no mark.
        return time.monotonic() - began <= _TOGETHER_SECONDS or self._place.status(self._name) is not None

    def release(self) -> None:
        pass


class Mark(Held):
    def __init__(self, place: ObjectStore, mark: str) -> None:
        self._place = place
        self._mark: str | None = mark

    def release(self) -> None:
        if self._mark is not None:
            # What was removed under its protection must have been gone for a while: see `ReadLease.still_there`.
            time.sleep(max(0.0, self._place.removed_at + _MARK_STAYS_SECONDS - time.monotonic()))
            mark, self._mark = self._mark, None
            removed_at = self._place.removed_at
            self._place.remove_if_possible(mark)
            self._place.removed_at = removed_at  # marks protect nobody


class RacingTurn(WriterTurn):
    def __init__(self, place: ObjectStore) -> None:
        self._place = place

    def __enter__(self) -> RacingTurn:
        return self

    def highest_number(self) -> int | None:
        return self._place.hinted_number()

    def note_number(self, number: int) -> None:
        pass

    def note_commit(self, number: int) -> None:
        self._place.note_newest(number)

    def release(self) -> None:
        pass
