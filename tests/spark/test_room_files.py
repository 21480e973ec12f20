"""Files of a room: what is put is read back, damage is told, and a room fits one stream only."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from pathlib import Path

import pyarrow as pa
import pytest

from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream.spark.room.pinned_rows import PinnedRows
from semistream.spark.room.room import Room, RoomError, room_address
from semistream.spark.room.room_file import HEAD_BYTES, SINCE, TRIES, Kind, NewRoomFile, RoomHead
from semistream.store.address import Address

STREAM = pa.schema([("id", pa.int64()), ("label", pa.string())])
MOMENT = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


def rows(first: int, count: int) -> pa.RecordBatch:
    ids = list(range(first, first + count))
    columns = [ids, [f"row {number}" for number in ids], [MOMENT] * count, [0] * count]
    return pa.table(columns, schema=STREAM.append(SINCE).append(TRIES)).to_batches()[0]


def put(room: Room, batch: int, slot: int) -> bool:
    file = NewRoomFile(STREAM.append(SINCE).append(TRIES))
    file.write(rows(0, 100), Kind.WAITING)
    file.write(rows(100, 20), Kind.PARKED)
    file.write(rows(120, 3), Kind.DEAD)
    counts = file.counts
    head = RoomHead("query", batch, slot, 5.0, 7, "identity", waiting=counts[Kind.WAITING], parked=counts[Kind.PARKED])
    return room.put(batch, slot, file.content(head))


@pytest.fixture
def room(tmp_path: Path) -> Room:
    made, terms = Room.checked(Address.of(tmp_path / "room"), ["id"], STREAM, 2)
    assert not (tmp_path / "room").exists(), "to look at a room writes nothing"
    made.make(terms)
    return made


def test_rows_come_back_by_their_kind(room: Room) -> None:
    assert put(room, 3, 1)
    assert pa.Table.from_batches(room.rows(3, 1, Kind.WAITING)) == pa.Table.from_batches([rows(0, 100)])
    assert pa.Table.from_batches(room.rows(3, 1, Kind.PARKED)) == pa.Table.from_batches([rows(100, 20)])
    assert sum(batch.num_rows for batch in room.rows(3, 1, *Kind)) == 123
    head = room.head(3, 1)
    assert head is not None
    assert (head.batch, head.slot, head.version, head.waiting, head.swept_seconds) == (3, 1, 7, 100, 5.0)


def test_a_file_is_put_once(room: Room) -> None:
    assert put(room, 3, 1)
    assert not put(room, 3, 1)
    assert room.files() == {3: [1]}


def test_a_file_that_is_gone_is_an_error_that_names_it(room: Room) -> None:
    with pytest.raises(RoomError, match=r"000000000004-00000\.room is gone"):
        list(room.rows(4, 0, Kind.WAITING))


def test_whatever_byte_is_damaged_nothing_wrong_is_read(room: Room, tmp_path: Path) -> None:
    put(room, 3, 1)
    path = tmp_path / "room" / "rows" / "000000000003-00001.room"
    whole, right = path.read_bytes(), pa.Table.from_batches(room.rows(3, 1, *Kind))
    places = random.Random(1).sample(range(len(whole)), 150)
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(CorruptTableError):
            read = pa.Table.from_batches(room.rows(3, 1, *Kind))
            assert place < HEAD_BYTES
            assert read == right
    for length in (0, 10, HEAD_BYTES, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptTableError, match=path.name):
            list(room.rows(3, 1, *Kind))


def test_the_number_of_slots_stays(room: Room) -> None:
    _, terms = Room.checked(room.address, ["id"], STREAM, 64)
    assert terms.slots == 2


@pytest.mark.parametrize(
    ("key", "stream", "why"),
    [
        (["label"], STREAM, "key id, now label"),
        (["id"], STREAM.append(pa.field("more", pa.int8())), "id, label, now id, label, more"),
        (["id"], pa.schema([("id", pa.int32()), ("label", pa.string())]), "id was int64 and is int32"),
    ],
)
def test_a_room_of_another_stream_is_refused(room: Room, key: list[str], stream: pa.Schema, why: str) -> None:
    with pytest.raises(RoomError, match=f"other columns.*{why}.*max_wait='0 seconds'"):
        Room.checked(room.address, key, stream, 2)


def test_damaged_terms_are_told(room: Room, tmp_path: Path) -> None:
    (tmp_path / "room" / "room.json").write_text('{"slots": "many"}')
    with pytest.raises(RoomError, match=r"room\.json is damaged"):
        Room.checked(room.address, ["id"], STREAM, 2)


def test_a_room_cannot_be_in_a_database() -> None:
    with pytest.raises(InvalidSettingError, match="room cannot be at postgresql://"):
        room_address("postgresql://host/db?table=t&key=k")


def test_pinned_rows_are_taken_out_as_often_as_they_were_pinned() -> None:
    pinned = PinnedRows([rows(0, 3), rows(0, 1)], 2)  # row 0 twice
    left = pinned.without(pa.concat_batches([rows(0, 2), rows(0, 2), rows(0, 1)]))
    assert left.column(0).to_pylist() == [1, 0]
    assert pinned.unmet == 1
    assert pinned.without(rows(2, 2)).column(0).to_pylist() == [3]
    assert pinned.unmet == 0
