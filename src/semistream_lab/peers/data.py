"""The master table and the stream that all peers get: each row follows from its number, so all can be checked."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semistream.core.arrays import Float64Array, Int64Array, UInt64Array
from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream.generator.zipf import IntegralZipf
from semistream.store.tables import check_page_bytes

PAYLOAD = ("supplier", "price", "stock", "text")
STREAM_COLUMNS = ("value", "key")
MASTER_SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("supplier", pa.int64()),
        ("price", pa.float64()),
        ("stock", pa.int64()),
        ("text", pa.string()),
    ]
)
TEXT_BYTES = 72
CHUNK_ROWS = 100_000
_FILE_ROWS = 1_000_000
PRIME = 2**31 - 1
"""Numbers of the stream are mixed below it; with the next three they make random numbers of positions."""
FACTORS = (1_103_515_245, 1_597_334_677, 741_103_597)
ADDED = 12_345
FOLD_BITS = 15
SCRAMBLE = 2_654_435_761  # a prime above any number of rows, so that it permutes them
_MAX_ROWS = 2**31


@dataclass(frozen=True)
class Situation:
    """All that decides what the peers have to do."""

    master_rows: int
    batch_rows: int
    memory_bytes: int
    zipf: float
    cores: int
    page_bytes: int | None = None
    """Of the master table as semistream has it; None for what a build chooses."""

    @classmethod
    def of(
        cls,
        master_rows: int,
        batch_rows: int,
        memory: int | str,
        zipf: float,
        cores: int,
        page_bytes: int | None = None,
    ) -> Situation:
        """Return a situation, or raise InvalidSettingError."""
        for name, value in (("master-rows", master_rows), ("batch-rows", batch_rows)):
            if not 1 <= value < _MAX_ROWS:
                raise InvalidSettingError(f"--{name} must be from 1 to {_MAX_ROWS - 1:,}, but {value} was given.")
        if cores < 1:
            raise InvalidSettingError(f"--cores must be at least 1, but {cores} was given.")
        if not 0 <= zipf < float("inf"):
            raise InvalidSettingError(f"--zipf must be 0 or more, but {zipf:g} was given.")
        check_page_bytes(page_bytes)
        return cls(master_rows, batch_rows, parse_bytes(memory), zipf, cores, page_bytes)


@dataclass(frozen=True)
class PeerData:
    """A situation and the folder in which peers keep what they prepare; a finished preparation is not done again."""

    situation: Situation
    folder: Path

    @property
    def parquet(self) -> Path:
        """The master table as a folder of Parquet files."""
        return self.folder / f"parquet-{self.situation.master_rows}"

    def built(self, name: str, build: Callable[[Path], None]) -> Path:
        """Return what `build` has made under a name of its own; it gets its name when it is complete."""
        target = self.folder / f"{name}-{self.situation.master_rows}"
        if not target.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished = self.folder / f".unfinished-{target.name}"
            _remove(unfinished)
            build(unfinished)
            unfinished.replace(target)
        return target

    def build_parquet(self) -> Path:
        """Write the Parquet files unless they are there."""

        def write(folder: Path) -> None:
            folder.mkdir()
            for start in range(0, self.situation.master_rows, _FILE_ROWS):
                end = min(start + _FILE_ROWS, self.situation.master_rows)
                rows = master_rows(np.arange(start, end, dtype=np.int64))
                pq.write_table(rows, folder / f"part-{start:010d}.parquet")

        return self.built("parquet", write)

    def chunks(self) -> Iterator[pa.Table]:
        """Return the master table in pieces, sorted by key."""
        for start in range(0, self.situation.master_rows, CHUNK_ROWS):
            end = min(start + CHUNK_ROWS, self.situation.master_rows)
            yield master_rows(np.arange(start, end, dtype=np.int64))


def master_rows(keys: Int64Array) -> pa.Table:
    """Return the master rows of the keys: about 110 bytes each, of which the text cannot be compressed much."""
    letters = _noise(keys).view(np.uint8).reshape(-1) % 26 + 97
    offsets = pa.py_buffer(np.arange(0, letters.size + 1, TEXT_BYTES, dtype=np.int32))
    text = pa.Array.from_buffers(pa.string(), len(keys), [None, offsets, pa.py_buffer(letters.astype(np.uint8))])
    columns = [keys, keys % 1000, keys / 7, keys * 3, text]
    return pa.table([pa.array(column) for column in columns], schema=MASTER_SCHEMA)


def _noise(keys: Int64Array) -> UInt64Array:
    """Return as many random bytes for each key as its text has, by the mixing steps of splitmix64."""
    words = TEXT_BYTES // 8
    numbers: UInt64Array = np.empty((len(keys), words), dtype=np.uint64)
    numbers[:] = keys[:, None] * words + np.arange(1, words + 1)
    numbers *= np.uint64(0x9E3779B97F4A7C15)
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def stream_rows(situation: Situation, first_row: int, rows: int) -> pa.Table:
    """Return rows of the stream from a position on, as Spark gets them but for the time stamps."""
    values = np.arange(rows, dtype=np.int64)
    return pa.table({"value": values, "key": stream_keys(situation, values + first_row)})


def stream_keys(situation: Situation, positions: Int64Array) -> Int64Array:
    """Return the keys at positions of the stream: Zipf ranks, spread over the master table."""
    mixed = positions % PRIME
    for factor in FACTORS:
        mixed = (mixed * factor + ADDED) % PRIME
        mixed ^= mixed >> FOLD_BITS
    uniforms: Float64Array = mixed / float(2**31)
    ranks = np.empty(len(positions), dtype=np.int64)
    IntegralZipf(situation.master_rows, situation.zipf).ranks_into(uniforms, ranks)
    keys: Int64Array = ranks * SCRAMBLE % situation.master_rows
    return keys


@dataclass(frozen=True)
class Joined:
    """What a peer has given for some rows of the stream, in a form that can be compared."""

    rows: int
    checksum: str

    @classmethod
    def of(cls, table: pa.Table, columns: tuple[str, ...]) -> Joined:
        """Return the number of rows and a checksum of the columns; the order of rows does not count."""
        ordered = table.select(columns).sort_by("value")
        digest = hashlib.sha256()
        for name in columns:
            column = ordered.column(name)
            digest.update(f"{name}:{column.null_count}:".encode())
            if name == "text":
                digest.update("\n".join(text or "" for text in column.to_pylist()).encode())
            else:
                digest.update(np.ascontiguousarray(column.to_numpy()).tobytes())
        return cls(table.num_rows, digest.hexdigest()[:16])


def expected(situation: Situation, first_row: int, rows: int, *, joined: bool) -> Joined:
    """Return what a right join of rows of the stream gives; every key has exactly one master row."""
    stream = stream_rows(situation, first_row, rows)
    if not joined:
        return Joined.of(stream, STREAM_COLUMNS)
    return Joined.of(with_payload(stream), (*STREAM_COLUMNS, *PAYLOAD))


def with_payload(stream: pa.Table) -> pa.Table:
    """Return rows of a stream with the columns of their master rows."""
    master = master_rows(stream.column("key").to_numpy())
    for name in PAYLOAD:
        stream = stream.append_column(name, master.column(name))
    return stream


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
