"""Columns of nested types by slot: Arrow batches that are cleaned like a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.arrow_row_sizes import row_bits
from semistream.engine.rows.gather import gather

_MAX_SEGMENTS = 48
_LARGEST = np.iinfo(np.int32).max


@dataclass
class _Segment:
    batch: pa.RecordBatch
    live: int


class SegmentedColumns:
    """Keeps the nested columns of a row for each slot, within about `limit_bytes`.

    Rows arrive in batches and are never changed; a slot that is overwritten leaves a dead row behind. When segments get
    many or dead rows take too much, the worst segments are written anew without their dead rows. Not thread-safe.
    """

    def __init__(self, slots: int, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self._segments: list[_Segment | None] = []
        self._segment_of = np.full(slots, -1, dtype=np.int32)
        self._row_of = np.zeros(slots, dtype=np.int32)
        self._size_of = np.zeros(slots, dtype=np.int32)

    def free_bytes(self, wanted_bytes: int) -> int:
        """Return how many more bytes fit, after cleaning if fewer do than are wanted."""
        if self.size_bytes + wanted_bytes > self.limit_bytes:
            self._clean()
        return self.limit_bytes - self.size_bytes

    def add_sizes(self, slots: Int64Array, sizes: Int64Array) -> None:
        """Add the bytes of the row of each slot to its size."""
        sizes += np.where(self._segment_of[slots] >= 0, self._size_of[slots], 0)

    def move(self, slots: Int64Array, targets: Int64Array) -> None:
        """Let empty slots hold the rows of others, which are empty afterwards."""
        for held in (self._segment_of, self._row_of, self._size_of):
            held[targets] = held[slots]
        self._segment_of[slots] = -1

    def put(self, slots: Int64Array, rows: pa.RecordBatch) -> None:
        """Let each slot hold the row beside it instead of what it held."""
        self.drop(slots)
        self._append(slots, rows)
        if sum(segment is not None for segment in self._segments) > _MAX_SEGMENTS:
            self._clean()

    def drop(self, slots: Int64Array) -> None:
        """Let slots hold nothing."""
        held = self._segment_of[slots]
        for index, count in enumerate(np.bincount(held[held >= 0]).tolist()):
            segment = self._segments[index]
            if count and segment is not None:
                segment.live -= count
                if segment.live == 0:
                    self._free(index)
        self._segment_of[slots] = -1

    def take(self, slots: Int64Array) -> pa.RecordBatch:
        """Return the columns of slots, at least one, in the order given."""
        rows, order = self._by_segment(slots)
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return rows.take(pa.array(inverse))

    def _by_segment(self, slots: Int64Array) -> tuple[pa.RecordBatch, Int64Array]:
        batches = [segment.batch if segment else None for segment in self._segments]
        return gather(batches, self._segment_of[slots], self._row_of[slots].astype(np.int64))

    def _append(self, slots: Int64Array, rows: pa.RecordBatch) -> None:
        segment = _Segment(rows, len(slots))
        index = next((i for i, held in enumerate(self._segments) if held is None), len(self._segments))
        if index == len(self._segments):
            self._segments.append(segment)
        else:
            self._segments[index] = segment
        self._segment_of[slots] = index
        self._row_of[slots] = np.arange(len(slots), dtype=np.int32)
        self._size_of[slots] = np.minimum(-(-row_bits(rows) // 8), _LARGEST)
        self.size_bytes += rows.nbytes

    def _free(self, index: int) -> None:
        segment = self._segments[index]
        assert segment is not None
        self.size_bytes -= segment.batch.nbytes
        self._segments[index] = None

    def _clean(self) -> None:
        """Write small and half-dead segments anew as one, at most a quarter of the limit at a time."""
        worth = [
            (segment.live / segment.batch.num_rows, segment.batch.nbytes, index)
            for index, segment in enumerate(self._segments)
            if segment
            and (
                segment.batch.nbytes <= self.limit_bytes // _MAX_SEGMENTS
                or segment.live < 0.75 * segment.batch.num_rows
            )
        ]
        chosen: list[int] = []
        live_bytes = 0.0
        for live_share, size_bytes, index in sorted(worth):
            live_bytes += live_share * size_bytes
            if chosen and live_bytes > self.limit_bytes / 4:
                break
            chosen.append(index)
        slots = np.flatnonzero(np.isin(self._segment_of, chosen)).astype(np.int64)
        if not len(slots):
            return
        rows, order = self._by_segment(slots)
        for index in chosen:
            self._free(index)
        self._append(slots[order], rows)

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        held = [segment for segment in self._segments if segment]
        live = np.bincount(self._segment_of[self._segment_of >= 0], minlength=len(self._segments)).tolist()
        assert live == [segment.live if segment else 0 for segment in self._segments]
        assert self.size_bytes == sum(segment.batch.nbytes for segment in held)
        assert all(segment.live > 0 for segment in held)
