"""The codes of a chunk that the cache does not have, and their keys where a store has to be asked by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.keys import KeyCodec
from semistream.store.found_rows import AskedKeys


@dataclass(frozen=True)
class Misses:
    """Codes that the cache does not have, with the rows of the chunk that ask for them."""

    codes: Int64Array
    """Each code once, ascending."""
    asks: Int64Array
    """How many rows ask for each."""
    rows: Int64Array
    """These rows, code after code."""

    @classmethod
    def of(cls, codes: Int64Array, rows: Int64Array) -> Misses:
        """Return the misses of some rows of a chunk; costs one sort."""
        asked = codes[rows]
        order = np.argsort(asked)
        asked = asked[order]
        starts = np.flatnonzero(asked[1:] != asked[:-1]) + 1 if len(asked) else np.empty(0, dtype=np.int64)
        bounds = np.concatenate(([0], starts, [len(asked)])) if len(asked) else np.zeros(1, dtype=np.int64)
        return cls(asked[bounds[:-1]], np.diff(bounds), rows[order])

    @property
    def firsts(self) -> Int64Array:
        """Where in `rows` those of each code start."""
        starts: Int64Array = np.cumsum(self.asks) - self.asks
        return starts

    def keys(self, of_chunk: ChunkKeys) -> AskedKeys:
        """Return the keys of the codes: nearly always one a code, since hashes of different keys hardly ever meet."""
        firsts = self.rows[self.firsts]
        others = np.setdiff1d(np.arange(len(self.rows)), self.firsts, assume_unique=True)
        of_others = np.repeat(np.arange(len(self.codes)), self.asks)[others]
        differ = others[~of_chunk.same(self.rows[others], firsts[of_others])]
        if not len(differ):
            return AskedKeys(of_chunk.take(firsts), np.arange(len(self.codes) + 1))
        places = np.sort(np.concatenate([self.firsts, differ]))
        codes = np.repeat(np.arange(len(self.codes)), self.asks)[places]
        taken = of_chunk.take(self.rows[places])
        values = list(zip(codes.tolist(), *(column.to_pylist() for column in taken), strict=True))
        once = np.array(sorted({value: place for place, value in reversed(list(enumerate(values)))}.values()))
        columns = tuple(column.take(pa.array(once)) for column in taken)
        return AskedKeys(columns, np.searchsorted(codes[once], np.arange(len(self.codes) + 1)))


class ChunkKeys:
    """The key columns of a chunk of stream rows, by the numbers of rows."""

    def __init__(self, batches: Sequence[pa.RecordBatch], names: Sequence[str], codec: KeyCodec) -> None:
        columns = [[batch.column(batch.schema.get_field_index(name)) for batch in batches] for name in names]
        self._columns = [pa.chunked_array(arrays) for arrays in columns]
        self._codec = codec

    def take(self, rows: Int64Array) -> tuple[pa.Array, ...]:
        """Return the keys of rows."""
        return tuple(only_array(column.take(pa.array(rows))) for column in self._columns)

    def same(self, rows: Int64Array, others: Int64Array) -> BoolArray:
        """Say for each row whether it has the key of another."""
        if not len(rows):
            return np.ones(0, dtype=np.bool_)
        return self._codec.same_key(self.take(rows), self.take(others))


def only_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
