"""Rows that a worker had cached, saved beside the master table, so that a worker that starts later starts warm."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedWriter
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from semistream.engine.cache.tuple_cache import HotRows
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
        body = self._body(max_bytes)
        if body is None:
            return 0, "", iter(())
        try:
            reader = pa.ipc.open_stream(body)
            saved = json.loads(reader.schema.metadata[b"semistream"])
            version, identity = int(saved["version"]), str(saved["identity"])
            if saved["kind"] != self.name:
                return 0, "", iter(())  # rows of another cache, perhaps with other columns
        except (pa.ArrowException, KeyError, TypeError, ValueError):
            return 0, "", iter(())
        return version, identity, _batches(reader, time.monotonic() + max_seconds)

    def _body(self, max_bytes: int) -> pa.Buffer | None:
        content = self._beside.read(self.name, max_bytes + _HEADER.size)
        if len(content) < _HEADER.size:
            return None
        magic, crc, _, length = _HEADER.unpack_from(content)
        body = memoryview(content)[_HEADER.size :]
        if magic != _MAGIC or length != len(body) or zlib.crc32(body) != crc:
            return None
        return pa.py_buffer(body)


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
