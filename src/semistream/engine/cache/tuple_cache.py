"""Master tuples that are kept in memory because the stream asks for them often."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.code_table import CodeTable
from semistream.engine.cache.hot_rows import HotRows
from semistream.engine.cache.tuple_cache_kernels import count_unused, count_use, fill, put_elsewhere, take_out, vacate
from semistream.engine.rows.row_sizes import count_within
from semistream.engine.rows.slot_rows import SlotRows
from semistream.policies.caching import EvictedCodes
from semistream.policies.contract import Replacement

_MAX_SORTED = np.iinfo(np.uint16).max
_NOTHING = np.empty(0, dtype=np.int32)
_LARGEST_SHARE = 16
"""A row with more than one part in so many of all rows' bytes does not enter: it would drive out too many."""
_STEP = 8
"""One part in so many of the entries leaves when rows take too much, and may come back when they take less."""
_SEVERAL, _ENOUGH = 4.0, 32
"""Where four uses are to be expected, one entry in fifty has none by chance; of fewer entries the share says little."""
_ROWS_AT_ONCE = 8
"""Copies of rows that are handed out together take one part in so many of all rows' bytes."""


class TupleCache:
    """A hash table of master tuples by key code, of a fixed number of slots.  # H_R

    An entry without a row remembers that a key is absent from the master table. Where rows are wider than the slots
    were made for, their bytes are the limit: fewer entries are held until rows are narrower again. Lookups and changes
    may come from two threads, one of each kind: `lock` must be held from `find` until the rows found have been taken,
    and by `admit`.
    """

    def __init__(self, capacity: int, replacement: Replacement | None, rows: SlotRows | None) -> None:
        self.capacity = capacity
        self.lock = Lock()
        self.count = 0
        self._limit = capacity
        """How many entries there may be while rows are as wide as they are."""
        self.evictions = 0
        self.evictions_noted = 0
        """How many of the evictions have been counted elsewhere."""
        self._replacement = replacement
        self._rows = rows
        self._table = CodeTable(capacity)
        self._codes = np.zeros(capacity, dtype=np.int64)
        self._frequencies = np.zeros(capacity + 1, dtype=np.int32)
        self._frequencies_before = np.zeros(capacity, dtype=np.int32)
        """As of the beginning of the window, or of the entry of a tuple."""
        self._absent = np.zeros(capacity + 1, dtype=np.bool_)
        self._absent[capacity] = True
        self.evicted = EvictedCodes(capacity)

    MAX_SLOT_BYTES = 70
    """What a slot takes at most besides its row, in a cache of any size."""

    @staticmethod
    def slot_bytes(capacity: int) -> int:
        """Return the memory of a cache of this capacity besides its rows."""
        return CodeTable.bytes_for(capacity) + 17 * capacity + EvictedCodes.bytes_for(capacity)

    @property
    def schema(self) -> pa.Schema:
        """The cached columns."""
        return self._rows.schema if self._rows is not None else pa.schema([])

    @property
    def rows(self) -> SlotRows | None:
        """The cached columns of all slots; None if there are none."""
        return self._rows

    def find(self, codes: Int64Array) -> Int32Array:
        """Return the slot of each code, or -1."""
        return self._table.find(codes)

    @property
    def is_full(self) -> bool:
        """Whether a newcomer takes the place of another entry."""
        return self.count >= self._limit

    @property
    def row_bytes_limit(self) -> int:
        """What the rows may take in columns without a fixed width; 0 if they have none."""
        return self._rows.limit_bytes if self._rows is not None else 0

    def variable_bytes(self, slots: Int64Array) -> Int64Array | None:
        """Return what the row of each slot takes in columns without a fixed width; None if there are none."""
        if self._rows is None or not self._rows.is_variable:
            return None
        has_row = slots != self.absent_slot
        if has_row.all():
            return self._rows.variable_bytes(slots)
        sizes = np.zeros(len(slots), dtype=np.int64)
        sizes[has_row] = self._rows.variable_bytes(slots[has_row])
        return sizes

    @property
    def max_variable_bytes(self) -> int:
        """What no cached row takes more than in columns without a fixed width."""
        return self._rows.max_variable_bytes if self._rows is not None else 0

    @property
    def absent_slot(self) -> int:
        """A slot beside the others that stands for any key the master table does not have."""
        return self.capacity

    def use(self, slots: Int64Array) -> int:
        """Count a use of each slot; return how many of them stand for keys that the master table does not have."""
        return int(count_use(self._frequencies, self._absent, slots))

    def age(self, halvings: int) -> None:
        """Halve all counts of use so often, so that what was used long ago makes room for what is used now."""
        self._frequencies >>= halvings
        if halvings and self._replacement is not None:
            self._replacement.renumbered()

    def begin_window(self) -> None:
        """Count the uses of entries from now on, for `uses_by_rank`."""
        self._frequencies_before[:] = self._frequencies[:-1]

    def outdated(self, part: float) -> float:
        """Return the share of the entries not used in this window, of those whose counts promise several uses in it.

        The window is `part` of the time that the counts before it stand for.
        """
        promising, unused = count_unused(self._frequencies, self._frequencies_before, self.count, _SEVERAL / part)
        return unused / promising if promising >= _ENOUGH else 0.0

    def codes_used_below(self, most: float, max_sample: int) -> Int64Array:
        """Return the codes of the better half of the entries, or a sample, but of none that was used `most` times."""
        counts = self._frequencies[: self.count]
        chosen = self._most_used(self.count // 2)
        chosen = chosen[counts[chosen] < most]
        return self._codes[chosen[:: max(1, -(-len(chosen) // max_sample))]]

    def uses_of(self, codes: Int64Array) -> tuple[int, int]:
        """Return how many of the codes are cached, and how often they were used in this window."""
        slots = self._table.find(codes)
        slots = slots[slots >= 0]
        return len(slots), int((self._frequencies[slots] - self._frequencies_before[slots]).sum())

    @property
    def codes(self) -> Int64Array:
        """The codes of all entries; to be read only."""
        return self._codes[: self.count]

    def forget(self, slots: Int64Array) -> None:
        """Let the entries of some slots go."""
        if len(slots):
            self._evict(slots)

    def uses_by_rank(self) -> Int64Array:
        """Return how often entries were used in this window, those first that were worth most before it.

        The order knows nothing of the uses it puts in order, so the first n say what a cache of n entries would answer.
        """
        return self.codes_by_rank()[1]

    def codes_by_rank(self) -> tuple[Int64Array, Int64Array]:
        """Return the codes of all entries in that order, and how often each was used."""
        before = self._frequencies_before[: self.count]
        # Numbers of 16 bits are sorted by counting them. Where uses are that many, the order says nothing more.
        rank = _MAX_SORTED - np.minimum(before, _MAX_SORTED)
        order = np.argsort(rank.astype(np.uint16), kind="stable")
        return self.codes[order], (self._frequencies[: self.count] - before)[order].astype(np.int64)

    def is_absent(self, slots: Int64Array) -> BoolArray:
        """Say for each slot whether it stands for a key that the master table does not have."""
        return self._absent[slots]

    def take(self, slots: Int64Array) -> pa.RecordBatch:
        """Return the rows of slots that have one, in the order given."""
        assert self._rows is not None, "made without rows"
        return self._rows.take(slots)

    def floor(self) -> int:
        """Return what a newcomer must be worth more than to enter: nothing while there is room."""
        if self._replacement is None or not self.is_full:
            return 0
        return max(0, self._replacement.floor(self._frequencies[: self.count]))

    def admit(self, codes: Int64Array, worth: Int32Array, rows: pa.RecordBatch | None, *, absent: bool) -> int:
        """Add tuples, overwriting others where the cache is full and may replace; return how many were new.

        Absent keys may have rows as well, to be told from other keys of the same code.
        """
        new = self._table.find_new(codes)
        room = self.capacity if self._replacement is not None else max(0, self._limit - self.count)
        if len(new) > room:
            new = np.sort(new[np.argsort(worth[new], kind="stable")[len(new) - room :]])
        if not len(new):
            return 0
        if rows is not None and self._rows is not None and self._rows.is_variable:
            new = self._fitting(new, rows, self._rows)
            if not len(new):
                return 0
        if self._replacement is not None and self._replacement.keeps_better:
            new = new[np.argsort(-worth[new], kind="stable")]
        codes, worth = codes[new], worth[new]
        slots = self._make_room(worth)
        new = new[: len(slots)]
        fill(
            *self._table.parts,
            self._codes,
            self._frequencies,
            self._frequencies_before,
            self._absent,
            slots,
            codes,
            worth,
            absent,
        )
        if self._rows is not None:
            if rows is None:
                assert absent
                self._rows.drop(slots)
            else:
                self._rows.put(slots, rows, new)
        return len(new)

    def hottest(self, max_count: int, at_once: int = 16_384) -> Iterator[HotRows]:
        """Yield up to `max_count` entries with copies of their rows, some `at_once`, the most used ones first."""
        used = np.argsort(-self._frequencies[: self.count], kind="stable")[:max_count]
        start = 0
        while start < len(used):
            chosen = used[start : start + at_once]
            sizes = self.variable_bytes(chosen)
            if sizes is not None:
                chosen = chosen[: count_within(sizes, self.row_bytes_limit // _ROWS_AT_ONCE)]
            start += len(chosen)
            absent = self._absent[chosen]
            slots = chosen[~absent].astype(np.int64)
            rows = self._rows.take(slots) if self._rows is not None and len(slots) else None
            yield HotRows(self._codes[slots], self._frequencies[slots], rows, self._codes[chosen[absent]])

    def _fitting(self, new: Int64Array, rows: pa.RecordBatch, held: SlotRows) -> Int64Array:
        """Return the newcomers whose rows have room; if there is not enough, some entries leave for them first."""
        sizes = held.sizes.of(rows, new)
        bearable = sizes <= held.limit_bytes // _LARGEST_SHARE
        if not bearable.all():
            new, sizes = new[bearable], sizes[bearable]
        wanted = int(sizes.sum())
        free = held.free_bytes(wanted)
        if wanted <= free:
            if self.is_full and self._limit < self.capacity and free - wanted > held.limit_bytes // _LARGEST_SHARE:
                self._limit = min(self.capacity, self._limit + max(1, self._limit // _STEP))
            return new
        if self._replacement is not None and self.count:
            self._evict(self._least_used(max(1, self.count // _STEP)))
            free = held.free_bytes(wanted)
        fitting = int(np.searchsorted(np.cumsum(sizes), free, side="right"))
        self._limit = max(1, min(self.capacity, self.count + fitting))
        return new[:fitting]

    def _least_used(self, count: int) -> Int64Array:
        return np.argpartition(self._frequencies[: self.count], count - 1)[:count]

    def _evict(self, slots: Int64Array) -> None:
        """Let the entries of some slots go; the last entries move to their places."""
        count = self.count - len(slots)
        codes = self._codes[slots]
        goes = np.zeros(self.count, dtype=np.bool_)
        goes[slots] = True
        holes, movers = np.flatnonzero(goes[:count]), count + np.flatnonzero(~goes[count:])
        take_out(*self._table.parts, codes)
        put_elsewhere(*self._table.parts, self._codes, movers, holes)
        for array in (self._codes, self._frequencies, self._frequencies_before, self._absent):
            array[holes] = array[movers]
        if self._rows is not None:
            self._rows.drop(slots)
            self._rows.move(movers, holes)
        if self._replacement is not None:
            self._replacement.renumbered()
        self.evicted.add(codes)
        self.evictions += len(slots)
        self.count = count

    def _make_room(self, worth: Int32Array) -> Int64Array:
        """Return slots for newcomers; if better ones are to be kept, for the first of them only, the best."""
        count = len(worth)
        fresh = min(count, max(0, self._limit - self.count))
        slots = np.arange(self.count, self.count + fresh, dtype=np.int64)
        self.count += fresh
        if fresh == count:
            return slots
        assert self._replacement is not None
        # The fresh slots are not to be chosen again.
        victims = self._replacement.victims(count - fresh, self._frequencies[: self.count - fresh])
        overwritten = np.empty(len(victims), dtype=np.int64)
        min_worth = worth[fresh:] if self._replacement.keeps_better else _NOTHING
        vacated = int(vacate(*self._table.parts, self._codes, self._frequencies, victims, min_worth, overwritten))
        if vacated < len(victims):
            self._replacement.spared(victims[vacated:], self._frequencies)
        self.evicted.add(overwritten[:vacated])
        self.evictions += vacated
        return np.concatenate([slots, victims[:vacated]]) if fresh else victims[:vacated]

    def resize(self, capacity: int) -> None:
        """Have another number of slots; if there are too many entries, those that were used least go."""
        assert self._rows is None, "rows have a fixed number of slots"
        if capacity < self.count:
            self._keep(self._most_used(capacity))
        self.capacity = self._limit = capacity
        for array, size in (
            (self._codes, capacity),
            (self._frequencies, capacity + 1),
            (self._frequencies_before, capacity),
            (self._absent, capacity + 1),
        ):
            array.resize(size, refcheck=False)
        self._absent[capacity] = True
        self._frequencies[capacity] = 0
        self._table = CodeTable(0)  # freed before the new one is made
        self._table = CodeTable(capacity)
        self._table.insert(self._codes[: self.count], np.arange(self.count))
        self.evicted = EvictedCodes(capacity)

    def _most_used(self, count: int) -> Int64Array:
        if not count:
            return np.empty(0, dtype=np.int64)
        return np.sort(np.argpartition(-self._frequencies[: self.count], count - 1)[:count])

    def _keep(self, kept: Int64Array) -> None:
        """Keep only some slots, numbered in the order given."""
        if self._replacement is not None:
            self._replacement.renumbered()
        self.evictions += self.count - len(kept)
        self.count = len(kept)
        for array in (self._codes, self._frequencies, self._frequencies_before, self._absent):
            array[: self.count] = array[kept]

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        used = self._codes[: self.count]
        assert self.count <= self.capacity
        assert len(np.unique(used)) == self.count
        assert np.array_equal(self._table.find(used), np.arange(self.count))
        if self._rows is not None:
            self._rows._check()
