"""The payload of stream tuples that are inside the join: Arrow batches, addressed by stream position."""

from __future__ import annotations


import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.engine.gather import concatenate, group

_SMALL_ROWS = 1024
_MOST_SMALL = 32


class StreamRows:
    """Keeps the rows of stream tuples from their arrival until they leave, in about `limit_bytes`.

    A batch is kept whole while most of its rows are needed and is then copied without the others, so that what is kept
    is at most about twice what is needed. Not thread-safe.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self._segments: list[_Segment] = []

    @property
    def mean_row_bytes(self) -> float:
        """The mean size of the rows kept."""
        return self.size_bytes / max(1, sum(segment.batch.num_rows for segment in self._segments))

    def __len__(self) -> int:
        """Return the number of rows that have not left."""
        return sum(segment.live_count for segment in self._segments)

    @property
    def is_full(self) -> bool:
        """Whether no more rows should enter; copies what is half needed before it says so."""
        if self.size_bytes >= self.limit_bytes:
            self._compact()
        return self.size_bytes >= self.limit_bytes

    def add(self, first_position: int, batch: pa.RecordBatch) -> None:
        """Keep a batch whose rows have the positions from `first_position` on, above all positions before."""
        if not batch.num_rows:
            return
        self._segments.append(_Segment(first_position, batch))
        self.size_bytes += batch.nbytes
        small = 0
        while small < len(self._segments) and self._segments[-1 - small].batch.num_rows < _SMALL_ROWS:
            small += 1
        if small > _MOST_SMALL:
            self._merge(len(self._segments) - small)

    def settle(self) -> None:
        """Copy the rows of the last batch that are still needed, if others are not or its memory is shared."""
        if self._segments:
            segment = self._segments[-1]
            if segment.kept is None and (segment.is_sparse() or segment.is_slice()):
                self._shrink(segment)
                self._segments = [segment for segment in self._segments if segment.live_count]

    def gather(self, positions: Int64Array, *, release: bool) -> pa.RecordBatch:
        """Return the rows at these positions, at least one, in the order given, and forget them if `release`."""
        starts, order = self._grouped(positions)
        grouped = positions[order]
        pieces = []
        for segment, low, high in zip(self._segments, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if low < high:
                rows = segment.rows_of(grouped[low:high])
                pieces.append(segment.batch.take(pa.array(rows)))
                if release:
                    segment.release(rows)
        if release:
            self._drop_empty()
        collected = concatenate(pieces)
        if len(pieces) == 1:
            return collected
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return collected.take(pa.array(inverse))

    def release(self, positions: Int64Array) -> None:
        """Forget the rows at these positions."""
        starts, order = self._grouped(positions)
        grouped = positions[order]
        for segment, low, high in zip(self._segments, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if low < high:
                segment.release(segment.rows_of(grouped[low:high]))
        self._drop_empty()

    def _grouped(self, positions: Int64Array) -> tuple[Int64Array, Int64Array]:
        firsts = np.array([segment.first_position for segment in self._segments], dtype=np.int64)
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
            self._segments.append(_Segment(small[0].first_position, batch, kept))

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        firsts = [segment.first_position for segment in self._segments]
        assert firsts == sorted(set(firsts))
        assert self.size_bytes == sum(segment.batch.nbytes for segment in self._segments)
        assert all(segment.live_count == int(segment.live.sum()) > 0 for segment in self._segments)


class _Segment:
    def __init__(self, first_position: int, batch: pa.RecordBatch, kept: Int64Array | None = None) -> None:
        self.first_position = first_position
        self.batch = batch
        self.kept = kept
        """The positions of the rows, where they are not consecutive."""
        self.live: UInt8Array = np.ones(batch.num_rows, dtype=np.uint8)
        self.live_count = batch.num_rows

    def rows_of(self, positions: Int64Array) -> Int64Array:
        if self.kept is None:
            return positions - self.first_position
        return np.searchsorted(self.kept, positions)

    def release(self, rows: Int64Array) -> None:
        self.live[rows] = 0
        self.live_count -= len(rows)

    def is_sparse(self) -> bool:
        return self.live_count <= 0.5 * self.batch.num_rows

    def is_slice(self) -> bool:
        return bool(self.batch.get_total_buffer_size() > 1.25 * self.batch.nbytes + 4096)

    def live_positions(self) -> Int64Array:
        rows = np.flatnonzero(self.live)
        return rows + self.first_position if self.kept is None else self.kept[rows]

    def live_batch(self) -> pa.RecordBatch:
        return self.batch.take(pa.array(np.flatnonzero(self.live)))

    def shrink(self) -> None:
        self.kept, self.batch = self.live_positions(), self.live_batch()
        self.live = np.ones(self.batch.num_rows, dtype=np.uint8)
