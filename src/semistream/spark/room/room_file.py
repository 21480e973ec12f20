"""A file of a room: the rows that one task of a micro-batch kept back.

    1,024 bytes   magic, a JSON object, padded with spaces, and the checksum of all that
    the rest      an Arrow stream: the columns of the stream, and when each row first came, how often it was looked for
                  in vain, and what it is here for

The object names the checksum and the length of the stream. Rows of one kind are together, those that wait first.
"""

from __future__ import annotations

import json
import mmap
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import IO, Any, BinaryIO

import pyarrow as pa

from semistream.core.errors import CorruptTableError

HEAD_BYTES = 1024
_MAGIC = b"SSROOM2\n"
_CHECKED_BYTES = HEAD_BYTES - 8
"""Of the head; the rest is their checksum."""
_CHUNK_BYTES = 1 << 20
SINCE = pa.field("since", pa.timestamp("us", tz="UTC"))
TRIES = pa.field("tries", pa.int32())
_KIND = pa.field("kind", pa.int8())
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)


class Kind(IntEnum):
    """What a row is kept back for."""

    WAITING = 0
    """It leaves within the longest wait."""
    PARKED = 1
    """It leaves when the master table has its key."""
    DEAD = 2
    """It was parked for too long, and goes to the dead letters."""


@dataclass(frozen=True)
class RoomHead:
    """What a file of a room says about itself."""

    query: str
    batch: int
    slot: int
    swept_seconds: float
    """When the task looked which rows were due."""
    version: int
    """The version of the master table that it joined with."""
    identity: str
    is_base: bool = False
    """Its parked rows are all of the slot; else those of files since the last base are parked, too."""
    waiting: int = 0
    parked: int = 0
    dead: int = 0
    parked_in_all: int = 0
    """The rows of the slot that are parked after the micro-batch."""
    oldest_seconds: float | None = None
    """When the oldest row that waits first came."""
    oldest_parked_seconds: float | None = None
    """When the oldest row first came that is parked in this file."""
    stream_bytes: int = 0
    checksum: int = 0

    @property
    def count(self) -> int:
        """All rows of the file."""
        return self.waiting + self.parked + self.dead

    @classmethod
    def parsed(cls, head: bytes, shown: str) -> RoomHead:
        """Return what the first bytes of a file say, or raise CorruptTableError."""
        try:
            checked = head[:_CHECKED_BYTES]
            if not head.startswith(_MAGIC) or head[_CHECKED_BYTES:] != _checksum(checked):
                raise ValueError
            told: dict[str, Any] = json.loads(checked[len(_MAGIC) :])
            return cls(**{field.name: told[field.name] for field in fields(cls)})
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            raise CorruptTableError(f"{shown} is damaged or not a file of a room: restore it from a backup.") from None

    def as_bytes(self) -> bytes:
        """Return the first bytes of a file."""
        head = _MAGIC + json.dumps(asdict(self), separators=(",", ":")).encode()
        assert len(head) <= _CHECKED_BYTES
        checked = head.ljust(_CHECKED_BYTES)
        return checked + _checksum(checked)


class NewRoomFile:
    """Gathers the rows of a file on the local disk, so that their number does not matter for the memory."""

    def __init__(self, stream: pa.Schema) -> None:
        self.schema = stream.append(_KIND)
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="semistream-room-")  # noqa: SIM115
        self._file.write(b"\0" * HEAD_BYTES)
        self._writer = pa.ipc.new_stream(self._file, self.schema, options=_OPTIONS)
        self.counts = dict.fromkeys(Kind, 0)
        self.oldest: dict[Kind, float] = {}

    def write(self, rows: pa.RecordBatch, kind: Kind) -> None:
        """Append rows that have the columns of the stream, at the end `since` and `tries`."""
        if not rows.num_rows:
            return
        kinds = pa.repeat(pa.scalar(int(kind), _KIND.type), rows.num_rows)
        self._writer.write_batch(pa.RecordBatch.from_arrays([*rows.columns, kinds], schema=self.schema))
        self.counts[kind] += rows.num_rows
        first = min_seconds(rows.column(rows.num_columns - 2))
        self.oldest[kind] = min(first, self.oldest.get(kind, first))

    def content(self, head: RoomHead) -> memoryview:
        """Return the finished file, with a head that has its checksum; the memory is that of the file."""
        self._writer.close()
        size = self._file.tell()
        self._file.flush()
        checksum = 0
        self._file.seek(HEAD_BYTES)
        while chunk := self._file.read(_CHUNK_BYTES):
            checksum = zlib.crc32(chunk, checksum)
        self._file.seek(0)
        told = asdict(head)
        told.update(stream_bytes=size - HEAD_BYTES, checksum=checksum)
        self._file.write(RoomHead(**told).as_bytes())
        self._file.flush()
        return memoryview(mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ))

    def close(self) -> None:
        """Give the file up."""
        self._file.close()


def read_rows(file: BinaryIO, shown: str, *kinds: Kind) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some kinds, without what they are; the checksum of all is compared before."""
    head = RoomHead.parsed(file.read(HEAD_BYTES), shown)
    checksum = read = 0
    while chunk := file.read(_CHUNK_BYTES):
        checksum, read = zlib.crc32(chunk, checksum), read + len(chunk)
    if (checksum, read) != (head.checksum, head.stream_bytes):
        raise CorruptTableError(
            f"{shown} is damaged: it has {read} bytes of rows where {head.stream_bytes} were written, or others; "
            f"restore it from a backup."
        )
    file.seek(HEAD_BYTES)
    for batch in pa.ipc.open_stream(file):
        if batch.num_rows and batch.column(batch.num_columns - 1)[0].as_py() in kinds:
            yield batch.select(range(batch.num_columns - 1))


def _checksum(head: bytes) -> bytes:
    return b"%08x" % zlib.crc32(head)


def min_seconds(since: pa.Array) -> float:
    """Return the first of some moments, in seconds since 1970."""
    return float(since.cast(pa.int64()).to_numpy(zero_copy_only=False).min()) / 1e6
