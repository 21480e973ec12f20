"""The rows that a task with a room joins: those of the stream, those that waited, and parked ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray
from semistream.joining.session import HAS_WAITED
from semistream.spark.room.kept_rows import KeptRows
from semistream.spark.room.pinned_rows import PinnedRows
from semistream.spark.room.room import RoomError
from semistream.spark.room.room_file import SINCE, TRIES, Kind
from semistream.spark.room.source import Ticket
from semistream.spark.room.visit import RoomNumbers, Visit
from semistream.store.contract import MasterStore


class ArrivingRows:
    """Takes tickets and rows apart, and brings the rows that tickets name.

    Where an earlier attempt has pinned which rows stay, those are left out. Parked rows that cannot have a match are
    parked again at once.
    """

    def __init__(
        self,
        visit: Visit,
        kept: KeptRows,
        numbers: RoomNumbers,
        pinned: PinnedRows | None,
        open_store: Callable[[], MasterStore],
        keys: Iterable[str],
    ) -> None:
        """`open_store` returns the version of the master table that is joined with."""
        self._visit = visit
        self._kept = kept
        self._numbers = numbers
        self._pinned = pinned
        self._open_store = open_store
        self._keys_at = [visit.schema.get_field_index(name) for name in keys]
        self.tickets: list[Ticket] = []
        self.stream_rows = 0
        """How many rows of the stream have come so far."""

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows to join: those that waited as soon as their ticket is there, and the stream's as they come."""
        seen = 0
        for batch in batches:
            rows = self._stream_part(batch)
            for ticket in self.tickets[seen:]:
                yield from self._returned(ticket)
            seen = len(self.tickets)
            if rows is not None:
                yield from self._not_pinned(rows)
        for ticket in self.tickets:
            yield from self._released(ticket)

    def _stream_part(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return the stream rows of a batch, and take note of its tickets."""
        if not batch.num_rows:
            return None
        visit, width = self._visit, self._visit.width
        if slot_of(batch, width) != visit.slot:
            raise several_slots(visit.room.shown())
        tickets = batch.column(width + 1)
        if tickets.null_count < len(tickets):
            self.tickets += [Ticket.parsed(text) for text in tickets.drop_null().to_pylist()]
            batch = batch.filter(tickets.is_null())
        if not batch.num_rows:
            return None
        self.stream_rows += batch.num_rows
        count, moment = batch.num_rows, pa.scalar(int(time.time() * 1e6), pa.int64()).cast(SINCE.type)
        columns = [*batch.columns[:width], pa.repeat(moment, count), pa.repeat(pa.scalar(0, TRIES.type), count)]
        return pa.RecordBatch.from_arrays(columns, schema=visit.schema)

    def _not_pinned(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        leaving = rows if self._pinned is None else self._pinned.without(rows)
        if leaving.num_rows:
            yield leaving

    def _returned(self, ticket: Ticket) -> Iterator[pa.RecordBatch]:
        if ticket.waiting < 0:
            return
        for rows in self._of_file(ticket.waiting, Kind.WAITING):
            self._numbers.returned += rows.num_rows
            yield from self._not_pinned(rows)

    def _of_file(self, batch: int, kind: Kind) -> Iterator[pa.RecordBatch]:
        """Yield rows of an earlier file as rows of the stream come now: the zone of the session may have changed."""
        for rows in self._visit.room.rows(batch, self._visit.slot, kind):
            yield rows.cast(self._visit.schema).replace_schema_metadata(HAS_WAITED)

    def _released(self, ticket: Ticket) -> Iterator[pa.RecordBatch]:
        """Yield the parked rows that may have a match now; the others stay parked, or are dead."""
        if ticket.parked and self._pinned is None:
            self._kept.is_base = True
        for number in ticket.parked:
            if self._pinned is not None:
                for rows in self._of_file(number, Kind.PARKED):
                    yield from self._not_pinned(rows)
                continue
            unchanged = self._unchanged_since(number)
            for rows in self._of_file(number, Kind.PARKED):
                same = unchanged(rows)
                self._kept.park(rows.filter(pa.array(same)))
                if not same.all():
                    yield rows.filter(pa.array(~same))

    def _unchanged_since(self, batch: int) -> Callable[[pa.RecordBatch], BoolArray]:
        """Return what says of parked rows of a file for which of them the table is known to have no match still."""
        head = self._visit.room.head(batch, self._visit.slot)
        if head is None:
            return lambda rows: np.zeros(rows.num_rows, dtype=np.bool_)
        store = self._open_store()
        unchanged = store.unchanged_since(head.version, head.identity)
        return lambda rows: unchanged(store.codec.encode([rows.column(index) for index in self._keys_at]).codes)


def slot_of(batch: pa.RecordBatch, width: int) -> int:
    """Return the slot of all rows of a batch from Spark; -1 if they are of several."""
    slots = batch.column(width).to_numpy(zero_copy_only=False)
    return int(slots[0]) if (slots == slots[0]).all() else -1


def several_slots(shown: str) -> RoomError:
    """Return the error that a task got rows which do not belong together."""
    return RoomError(
        f"A task got rows of several slots of the room {shown}: this Spark shuffles in a way that is not expected, so "
        f"leave `room` out and report it."
    )
