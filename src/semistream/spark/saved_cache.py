"""Rows that a worker had cached, saved beside the master table, so that a worker that starts later starts warm."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedWriter
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Float64Array, Int64Array
from semistream.engine.cache.hot_rows import HotRows
from semistream.store.saved_rows import NewRows, SavedRows

_MAGIC = b"SSHOT1\0\0"
_HEADER = struct.Struct("<8sIIQ")
_CODE, _FREQUENCY, _ABSENT = "__code", "__frequency", "__absent"


class SavedCache:
    """The saved rows of one kind of cache: those of a master table, an algorithm and a choice of columns.

    They are replaced as a whole; damaged or older ones are as good as none. Rows are tried in order of their use.
    """

    def __init__(self, beside: SavedRows, kind: str) -> None:
        self._beside = beside
        self.name = f"{hashlib.sha256(kind.encode()).hexdigest()[:24]}.rows"

    def save(self, rows: Iterable[HotRows], schema: pa.Schema, version: int, identity: str) -> None:
        """Replace what is saved; a table that cannot be written is left as it is."""

        def write(raw: NewRows) -> None:
            with BufferedWriter(raw) as file:
                file.write(_HEADER.pack(_MAGIC, 0, 0, 0))
                body = _Checked(file)
                _write(rows, schema, {"version": version, "identity": identity, "kind": self.name}, body)
                file.flush()
                raw.write_start(_HEADER.pack(_MAGIC, body.crc, 0, body.size_bytes))

        self._beside.replace(self.name, write)

    def load(self, max_bytes: int, max_seconds: float) -> tuple[int, str, Iterator[HotRows]]:
        """Return version and identity of the saved rows, and an iterator over them that stops after so many seconds.

        The version is 0 and there are no rows if nothing of use was saved, or more than `max_bytes`.
        """
        opened = _opened(self._beside, self.name, max_bytes)
        if opened is None:
            return 0, "", iter(())
        reader, saved = opened
        if saved["kind"] != self.name:
            return 0, "", iter(())  # rows of another cache, perhaps with other columns
        return int(saved["version"]), str(saved["identity"]), _batches(reader, time.monotonic() + max_seconds)


def saved_use(beside: SavedRows, max_bytes: int) -> tuple[Int64Array, Float64Array]:
    """Return the codes of all rows that are saved beside a table, and how often each was used in its cache.

    A code that several caches held is there several times. Objects above `max_bytes` and damaged ones are left out.
    """
    codes, counts = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for name in beside.names():
        opened = _opened(beside, name, max_bytes)
        if opened is not None:
            for hot in _batches(opened[0], np.inf):
                codes.append(hot.codes)
                counts.append(hot.frequencies.astype(np.float64))
    return np.concatenate(codes), np.concatenate(counts)


def _opened(beside: SavedRows, name: str, max_bytes: int) -> tuple[pa.RecordBatchStreamReader, dict[str, Any]] | None:
    """Return what reads the saved rows of an object, and what they are; None if it has none."""
    content = beside.read(name, max_bytes + _HEADER.size)
    if len(content) < _HEADER.size:
        return None
    magic, crc, _, length = _HEADER.unpack_from(content)
    body = memoryview(content)[_HEADER.size :]
    if magic != _MAGIC or length != len(body) or zlib.crc32(body) != crc:
        return None
    try:
        reader = pa.ipc.open_stream(pa.py_buffer(body))
        saved = json.loads(reader.schema.metadata[b"semistream"])
        return reader, {"version": int(saved["version"]), "identity": saved["identity"], "kind": saved["kind"]}
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        return None


class _Checked:
    """Writes to a file and keeps the checksum of what it has written."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.crc = 0
        self.size_bytes = 0
        self._file = file

    def write(self, data: bytes | pa.Buffer) -> int:
        """Write some bytes."""
        self.crc = zlib.crc32(data, self.crc)
        self.size_bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Leave that to the file."""

    def close(self) -> None:
        """Leave that to the file."""


def _write(saved: Iterable[HotRows], columns: pa.Schema, table: dict[str, int | str], file: _Checked) -> None:
    fields = [pa.field(_CODE, pa.int64()), pa.field(_FREQUENCY, pa.int32()), pa.field(_ABSENT, pa.bool_())]
    fields += [field.with_nullable(True) for field in columns]
    schema = pa.schema(fields, {"semistream": json.dumps(table)})
    with pa.PythonFile(file, mode="w") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for hot in saved:
            if len(hot.codes):
                known = [pa.array(hot.codes), pa.array(hot.frequencies), _flags(len(hot.codes), False)]
                known += hot.rows.columns if hot.rows is not None else []
                writer.write_batch(pa.RecordBatch.from_arrays(known, schema=schema))
            if count := len(hot.absent_codes):
                absent = [pa.array(hot.absent_codes), pa.array(np.ones(count, dtype=np.int32)), _flags(count, True)]
                absent += [pa.nulls(count, field.type) for field in columns]
                writer.write_batch(pa.RecordBatch.from_arrays(absent, schema=schema))


def _flags(count: int, value: bool) -> pa.Array:
    return pa.array(np.full(count, value))


def _batches(reader: pa.RecordBatchStreamReader, deadline: float) -> Iterator[HotRows]:
    for batch in reader:
        if time.monotonic() > deadline:
            return
        absent = batch.column(2).to_numpy(zero_copy_only=False)
        codes, frequencies = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        rows = None
        if batch.num_columns > 3:
            rows = batch.select(range(3, batch.num_columns)).filter(pa.array(~absent))
        yield HotRows(codes[~absent], frequencies[~absent], rows, codes[absent])
