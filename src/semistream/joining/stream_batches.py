"""Opens whatever rows users have as a stream of Arrow record batches of plain types."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from semistream.core.errors import InvalidSettingError
from semistream.core.plain_types import plain_batches, plain_schema
from semistream.core.spark_frames import is_spark_frame

_WHAT = "give a pyarrow Table, a RecordBatchReader, or an iterable of record batches"


@dataclass(frozen=True)
class StreamBatches:
    """A stream that can be read once; None among its batches means that nothing has come."""

    schema: pa.Schema | None
    """None if it is not known before the first batch."""
    batches: Iterator[pa.RecordBatch | None]
    may_be_silent: bool
    """Whether a batch may be long in coming."""


def open_stream(data: Any, piece_bytes: int) -> StreamBatches:
    """Return the rows of a table, a reader, batches or anything with an Arrow stream, or raise InvalidSettingError.

    Dictionaries, runs and views are turned into plain values, at most about `piece_bytes` at a time.
    """
    schema, batches, may_be_silent = _opened(data)
    known = plain_schema(schema) if schema is not None else None
    return StreamBatches(known, _plain(batches, piece_bytes), may_be_silent)


def _opened(data: Any) -> tuple[pa.Schema | None, Iterator[Any], bool]:
    if isinstance(data, pa.RecordBatch):
        return data.schema, iter([data]), False
    if isinstance(data, pa.Table):
        return data.schema, iter(data.to_batches()), False
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, iter(data), True
    if is_spark_frame(data):
        raise InvalidSettingError("ss.join does not take Spark DataFrames: use ss.enrich, which does.")
    if isinstance(data, (str, bytes, os.PathLike)):
        raise InvalidSettingError(
            "A path is not a stream of record batches: open it, as pyarrow.dataset.dataset(path).to_batches() does."
        )
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, iter(reader), True
    if isinstance(data, list | tuple):
        for batch in data:
            _check(batch)
        return next((batch.schema for batch in data if batch is not None), None), iter(data), False
    if isinstance(data, Iterable):
        return None, iter(data), True
    raise InvalidSettingError(f"An object of type {type(data).__name__} is not a stream of record batches: {_WHAT}.")


def _plain(batches: Iterator[Any], piece_bytes: int) -> Iterator[pa.RecordBatch | None]:
    for batch in batches:
        _check(batch)
        if batch is None:
            yield None
        else:
            yield from plain_batches(batch, piece_bytes)
        del batch  # while the next one is awaited


def _check(batch: Any) -> None:
    if batch is not None and not isinstance(batch, pa.RecordBatch):
        raise InvalidSettingError(f"An object of type {type(batch).__name__} is not a record batch: {_WHAT}.")
