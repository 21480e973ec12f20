"""A room: the folder beside a checkpoint in which rows of a query wait between its micro-batches."""

from __future__ import annotations

import base64
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.spark.room.room_file import HEAD_BYTES, Kind, RoomHead, read_rows
from semistream.store.address import LOCAL, Address
from semistream.store.places.choice import place_of
from semistream.store.places.place import Place

FORMAT = 2
_TERMS, _OWNER, _ROWS = "room.json", "owner.json", "rows"
_NAME = re.compile(r"(\d{12})-(\d{5})\.room")
_HEADS_AT_ONCE = 16
_LEFTOVER_SECONDS = 3600.0


class RoomError(SemistreamError):
    """A room does not fit the query, or the query does not fit what waits in the room."""


@dataclass(frozen=True)
class RoomTerms:
    """What a room is made for, once and for all."""

    slots: int
    key: tuple[str, ...]
    columns: str
    """The schema of the stream."""
    format: int = FORMAT

    @classmethod
    def of(cls, slots: int, key: Iterable[str], stream: pa.Schema) -> RoomTerms:
        """Return the terms for a stream with these columns."""
        return cls(slots, tuple(key), base64.b64encode(stream.remove_metadata().serialize().to_pybytes()).decode())

    @classmethod
    def parsed(cls, told: Mapping[str, Any]) -> RoomTerms:
        """Return the terms that were told as an object of JSON; KeyError, TypeError or ValueError if they are none."""
        return cls(int(told["slots"]), tuple(told["key"]), str(told["columns"]), int(told["format"]))

    @property
    def stream(self) -> pa.Schema:
        """The columns of the stream."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.columns)))


class Room:
    """The files of a room, by micro-batch and slot; each is put once, complete, and never changes."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._place: Place = place_of(address)

    def __reduce__(self) -> tuple[type[Room], tuple[Address]]:
        """Let Spark send the source of a room by its address alone."""
        return Room, (self.address,)

    @classmethod
    def checked(cls, address: Address, key: Iterable[str], stream: pa.Schema, slots: int) -> tuple[Room, RoomTerms]:
        """Return the room at an address and its terms, or those that it will have; refuse one for another stream.

        The number of slots stays what it was when the room was made. Nothing is written.
        """
        room = cls(address)
        wanted = RoomTerms.of(slots, key, stream)
        known = room._terms() or wanted
        if known.key != wanted.key or not known.stream.equals(wanted.stream):
            raise RoomError(
                f"The room {room.shown()} was made for a stream with other columns ({_differing(known, wanted)}): "
                f"restore the query, let it run with max_wait='0 seconds' until the room is empty, and give the new "
                f"query a new room and a new checkpoint."
            )
        return room, known

    def make(self, terms: RoomTerms) -> None:
        """Make the room if there is none; the terms of one that is there must be these."""
        self._put(_TERMS, asdict(terms))
        if self._terms() != terms:
            raise RoomError(f"The room {self.shown()} was made by another query meanwhile: give this one its own.")

    def is_made(self) -> bool:
        """Say whether there is a room."""
        return self._terms() is not None

    def claim(self, query: str) -> None:
        """See that the room belongs to a query, the first one that asks."""
        self._put(_OWNER, {"query": query})
        owner = self._read_json(_OWNER) or {}
        if owner.get("query") != query:
            raise RoomError(
                f"The room {self.shown()} belongs to the query {owner.get('query')}, and this is {query}: a room and a "
                f"checkpoint go together, so give this query a room of its own, or restore its checkpoint."
            )

    def shown(self, batch: int | None = None, slot: int = 0) -> str:
        """Return how people call the room, or a file of it."""
        return self._place.shown() if batch is None else self._place.shown(_name(batch, slot))

    # Files.

    def put(self, batch: int, slot: int, content: memoryview) -> bool:
        """Put the file of a task if no other attempt has, and say so."""
        return self._place.put_new(_name(batch, slot), content)

    def head(self, batch: int, slot: int) -> RoomHead | None:
        """Return what the file of a task says about itself; None if there is none."""
        try:
            file = self._place.stream(_name(batch, slot))
        except FileNotFoundError:
            return None
        with file:
            return RoomHead.parsed(file.read(HEAD_BYTES), self.shown(batch, slot))

    def rows(self, batch: int, slot: int, *kinds: Kind) -> Iterator[pa.RecordBatch]:
        """Yield rows of a file; a missing file is an error."""
        shown = self.shown(batch, slot)
        try:
            file: BinaryIO = self._place.stream(_name(batch, slot))
        except FileNotFoundError:
            raise RoomError(
                f"{shown} is gone, and rows of the query wait in it: restore the room together with the checkpoint."
            ) from None
        with file:
            yield from read_rows(file, shown, *kinds)

    def files(self) -> dict[int, list[int]]:
        """Return the slots that have a file, by micro-batch, oldest first."""
        found: dict[int, list[int]] = defaultdict(list)
        for name in sorted(self._place.names(_ROWS)):
            match = _NAME.fullmatch(name)
            if match is not None:
                found[int(match[1])].append(int(match[2]))
        return dict(found)

    def heads(self, files: Iterable[tuple[int, int]]) -> dict[tuple[int, int], RoomHead]:
        """Return the heads of files, each named by micro-batch and slot, that are still there."""
        wanted = list(files)
        if self.address.scheme == LOCAL or len(wanted) < 2:
            heads = [self.head(*file) for file in wanted]
        else:
            with ThreadPoolExecutor(_HEADS_AT_ONCE) as threads:
                heads = list(threads.map(lambda file: self.head(*file), wanted))
        return {file: head for file, head in zip(wanted, heads, strict=True) if head is not None}

    def remove(self, batch: int, slot: int) -> None:
        """Remove a file that nobody needs."""
        self._place.remove_if_possible(_name(batch, slot))

    def remove_leftovers(self) -> None:
        """Remove what killed tasks have left that never became a file."""
        for name in self._place.names(_ROWS):
            if name.startswith("."):
                status = self._place.status(f"{_ROWS}/{name}")
                if status is not None and time.time() - status.modified > _LEFTOVER_SECONDS:
                    self._place.remove_if_possible(f"{_ROWS}/{name}")

    # What is put once.

    def _terms(self) -> RoomTerms | None:
        told = self._read_json(_TERMS)
        if told is None:
            return None
        try:
            terms = RoomTerms.parsed(told)
            terms.stream  # noqa: B018
        except (KeyError, TypeError, ValueError, pa.ArrowInvalid):
            raise RoomError(f"{self._place.shown(_TERMS)} is damaged: restore the room from a backup.") from None
        if terms.format != FORMAT:
            raise RoomError(
                f"The room {self.shown()} has the format {terms.format}, and this semistream knows {FORMAT}: use the "
                f"semistream that made it."
            )
        return terms

    def _read_json(self, name: str) -> dict[str, Any] | None:
        try:
            told = json.loads(self._place.read(name))
        except FileNotFoundError:
            return None
        except ValueError:
            raise RoomError(f"{self._place.shown(name)} is damaged: restore the room from a backup.") from None
        return told if isinstance(told, dict) else {}

    def _put(self, name: str, told: dict[str, object]) -> None:
        if self.address.scheme == LOCAL:
            self.address.path.mkdir(parents=True, exist_ok=True)
        self._place.put_new(name, json.dumps(told).encode())


def room_address(where: object) -> Address:
    """Return the address of a room; a folder, or a prefix in an object store."""
    address = Address.of(where)  # type: ignore[arg-type]
    try:
        place_of(address)
    except InvalidSettingError:
        raise InvalidSettingError(
            f"A room cannot be at {address.scheme}://: give a folder beside the checkpoint, or an object store."
        ) from None
    return address.absolute()


def _name(batch: int, slot: int) -> str:
    return f"{_ROWS}/{batch:012d}-{slot:05d}.room"


def _differing(known: RoomTerms, wanted: RoomTerms) -> str:
    if known.key != wanted.key:
        return f"key {', '.join(known.key)}, now {', '.join(wanted.key)}"
    there, here = known.stream, wanted.stream
    if there.names != here.names:
        return f"{', '.join(there.names)}, now {', '.join(here.names)}"
    changed = [(a.name, a.type, b.type) for a, b in zip(there, here, strict=True) if a.type != b.type]
    return f"{changed[0][0]} was {changed[0][1]} and is {changed[0][2]}" if changed else "other promises about nulls"
