"""Sorts coded rows by their code in bounded memory: sorted runs on the disk, then a merge of many runs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from semistream.core import durable_files as files
from semistream.core.arrays import Int64Array
from semistream.store.paged.format.page import decode, encode
from semistream.store.paged.write.packing import codes_of
from semistream.store.paged.write.writer import AppendFile
from semistream.store.places.place import NewObject, Place

_FAN_IN = 64
_LARGEST_RUN_BYTES = 1 << 30  # Arrow strings have 32-bit offsets, so that a run must stay below 2 GB.
_ROW_OVERHEAD_BYTES = 24  # a code, its place in the order, and the sort's own memory


def piece_bytes_for(memory_bytes: int) -> int:
    """Return the size in which rows are handled so that a merge of many runs stays inside the memory."""
    return min(max(memory_bytes // (4 * _FAN_IN), 1 << 15), 1 << 20)


class SortedBlocks(Protocol):
    """Sorted coded rows that are given block by block."""

    @property
    def has_more(self) -> bool:
        """Whether there is another block."""

    def next_block(self) -> pa.RecordBatch:
        """Return the rows of the next block."""


class Run:
    """Sorted coded rows on the disk, read back block by block."""

    def __init__(
        self,
        written: NewObject,
        blocks: list[tuple[int, int, list[int]]],
        read_rows: Callable[[pa.Buffer, list[int]], pa.RecordBatch],
    ) -> None:
        self._written = written
        self._blocks = blocks
        self._read_rows = read_rows
        self._next = 0

    @property
    def has_more(self) -> bool:
        """Whether there is another block."""
        return self._next < len(self._blocks)

    def next_block(self) -> pa.RecordBatch:
        """Return the rows of the next block."""
        offset, length, starts = self._blocks[self._next]
        self._next += 1
        buffer = pa.allocate_buffer(length)
        if files.read_into(self._written.descriptor, memoryview(buffer).cast("B"), offset) < length:
            raise OSError(f"{self._written.name} lost bytes while it was in use")
        return self._read_rows(buffer, starts)

    def rewind(self) -> None:
        """Begin with the first block again."""
        self._next = 0

    def close(self) -> None:
        """Remove what is on the disk."""
        self._written.discard()


class ExternalSort:
    """Takes coded rows in any order and gives them back by ascending code; rows of one code keep their order.

    Holds at most about `memory_bytes`; what does not fit goes to temporary files. With `repeatable` everything does,
    and all rows may be asked for again.
    """

    def __init__(
        self, place: Place, token: str, schema: pa.Schema, memory_bytes: int, *, repeatable: bool = False
    ) -> None:
        self._place = place
        self._token = token
        self._repeatable = repeatable
        self._schema = schema
        self._run_bytes = min(memory_bytes // 3, _LARGEST_RUN_BYTES)
        self._piece_bytes = piece_bytes_for(memory_bytes)
        self._runs: list[Run] = []
        self._run_count = 0
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Take some rows."""
        self._held.append(rows)
        self._held_bytes += rows.nbytes + _ROW_OVERHEAD_BYTES * rows.num_rows
        if self._held_bytes >= self._run_bytes:
            self._spill()

    def adopt(self, run: Run) -> None:
        """Take a run that is on the disk already; its rows come before all that are added later."""
        self._runs.append(run)

    def sorted_rows(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in order; may be called once, unless it is repeatable."""
        if not self._runs and not self._repeatable:
            yield from self._sorted_held()
            return
        self._spill()
        for run in self._runs:
            run.rewind()
        while len(self._runs) > _FAN_IN:
            groups = [self._runs[start : start + _FAN_IN] for start in range(0, len(self._runs), _FAN_IN)]
            self._runs = [self._merged_run(group) if len(group) > 1 else group[0] for group in groups]
        yield from self._merged(self._runs)

    def close(self) -> None:
        """Remove all temporary files."""
        for run in self._runs:
            run.close()
        self._runs = []
        self._held = []

    def _spill(self) -> None:
        if self._held:
            self._runs.append(self._written(self._sorted_held()))
            pa.default_memory_pool().release_unused()

    def _sorted_held(self) -> Iterator[pa.RecordBatch]:
        held, self._held, self._held_bytes = self._held, [], 0
        if not held:
            return
        codes = np.concatenate([codes_of(rows) for rows in held])
        whole = pa.concat_batches(held)
        held.clear()
        order = np.argsort(codes, kind="stable")
        del codes
        step = max(1, whole.num_rows * self._piece_bytes // max(1, whole.nbytes))
        for start in range(0, len(order), step):
            yield whole.take(pa.array(order[start : start + step]))

    def _merged_run(self, runs: list[Run]) -> Run:
        merged = self._written(self._merged(runs))
        for run in runs:
            run.close()
        return merged

    def _merged(self, runs: list[Run]) -> Iterator[pa.RecordBatch]:
        merged_bytes = 0
        for rows in merged_by_code(runs):
            yield rows
            merged_bytes += rows.nbytes
            if merged_bytes >= self._run_bytes // 4:
                # Arrow's allocator keeps freed blocks for some time, which counts against the memory all the same.
                pa.default_memory_pool().release_unused()
                merged_bytes = 0

    def _written(self, rows: Iterable[pa.RecordBatch]) -> Run:
        self._run_count += 1
        written = self._place.scratch(f"{self._token}-run-{self._run_count}")
        file = AppendFile(written)
        try:
            blocks: list[tuple[int, int, list[int]]] = []
            for piece in rows:
                block = encode(piece)
                blocks.append((file.append(block), block.size, [0]))
            file.flush()
        except BaseException:
            file.discard()
            raise
        return Run(written, blocks, self._read_block)

    def _read_block(self, buffer: pa.Buffer, starts: list[int]) -> pa.RecordBatch:
        return decode(buffer, starts, self._schema)[0]


class _Cursor:
    """The rows of a run that were read and not yet merged."""

    def __init__(self, run: SortedBlocks) -> None:
        self.run = run
        self.rows = run.next_block()
        self.codes: Int64Array = codes_of(self.rows)

    def extend(self) -> None:
        """Read another block behind the rows that are left."""
        block = self.run.next_block()
        self.rows = pa.concat_batches([self.rows, block]) if self.rows.num_rows else block
        self.codes = codes_of(self.rows)

    def taken_below(self, code: int) -> pa.RecordBatch:
        """Return the rows whose code is below `code` and keep the others."""
        count = int(np.searchsorted(self.codes, code, side="left"))
        taken, self.rows, self.codes = self.rows.slice(0, count), self.rows.slice(count), self.codes[count:]
        return taken


def merged_by_code(runs: Sequence[SortedBlocks]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted runs in order; among equal codes those of an earlier run come first."""
    cursors = [_Cursor(run) for run in runs if run.has_more]
    while True:
        unfinished = [cursor for cursor in cursors if cursor.run.has_more]
        if not unfinished:
            break
        # Below the smallest last code that was read nothing is missing.
        complete_below = min(int(cursor.codes[-1]) for cursor in unfinished)
        yield from _in_order([cursor.taken_below(complete_below) for cursor in cursors])
        for cursor in unfinished:
            if cursor.codes[-1] == complete_below:
                cursor.extend()
    yield from _in_order([cursor.rows for cursor in cursors])


def _in_order(parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = [part for part in parts if part.num_rows]
    if len(parts) <= 1:
        yield from parts
        return
    codes = np.concatenate([codes_of(part) for part in parts])
    yield pa.concat_batches(parts).take(pa.array(np.argsort(codes, kind="stable")))
