"""Recorded streams: an Arrow file of keys and arrival times that can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream.generator.settings import whole_number
from semistream.generator.stream import Workload

FORMAT_VERSION = 1
_VERSION_FIELD = b"semistream.trace.version"
_CHUNK_TUPLES = 1 << 16
_TYPES = {"key": pa.int64(), "arrival_seconds": pa.float64()}


def record(workload: Workload, path: str | Path, tuples: int) -> int:
    """Write the next `tuples` tuples of `workload` to an Arrow file and return how many it had.

    The columns are `key` and, if the tuples have arrival times, `arrival_seconds`; each chunk carries a checksum of
    each column. The file gets its name when it is complete. Memory: one chunk of 65,536 tuples.
    """
    path = Path(path)
    tuples = whole_number("tuples", tuples, minimum=0)
    if not path.parent.is_dir():
        raise InvalidSettingError(f"There is no folder {path.parent} to record a trace in: make it first.")
    names = ["key", "arrival_seconds"] if workload.has_arrivals else ["key"]
    schema = pa.schema(
        [pa.field(name, _TYPES[name], nullable=False) for name in names],
        metadata={_VERSION_FIELD: str(FORMAT_VERSION).encode()},
    )
    partial = path.with_name(path.name + ".partial")
    written = 0
    try:
        with pa.OSFile(str(partial), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for keys, moments in workload.chunks(_CHUNK_TUPLES, tuples):
                columns: list[Any] = [keys] if moments is None else [keys, moments]
                checksums = {name: str(crc32(column.tobytes())) for name, column in zip(names, columns, strict=True)}
                batch = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=schema)
                writer.write_batch(batch, custom_metadata=checksums)
                written += len(keys)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return written


def replay(path: str | Path) -> Workload:
    """Return the stream that was recorded at `path`; it ends where the recording ends.

    Raises InvalidSettingError if there is no trace at `path`, and CorruptTableError, at once or while it is read, if
    the trace is damaged. Memory: one chunk of 65,536 tuples.
    """
    path = Path(path)
    keys = TraceKeys(path)
    return Workload(keys, TraceArrivals(path) if "arrival_seconds" in keys.columns else None)


class _TraceColumn:
    """Reads one column of a trace from its beginning to its end."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._reader = _open_trace(path)
        self.columns: list[str] = self._reader.schema.names
        self._next_chunk = 0
        self._rest: Any = np.empty(0, dtype=_TYPES[name].to_pandas_dtype())

    def read(self, count: int) -> Any:
        """Return the next `count` values, or as many as are left."""
        count = whole_number("count", count, minimum=0)
        parts = [self._rest[:count]]
        self._rest = self._rest[count:]
        missing = count - len(parts[0])
        while missing and self._next_chunk < self._reader.num_record_batches:
            values = self._read_chunk()
            parts.append(values[:missing])
            self._rest = values[missing:]
            missing -= len(parts[-1])
        return np.concatenate(parts)

    def _read_chunk(self) -> Any:
        try:
            chunk = self._reader.get_batch_with_custom_metadata(self._next_chunk)
            values = chunk.batch.column(self._name).to_numpy()
            checksum = int(chunk.custom_metadata[self._name])
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            raise _damaged(self._path) from None
        if crc32(values) != checksum:
            raise _damaged(self._path)
        self._next_chunk += 1
        return values


class TraceKeys:
    """The keys of a recorded stream."""

    def __init__(self, path: str | Path) -> None:
        self._column = _TraceColumn(Path(path), "key")
        self.columns = self._column.columns

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys, or as many as are left."""
        keys: Int64Array = self._column.read(count)
        return keys


class TraceArrivals:
    """The arrival times of a recorded stream."""

    def __init__(self, path: str | Path) -> None:
        self._column = _TraceColumn(Path(path), "arrival_seconds")

    def take(self, count: int) -> Float64Array:
        """Return the arrival seconds of the next `count` tuples, or of as many as are left."""
        moments: Float64Array = self._column.read(count)
        return moments


def _open_trace(path: Path) -> Any:
    if not path.is_file():
        raise InvalidSettingError(f"There is no trace at {path}: record one first.")
    try:
        reader = pa.ipc.open_file(pa.OSFile(str(path), "rb"))
    except (pa.ArrowException, OSError):
        raise CorruptTableError(f"{path} is not a complete Arrow file: record the trace again.") from None
    version = (reader.schema.metadata or {}).get(_VERSION_FIELD)
    if version is None:
        raise InvalidSettingError(f"{path} is an Arrow file but not a trace: give a file that was recorded as a trace.")
    if version != str(FORMAT_VERSION).encode():
        raise InvalidSettingError(
            f"{path} is a trace of format {version.decode(errors='replace')}, but this version of semistream reads "
            f"format {FORMAT_VERSION}: record it again."
        )
    types = {field.name: field.type for field in reader.schema}
    if types not in (_TYPES, {"key": _TYPES["key"]}):
        raise _damaged(path)
    return reader


def _damaged(path: Path) -> CorruptTableError:
    return CorruptTableError(f"The trace {path} is damaged: record it again.")
