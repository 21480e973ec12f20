"""The rows that a task keeps back, and the file that pins them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from semistream.spark.refused_rows import ARRIVALS, RefusedRows
from semistream.spark.room.room import Room, RoomError
from semistream.spark.room.room_file import Kind, NewRoomFile, RoomHead
from semistream.spark.room.visit import Visit

_UNMATCHED = "-unmatched"


class KeptRows:
    """Gathers the rows that stay and puts them as one file, which counts if no other attempt has put one."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._file = NewRoomFile(visit.schema)
        self.is_base = False
        """The parked rows of earlier files of the slot have been looked for, and are here if they are still parked."""

    def keep(self, rows: pa.RecordBatch, kind: Kind) -> None:
        """Keep rows back."""
        self._file.write(rows, kind)

    def park(self, rows: pa.RecordBatch) -> None:
        """Keep rows that have no match; those that came too long ago are dead."""
        if not rows.num_rows:
            return
        since = rows.column(self._visit.width).cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6
        is_dead = since + self._visit.use.retry_seconds <= self._visit.now_seconds
        if is_dead.any():
            self.keep(rows.filter(pa.array(is_dead)), Kind.DEAD)
            rows = rows.filter(pa.array(~is_dead))
        self.keep(rows, Kind.PARKED)

    def put(self) -> RoomHead:
        """Pin which rows stay; RoomError if another attempt of the task has done that."""
        visit, head = self._visit, self._head()
        if not visit.room.put(visit.batch, visit.slot, self._file.content(head)):
            raise RoomError(
                f"Another attempt of this task has put {visit.room.shown(visit.batch, visit.slot)} first: Spark "
                f"repeats this one."
            )
        return head

    def close(self) -> None:
        """Free what it holds."""
        self._file.close()

    def _head(self) -> RoomHead:
        visit, counts, oldest = self._visit, self._file.counts, self._file.oldest
        before = 0
        if visit.use.parks and not self.is_base:
            before, _ = parked_before(visit.room, visit.slot, visit.batch)
        return RoomHead(
            query=visit.query,
            batch=visit.batch,
            slot=visit.slot,
            swept_seconds=visit.now_seconds,
            version=visit.version,
            identity=visit.identity,
            is_base=self.is_base,
            waiting=counts[Kind.WAITING],
            parked=counts[Kind.PARKED],
            dead=counts[Kind.DEAD],
            parked_in_all=before + counts[Kind.PARKED],
            oldest_seconds=oldest.get(Kind.WAITING),
            oldest_parked_seconds=oldest.get(Kind.PARKED),
        )


def parked_before(room: Room, slot: int, batch: int | None) -> tuple[int, float | None]:
    """Return how many rows of a slot are parked before a micro-batch, and since when the oldest of a file is."""
    for number, slots in sorted(room.files().items(), reverse=True):
        if slot in slots and (batch is None or number < batch):
            head = room.head(number, slot)
            if head is not None:
                return head.parked_in_all, head.oldest_parked_seconds
    return 0, None


def dead_letters(visit: Visit, folder: Path | None, names: tuple[str, ...], label: str = "") -> RefusedRows | None:
    """Return the file for dead letters of a slot, if they have a folder."""
    if folder is None:
        return None
    return RefusedRows(folder, (*names, *ARRIVALS), visit.query, visit.batch, label, visit.slot)


def bury(visit: Visit, folder: Path | None, names: tuple[str, ...]) -> None:
    """Write the rows to the dead letters that the file of a slot says are dead; to repeat that is harmless."""
    letters = dead_letters(visit, folder, names, _UNMATCHED)
    assert letters is not None, "dead letters without a place are refused when the query is planned"
    try:
        for rows in visit.room.rows(visit.batch, visit.slot, Kind.DEAD):
            letters.put(rows, f"No version of the master table up to {visit.version} has the key of the row.")
        letters.commit()
    except BaseException:
        letters.discard()
        raise
