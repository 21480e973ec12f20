"""The streaming source of a room: a ticket for each slot whose rows are to be looked at again.

Its offset names the newest micro-batch that left rows waiting, so that a micro-batch follows for them even if the
stream is silent, and how often parked rows have been looked for. Offsets are in Spark's log, files do not change, and
files that a logged offset needs are not removed: a replay has the same tickets.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from semistream.spark.room.names import FORMAT, OFFSET_FIELDS, SLOT, TICKET
from semistream.spark.room.room import Room, RoomError, RoomTerms
from semistream.spark.room.room_file import RoomHead
from semistream.store.address import Address
from semistream.store.tables import table_at

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark before 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands for a contract that this PySpark does not know."""


TICKETS = StructType([StructField(SLOT, IntegerType()), StructField(TICKET, StringType())])
_MAX_PARKED_FILES = 64
"""So many files of parked rows of a slot are made into one."""
_MIN_PAUSE_SECONDS = 1.0
_ROWS_PER_SECOND = 1_000_000
"""About how many parked rows a task looks through in a second."""
_MAX_SHARE = 0.1
"""The share of the time that may go to parked rows which nobody can know to have a match."""


@dataclass(frozen=True)
class Ticket:
    """What a task reads again: the rows that wait in a micro-batch's file, and the parked rows of some."""

    waiting: int = -1
    parked: tuple[int, ...] = ()

    def as_json(self) -> str:
        """Return the ticket as it travels."""
        return json.dumps({"waiting": self.waiting, "parked": self.parked})

    @classmethod
    def parsed(cls, text: str) -> Ticket:
        """Return the ticket of a text."""
        told = json.loads(text)
        return cls(int(told["waiting"]), tuple(map(int, told["parked"])))


@dataclass(frozen=True)
class Offset:
    """How far the tickets are."""

    waiting: int = -1
    """The newest micro-batch that left rows waiting."""
    parked: int = -1
    """The newest micro-batch whose parked rows have been looked for again."""
    rounds: int = 0
    """How often parked rows have been looked for."""
    rows: int = 0
    """How many rows that micro-batch left waiting, in all slots."""

    @classmethod
    def parsed(cls, told: Mapping[str, Any]) -> Offset:
        """Return the offset that Spark kept."""
        try:
            return cls(*(int(told[name]) for name in OFFSET_FIELDS))
        except (KeyError, TypeError, ValueError):
            raise RoomError("The checkpoint has an offset that is not of a room: give the query a new one.") from None

    def as_dict(self) -> dict[str, int]:
        """Return the offset as Spark keeps it."""
        return asdict(self)


class RoomSource(DataSource):
    """The data source `semistream-room`, which `enrich` uses by itself."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of a ticket."""
        return TICKETS

    def simpleStreamReader(self, schema: StructType) -> RoomReader:  # noqa: N802, ARG002
        """Return the reader of tickets."""
        told = self.options
        table, retry = told.get("master"), told.get("retrySeconds")
        return RoomReader(
            Room(Address.of(told["room"])),
            Address.of(table) if table else None,
            float(retry) if retry else None,
            terms=RoomTerms.parsed(json.loads(told["terms"])),
        )


class RoomReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads tickets on the driver. When Spark asks for more, all micro-batches before are committed."""

    def __init__(
        self,
        room: Room,
        table: Address | None,
        retry_seconds: float | None,
        clock: Callable[[], float] = time.time,
        *,
        terms: RoomTerms | None = None,
    ) -> None:
        """`terms` are what the room is made for, if it is to be made when it is first read."""
        self._room = room
        self._terms = terms
        self._table = table
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._heads: dict[tuple[int, int], RoomHead] = {}
        self._needed: set[tuple[int, int]] = set()
        """The files that micro-batches from the last look on may read."""
        self._looked = 0.0
        self._is_new = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return that nothing waits; Spark asks for it where the checkpoint does not know the room yet."""
        self._is_new = True
        return Offset().as_dict()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Go on until no row waits: all of them came with rows that were there at the start."""

    def read(self, start: Mapping[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        """Return the tickets after an offset, and where they end."""
        begin = Offset.parsed(start)
        if self._terms is not None:
            if not self._is_new and not self._room.is_made():
                raise self._lost()
            self._room.make(self._terms)
            self._room.remove_leftovers()
            self._terms = None
        self._look()
        self._check_evaluated(begin)
        parked = self._parked()
        self._check_still_parks(parked)
        self._check_parked(parked)
        end = self._end(begin)
        self._remove_old()
        return self._tickets(begin, end), end.as_dict()

    def readBetweenOffsets(  # noqa: N802
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Return the tickets between two offsets once more."""
        self._look()
        return self._tickets(Offset.parsed(start), Offset.parsed(end))

    # What is in the room.

    def _look(self) -> None:
        """Take notice of new and removed files."""
        files = {(batch, slot) for batch, slots in self._room.files().items() for slot in slots}
        if gone := self._needed - files:
            raise self._lost(self._room.shown(*min(gone)))
        self._heads = {file: head for file, head in self._heads.items() if file in files}
        self._heads.update(self._room.heads(files - self._heads.keys()))

    def _newest(self) -> int:
        return max((batch for batch, _ in self._heads), default=-1)

    def _waiting(self, batch: int) -> dict[int, RoomHead]:
        return {slot: head for (number, slot), head in self._heads.items() if number == batch and head.waiting}

    def _parked(self, until: int | None = None) -> dict[int, list[RoomHead]]:
        """Return the files that have the parked rows of each slot, oldest first, of micro-batches up to one."""
        live: dict[int, list[RoomHead]] = defaultdict(list)
        for (batch, slot), head in sorted(self._heads.items()):
            if until is not None and batch > until:
                continue
            if head.is_base:
                live[slot].clear()
            if head.parked:
                live[slot].append(head)
        return {slot: heads for slot, heads in live.items() if heads}

    # Offsets.

    def _end(self, begin: Offset) -> Offset:
        newest, end = self._newest(), begin
        if waiting := self._waiting(newest):
            end = replace(end, waiting=newest, rows=sum(head.waiting for head in waiting.values()))
        if self._is_time_for_parked(newest):
            self._looked = self._clock()
            end = replace(end, parked=newest, rounds=begin.rounds + 1)
        return end

    def _is_time_for_parked(self, newest: int) -> bool:
        parked = self._parked()
        if not parked or newest < 0 or self._table is None:
            return False
        now = self._clock()
        heads = [head for files in parked.values() for head in files]
        rows = sum(head.parked for head in heads)
        pause = max(_MIN_PAUSE_SECONDS, rows / _ROWS_PER_SECOND / _MAX_SHARE)
        if self._retry_seconds is not None:
            oldest = min(head.oldest_parked_seconds or now for head in heads)
            if oldest + self._retry_seconds <= now:
                return now - self._looked >= _MIN_PAUSE_SECONDS
        if max(map(len, parked.values())) > _MAX_PARKED_FILES:
            return True
        if now - self._looked < pause:
            return False
        # A table that was removed and built again begins to count anew.
        current = table_at(self._table).current_version()
        return any(head.version != current for head in heads)

    def _tickets(self, begin: Offset, end: Offset) -> Iterator[tuple[Any, ...]]:
        waiting = self._waiting(end.waiting) if end.waiting > begin.waiting else {}
        parked = self._parked(end.parked) if end.rounds > begin.rounds else {}
        found = sum(head.waiting for head in waiting.values())
        if (end.waiting > begin.waiting and found != end.rows) or (end.rounds > begin.rounds and not parked):
            raise self._lost()
        if end.rounds > begin.rounds:
            self._check_parked(parked, end.parked)
        tickets = [
            (slot, Ticket(end.waiting if slot in waiting else -1, tuple(h.batch for h in parked.get(slot, ()))))
            for slot in sorted({*waiting, *parked})
        ]
        return iter([(slot, ticket.as_json()) for slot, ticket in tickets])

    def _check_parked(self, parked: Mapping[int, list[RoomHead]], until: int | None = None) -> None:
        """Raise an error if a slot has other parked rows than its newest file says."""
        newest: dict[int, RoomHead] = {}
        for (batch, slot), head in sorted(self._heads.items()):
            if until is None or batch <= until:
                newest[slot] = head
        for slot, head in newest.items():
            if head.parked_in_all != sum(each.parked for each in parked.get(slot, ())):
                raise self._lost()

    def _check_still_parks(self, parked: Mapping[int, list[RoomHead]]) -> None:
        """Raise an error if rows are parked, and the query would not look for them any more."""
        rows = sum(head.parked for heads in parked.values() for head in heads)
        if rows and self._table is None:
            raise RoomError(
                f"{rows} rows are parked in the room {self._room.shown()}, and this query parks none, so that they "
                f"would stay there: set unmatched='park' again; with retry_for='0 seconds' parked rows that have no "
                f"match now go to the dead letters."
            )

    def _check_evaluated(self, begin: Offset) -> None:
        """Raise an error if files are gone, or rows that were to leave in a micro-batch were not even looked at."""
        if begin.waiting > self._newest():
            raise self._lost()
        for slot in self._waiting(begin.waiting):
            if (begin.waiting + 1, slot) not in self._heads:
                raise RoomError(
                    f"Micro-batch {begin.waiting + 1} has ended, but not all of its rows were asked for, so that those "
                    f"in {self._room.shown(begin.waiting, slot)} would be lost: let the query, or its foreachBatch, "
                    f"write all rows of each micro-batch."
                )

    def _lost(self, file: str = "files") -> RoomError:
        return RoomError(
            f"The room {self._room.shown()} has lost {file}, with rows that the query needs: restore room and "
            f"checkpoint from the same backup, or begin with a new room and a new checkpoint, without the rows that "
            f"waited."
        )

    def _remove_old(self) -> None:
        """Remove files that no offset needs any more, now that all micro-batches up to here are committed."""
        newest = self._newest()
        parked = {(head.batch, head.slot) for heads in self._parked().values() for head in heads}
        self._needed = parked | {(newest, slot) for slot in self._waiting(newest)}
        for file in [file for file in self._heads if file[0] < newest and file not in parked]:
            self._room.remove(*file)
            del self._heads[file]
