"""Parts of the master table whose pages are in memory as a whole, so that they need not be read, for bare keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from semistream.core.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from semistream.core.code_table import CodeTable, find_slot
from semistream.core.compile import kernel

_MIN_PARTS, _MAX_PARTS = 16, 256
_LATENCIES = 2.0
"""A part has so many times the bytes that come in the latency of a request: reading beside it costs little more."""
_ROOM = 1.02
"""Pages may have a few more rows than the mean."""


def part_page_groups(page_group_count: int, page_group_bytes: float, latency_bytes: float) -> int:
    """Return how many page groups a part of the table has."""
    wanted = int(_LATENCIES * latency_bytes / max(1.0, page_group_bytes))
    return max(1, -(-page_group_count // _MAX_PARTS), min(wanted, page_group_count // _MIN_PARTS))


class KeptPages:
    """Parts of the table, runs of neighbouring page groups, whose codes are in memory.

    What is asked of each part is counted, whether it is kept or not. Pages come in as they are read anyway, and never
    more than there is room for.
    """

    ROW_BYTES = 56
    """What the code of a row takes at most, in a table of any size, also while that changes its size."""

    def __init__(self, page_group_count: int, part_page_groups: int, rows_per_page_group: float) -> None:
        self.part_page_groups = part_page_groups
        self.rows_per_page_group = rows_per_page_group
        self.parts = -(-page_group_count // part_page_groups)
        self.page_groups = np.full(self.parts, part_page_groups, dtype=np.int64)
        self.page_groups[-1] = page_group_count - part_page_groups * (self.parts - 1)
        self.wanted = np.zeros(self.parts, dtype=np.bool_)
        """The parts whose pages are kept when they are read."""
        self.limit = 0
        """How many page groups may be kept."""
        self.demand = np.zeros(self.parts, dtype=np.float64)
        """How many recent tuples asked for each part that no single cached tuple answered."""
        self.seen = 0.0
        """How many recent tuples were looked for."""
        self.locate: Callable[[Int64Array], Int32Array] | None = None
        """Finds the page group of codes."""
        self._kept = np.zeros(page_group_count, dtype=np.bool_)
        self._table = CodeTable(0)
        self._capacity = 0
        self._count = 0

    @property
    def row_count(self) -> int:
        """How many rows are kept."""
        return self._count

    def parts_of(self, codes: Int64Array) -> Int64Array:
        """Return the part that has the row of each code, if any has."""
        assert self.locate is not None
        return self.locate(codes).astype(np.int64) // self.part_page_groups

    def want(self, parts: BoolArray) -> None:
        """Keep these parts from now on, as their pages are read, and no others; as many page groups as before."""
        self.wanted = parts.copy()
        self._hold_again()

    def allow(self, page_groups: int) -> None:
        """Keep so many page groups at most, at least as many as there are."""
        self.limit = page_groups
        self._hold_again()

    def _hold_again(self) -> None:
        """Hold what is there and wanted in a table of the right size."""
        assert self.locate is not None
        codes = self._table.parts[0][self._table.parts[1] >= 0]
        page_groups = self.locate(codes)
        stays = self.wanted[page_groups // self.part_page_groups]
        codes, page_groups = codes[stays], page_groups[stays]
        self._kept[:] = False
        self._kept[page_groups] = True
        self._capacity = max(len(codes), int(_ROOM * self.rows_per_page_group * self.limit))
        self._table = CodeTable(0)  # freed before the new one is made
        self._table = CodeTable(self._capacity)
        self._count = 0
        self._insert(codes)

    def take(self, codes: Int64Array) -> None:
        """Keep those of whole pages that were read which are wanted."""
        assert self.locate is not None
        if not self.limit or not self.wanted.any():
            return
        page_groups = self.locate(codes)
        is_new = self.wanted[page_groups // self.part_page_groups] & ~self._kept[page_groups]
        codes, page_groups = codes[is_new], page_groups[is_new]
        room = self._capacity - self._count
        if len(codes) > room:  # a page group comes as a whole or not at all
            ends = np.flatnonzero(np.diff(page_groups, append=-1) != 0) + 1
            fitting = int(np.searchsorted(ends, room, side="right"))
            end = int(ends[fitting - 1]) if fitting else 0
            codes, page_groups = codes[:end], page_groups[:end]
        self._kept[page_groups] = True
        self._insert(codes)

    def find(self, codes: Int64Array, page_groups: Int32Array, slots: Int32Array, slot: int, absent_slot: int) -> None:
        """Change the slots of tuples whose page is kept: to `slot` if it has their code, else to `absent_slot`."""
        if self._count:
            _find(*self._table.parts, codes, page_groups, self._kept, slots, slot, absent_slot)

    def note(self, page_groups: Int32Array, slots: Int32Array) -> int:
        """Count what tuples asked for; return how many of them kept pages have answered."""
        self.seen += len(slots)
        return int(_note(page_groups, slots, self._kept, self.part_page_groups, self.demand))

    def note_missed(self, page_groups: Int32Array, count: int) -> None:
        """Count what the tuples asked for that nothing has answered, of so many in all, while no page is kept."""
        self.seen += count
        _note_missed(page_groups, self.part_page_groups, self.demand)

    def fade(self, share: float) -> None:
        """Count only a share of what was asked for."""
        self.demand *= share
        self.seen *= share

    def _insert(self, codes: Int64Array) -> None:
        self._table.insert(codes, np.zeros(len(codes), dtype=np.int64))
        self._count += len(codes)

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        assert self.locate is not None
        codes = self._table.parts[0][self._table.parts[1] >= 0]
        assert len(codes) == self._count <= self._capacity
        assert np.array_equal(np.unique(self.locate(codes)), np.flatnonzero(self._kept))
        assert self.wanted[np.flatnonzero(self._kept) // self.part_page_groups].all()


@kernel
def _find(
    table: Int64Array,
    table_slots: Int32Array,
    shift: int,
    codes: Int64Array,
    page_groups: Int32Array,
    kept: BoolArray,
    slots: Int32Array,
    slot: int,
    absent_slot: int,
) -> None:
    for index in range(codes.shape[0]):
        if kept[page_groups[index]]:
            slots[index] = slot if find_slot(table, table_slots, shift, codes[index]) >= 0 else absent_slot


@kernel
def _note_missed(page_groups: Int32Array, part: int, demand: Float64Array) -> None:
    for index in range(page_groups.shape[0]):
        demand[page_groups[index] // part] += 1


@kernel
def _note(page_groups: Int32Array, slots: Int32Array, kept: BoolArray, part: int, demand: Float64Array) -> int:
    answered = 0
    for index in range(slots.shape[0]):
        page_group = page_groups[index]
        if kept[page_group]:
            answered += 1
            demand[page_group // part] += 1
        elif slots[index] < 0:
            demand[page_group // part] += 1
    return answered
