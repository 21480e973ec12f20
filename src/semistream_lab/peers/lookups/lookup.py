"""A peer that looks rows up in a database, through a cache in each Python worker."""

from __future__ import annotations

import functools
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from semistream_lab.peers.contract import Bench
from semistream_lab.peers.data import PAYLOAD, TEXT_BYTES
from semistream_lab.peers.lookups.lru_rows import LruRows, Row
from semistream_lab.peers.streaming import SparkPeer

if TYPE_CHECKING:
    import pandas as pd

_SAMPLE: Row = (2**40, 0.5, 2**40, "x" * TEXT_BYTES)
_NUMBERS = struct.Struct("<qdq")
_TYPES = (LongType(), DoubleType(), LongType(), StringType())


class RowSource(ABC):
    """A database that answers keys with rows.

    Must be hashable and cheap to send to a worker; it connects at its first use there and stays connected.
    """

    @abstractmethod
    def rows(self, keys: Sequence[int]) -> dict[int, Row]:
        """Return the rows of the keys that there are; keys do not repeat."""


class LookupPeer(SparkPeer):
    """`mapInPandas` that asks a database for all keys of a frame that its cache does not have."""

    keeps_to_memory = True

    @abstractmethod
    def source(self) -> RowSource:
        """Return the database, which `prepare` has filled."""

    def enriched(self, stream: DataFrame, bench: Bench) -> DataFrame:
        """Return the stream with the columns that were looked up."""
        added = [StructField(name, kind) for name, kind in zip(PAYLOAD, _TYPES, strict=True)]
        schema = StructType([*stream.schema.fields, *added])
        looked_up = functools.partial(_looked_up, self.source(), bench.data.situation.memory_bytes)
        return stream.mapInPandas(looked_up, schema)


def packed(row: Row) -> bytes:
    """Return a row as a value of a store that knows bytes only."""
    return _NUMBERS.pack(*row[:3]) + row[3].encode()


def unpacked(value: bytes) -> Row:
    """Return the row that was packed."""
    supplier, price, stock = _NUMBERS.unpack_from(value)
    return supplier, price, stock, value[_NUMBERS.size :].decode()


def rows_of(chunk: pa.Table) -> Iterator[tuple[int, Row]]:
    """Return the keys and rows of a piece of the master table."""
    keys, *payload = (chunk.column(name).to_pylist() for name in ("key", *PAYLOAD))
    return zip(keys, zip(*payload, strict=True), strict=True)


_caches: dict[tuple[RowSource, int], LruRows] = {}
"""Of this worker process, which Spark uses again for later micro-batches."""


def _looked_up(source: RowSource, memory_bytes: int, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Add the columns of the master rows to frames, as a careful user would write it."""
    name = (source, memory_bytes)
    if name not in _caches:
        _caches[name] = LruRows(memory_bytes, _SAMPLE)
    cache = _caches[name]
    for frame in frames:
        keys = frame["key"].unique().tolist()
        rows = cache.rows_of(keys)
        missing = [key for key in keys if key not in rows]
        if missing:
            fetched = source.rows(missing)
            cache.add(fetched)
            rows.update(fetched)
        nothing = (None,) * len(PAYLOAD)
        columns = zip(*(rows.get(key, nothing) for key in frame["key"].tolist()), strict=True)
        yield frame.assign(**dict(zip(PAYLOAD, columns, strict=True)))
