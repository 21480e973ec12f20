"""Looks up rows of a paged table by their codes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.errors import CorruptTableError
from semistream.store.found_rows import ByteValues, FixedValues, FoundColumn, FoundRows, RowReader
from semistream.store.paged.format.page_columns import BITS, BYTES, FIXED, Gathering
from semistream.store.paged.format.page_head import HEAD_SIZE
from semistream.store.paged.read import row_look_up as look_ups
from semistream.store.paged.read.far_pages import FarPages, Portion
from semistream.store.paged.read.fetching import announce_extents
from semistream.store.paged.read.open_files import OpenFiles
from semistream.store.paged.versions.page_index import PageIndex

_SCRATCH_BYTES = 65_536
_REQUESTS_TIMED, _REQUESTS_AT_ONCE = 32, 512
"""How many requests are made before Python may answer a signal; the first ones are timed."""
_STRING_PLACE_BYTES = 12
_STRINGS_SHARE = 0.6
_CACHED_SECONDS = 20e-6
"""A request takes longer than this only if it comes from a disk: then the others are announced to the system."""


def _of_files(count: int) -> Portion:
    return Portion(count, np.full(count, -1, dtype=np.int64))


class FileRowReader(RowReader):
    """Copies rows of some columns out of pages, within about `max_bytes`; memory is kept from look-up to look-up.

    A single code always fits: memory grows for the rows of a page, whose size the caller has allowed. Pages come from
    the files of the table, or from `far` away, some of them at a time.
    """

    def __init__(
        self,
        entries: PageIndex,
        code_bytes: int,
        gathering: Gathering,
        max_bytes: int,
        *,
        files: OpenFiles | None,
        far: FarPages | None = None,
        raise_fault: Callable[[int], None],
    ) -> None:
        self._entries = entries
        self._code_bytes = code_bytes
        self._gathering = gathering
        self._max_bytes = max_bytes
        self._files = files
        self._far = far
        self._raise_fault = raise_fault
        self._kinds: list[int] = gathering.places[:, 2].tolist()
        self._widths = [
            width if kind == FIXED else 1 if kind == BITS else 0
            for kind, width in zip(self._kinds, gathering.places[:, 3].tolist(), strict=True)
        ]
        strings = sum(kind >= BYTES for kind in self._kinds)
        self._has_strings = strings > 0
        self._row_bytes = sum(self._widths) + len(self._kinds) + _STRING_PLACE_BYTES * strings + 8
        self._places = np.zeros((len(self._kinds), 5), dtype=np.int64)
        self._places[:, :4] = gathering.places
        self._head = np.zeros(HEAD_SIZE, dtype=np.int64)
        self._parts = np.zeros((max(1, len(self._kinds)), look_ups.PART_SIZE), dtype=np.int64)
        self._scratch: UInt8Array = np.empty(_SCRATCH_BYTES, dtype=np.uint8)
        self._rows = 0
        self._heap: UInt8Array = np.empty(0, dtype=np.uint8)

    def look_up(self, codes: Int64Array, pages: Int32Array) -> FoundRows:
        """Return the rows of the codes, or of as many as fit."""
        self._make_room(len(codes))
        state = np.zeros(look_ups.STATE_SIZE, dtype=np.int64)
        bounds = np.zeros(len(codes) + 1, dtype=np.int64)
        done, is_announced, is_explained, asked_again = 0, self._far is not None, False, -1
        portion = _of_files(len(codes)) if self._far is None else Portion(0)
        while True:
            if done == portion.end < len(codes):
                assert self._far is not None
                portion = self._far.next_portion(pages, done)
            requests = _REQUESTS_AT_ONCE if is_announced else _REQUESTS_TIMED
            began = time.perf_counter()
            done, ended = self._continue(codes, pages, done, requests, portion, bounds, state)
            if ended == look_ups.PAUSE:
                if not is_announced:
                    is_announced = True
                    if time.perf_counter() - began > requests * _CACHED_SECONDS:
                        self._announce(pages[done:])
            elif ended == look_ups.LONG_PAGE:
                self._scratch = np.empty(int(self._entries.lengths[pages[done]]), dtype=np.uint8)
            elif ended == look_ups.FULL and not done:
                self._grow(int(pages[0]))
                state[look_ups.ROW_COUNT] = state[look_ups.HEAP_USED] = 0
            elif ended == look_ups.FAULT and self._far is not None and asked_again < int(pages[done]):
                # A copy is damaged, or has gone.
                asked_again = int(pages[done])
                portion = self._far.page_again(pages, done)
            elif ended == look_ups.FAULT:
                # A signal may have cut a read short: what a second look does not find wrong is tried once more.
                self._raise_fault(int(pages[done]))
                if is_explained:
                    raise CorruptTableError("A page of the master table cannot be read: verify the table.")
                is_explained = True
            elif ended == look_ups.FULL or done == len(codes):
                break
        self.page_reads += int(state[look_ups.PAGES])
        self.read_requests += int(state[look_ups.REQUESTS])
        self.bytes_read += int(state[look_ups.BYTES_READ])
        return FoundRows(bounds[: done + 1], self._columns(int(bounds[done])), done)

    def _continue(
        self,
        codes: Int64Array,
        pages: Int32Array,
        first: int,
        requests: int,
        portion: Portion,
        bounds: Int64Array,
        state: Int64Array,
    ) -> tuple[int, int]:
        entries = self._entries
        descriptors = portion.descriptors if self._files is None else self._files.borrow(())
        try:
            done, ended = look_ups.look_up_rows(
                descriptors,
                entries.addresses,
                entries.lengths,
                entries.row_counts,
                entries.checksums,
                self._code_bytes,
                codes[: portion.end],
                pages[: portion.end],
                portion.held,
                portion.memory,
                first,
                requests,
                self._places,
                self._gathering.nodes,
                self._gathering.buffers,
                self._scratch,
                self._head,
                self._parts,
                self._fixed,
                self._valid,
                self._starts,
                self._sizes,
                self._heap,
                bounds,
                state,
            )
        finally:
            if self._files is not None:
                self._files.give_back(())
        return int(done), int(ended)

    def _make_room(self, code_count: int) -> None:
        """Have memory for a row of each code and for strings, but no more than is allowed."""
        strings_bytes = int(_STRINGS_SHARE * self._max_bytes) if self._has_strings else 0
        wanted = max(1, min(code_count, (self._max_bytes - strings_bytes) // self._row_bytes))
        if wanted > self._rows:
            self._have_rows(wanted)
        if len(self._heap) < strings_bytes:
            self._heap = np.empty(strings_bytes, dtype=np.uint8)

    def _grow(self, page: int) -> None:
        """Have memory for all rows of a page."""
        self._have_rows(max(self._rows, int(self._entries.row_counts[page])))
        if len(self._heap) < int(self._entries.lengths[page]):
            self._heap = np.empty(int(self._entries.lengths[page]), dtype=np.uint8)

    def _have_rows(self, rows: int) -> None:
        self._rows = rows
        sizes = [-(-rows * width // 64) * 64 for width in self._widths]
        self._places[:, 4] = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
        self._fixed: UInt8Array = np.empty(sum(sizes), dtype=np.uint8)
        self._valid: UInt8Array = np.empty((len(self._kinds), rows), dtype=np.uint8)
        # Columns of fixed width never touch theirs, so that it takes no memory.
        string_rows = rows if self._has_strings else 0
        self._starts: Int64Array = np.empty((len(self._kinds), string_rows), dtype=np.int64)
        self._sizes: Int32Array = np.empty((len(self._kinds), string_rows), dtype=np.int32)

    def _columns(self, count: int) -> tuple[FoundColumn, ...]:
        columns: list[FoundColumn] = []
        for column, (kind, width) in enumerate(zip(self._kinds, self._widths, strict=True)):
            if kind >= BYTES:
                columns.append(ByteValues(self._heap, self._starts[column, :count], self._sizes[column, :count]))
                continue
            at = int(self._places[column, 4])
            valid = self._valid[column, :count]
            columns.append(FixedValues(self._fixed[at : at + count * width], width, None if valid.all() else valid))
        return tuple(columns)

    def _announce(self, pages: Int32Array) -> None:
        assert self._files is not None
        distinct = pages[np.flatnonzero(np.diff(pages, prepend=-1))]
        extents = np.zeros((len(distinct), 3), dtype=np.int64)
        extents[:, 0] = self._entries.addresses[distinct]
        extents[:, 1] = self._entries.lengths[distinct]
        descriptors = self._files.borrow(())
        try:
            announce_extents(descriptors, extents, 0, len(extents))
        finally:
            self._files.give_back(())
