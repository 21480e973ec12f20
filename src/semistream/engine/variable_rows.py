"""Columns without a fixed width of stream tuples that wait: Arrow batches, addressed by stream position."""

from __future__ import annotations


import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.engine.gather import concatenate, group

_SMALL_ROWS = 1024
_MOST_SMALL = 32


class VariableRows:
    """Keeps strings, lists and the like of stream tuples from their entry until they leave, in about `limit_bytes`.

    A batch is kept whole while most of its rows are needed and is then copied without the others, so that what is kept
    is at most about twice what is needed. Not thread-safe.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self._segments: list[_Segment] = []

    def __len__(self) -> int:
        """Return the number of rows that have not left."""
        return sum(segment.live_count for segment in self._segments)

    @property
    def is_full(self) -> bool:
        """Whether no more rows should enter; copies what is half needed before it says so."""
        if self.size_bytes >= self.limit_bytes:
            self._compact()
        return self.size_bytes >= self.limit_bytes

    def add(self, positions: Int64Array, batch: pa.RecordBatch) -> None:
        """Keep rows whose positions ascend, above all positions before."""
        self._segments.append(_Segment(positions, batch))
        self.size_bytes += batch.nbytes
        small = 0
        while small < len(self._segments) and self._segments[-1 - small].batch.num_rows < _SMALL_ROWS:
            small += 1
        if small > _MOST_SMALL:
            self._merge(len(self._segments) - small)

    def take(self, positions: Int64Array) -> pa.RecordBatch:
        """Return the rows at these positions, at least one, in the order given."""
        starts, order = self._grouped(positions)
        grouped = positions[order]
        pieces = []
        for segment, low, high in zip(self._segments, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if low < high:
                pieces.append(segment.batch.take(pa.array(segment.rows_of(grouped[low:high]))))
        collected = concatenate(pieces)
        if len(pieces) == 1:
            return collected
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return collected.take(pa.array(inverse))

    def release(self, positions: Int64Array) -> None:
        """Forget the rows at these positions."""
        if not len(positions):
            return
        starts, order = self._grouped(positions)
        grouped = positions[order]
        for segment, low, high in zip(self._segments, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if low < high:
                segment.release(segment.rows_of(grouped[low:high]))
        self._drop_empty()

    def _grouped(self, positions: Int64Array) -> tuple[Int64Array, Int64Array]:
        firsts = np.array([segment.positions[0] for segment in self._segments], dtype=np.int64)
        which = np.searchsorted(firsts, positions, side="right") - 1
        return group(which.astype(np.int32), len(firsts))

    def _drop_empty(self) -> None:
        if any(not segment.live_count for segment in self._segments):
            self.size_bytes -= sum(segment.batch.nbytes for segment in self._segments if not segment.live_count)
            self._segments = [segment for segment in self._segments if segment.live_count]

    def _compact(self) -> None:
        for segment in self._segments:
            if segment.is_sparse():
                self._shrink(segment)

    def _shrink(self, segment: _Segment) -> None:
        self.size_bytes -= segment.batch.nbytes
        segment.shrink()
        self.size_bytes += segment.batch.nbytes

    def _merge(self, start: int) -> None:
        """Make one segment of the small ones at the end."""
        small = self._segments[start:]
        kept = np.concatenate([segment.live_positions() for segment in small])
        batch = concatenate([segment.live_batch() for segment in small])
        self.size_bytes += batch.nbytes - sum(segment.batch.nbytes for segment in small)
        del self._segments[start:]
        if len(kept):
            self._segments.append(_Segment(kept, batch))

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        firsts = [int(segment.positions[0]) for segment in self._segments]
        assert firsts == sorted(set(firsts))
        assert self.size_bytes == sum(segment.batch.nbytes for segment in self._segments)
        assert all(segment.live_count == int(segment.live.sum()) > 0 for segment in self._segments)


class _Segment:
    def __init__(self, positions: Int64Array, batch: pa.RecordBatch) -> None:
        self.positions = positions
        self.batch = batch
        self.live: UInt8Array = np.ones(batch.num_rows, dtype=np.uint8)
        self.live_count = batch.num_rows

    def rows_of(self, positions: Int64Array) -> Int64Array:
        return np.searchsorted(self.positions, positions)

    def release(self, rows: Int64Array) -> None:
        self.live[rows] = 0
        self.live_count -= len(rows)

    def is_sparse(self) -> bool:
        return self.live_count <= 0.5 * self.batch.num_rows

    def live_positions(self) -> Int64Array:
        return self.positions[np.flatnonzero(self.live)]

    def live_batch(self) -> pa.RecordBatch:
        return self.batch.take(pa.array(np.flatnonzero(self.live)))

    def shrink(self) -> None:
        self.positions, self.batch = self.live_positions(), self.live_batch()
        self.live = np.ones(self.batch.num_rows, dtype=np.uint8)
