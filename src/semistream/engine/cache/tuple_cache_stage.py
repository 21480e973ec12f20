"""Master tuples cached by key code, as a stage of the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import NO_PAGE_GROUPS, CacheStage, ResizableCache
from semistream.engine.cache.followed_entries import FollowedEntries
from semistream.engine.cache.hot_rows import HotRows
from semistream.engine.cache.one_in import OneIn
from semistream.engine.cache.tuple_cache import TupleCache
from semistream.engine.output.output import Output
from semistream.engine.phases.stream_input import Chunk
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.reading.matching import count_matches, run_lengths
from semistream.engine.reading.overlapping_page_groups import OverlappingPageGroups
from semistream.engine.rows.row_sizes import count_within
from semistream.engine.rows.slot_rows import SlotRows
from semistream.engine.waiting.waiting_tuples import Drained, WaitingTuples
from semistream.policies.contract import Admission, Queue
from semistream.store.contract import PageSet

_WINDOWS_OF_A_LOOK = 2
_MAX_PART = 0.25
"""Entries are outdated if they were not used in a window that is at most this part of what their counts stand for."""
_NEXT_TO_NOTHING = 0.05
_NONE = np.empty(0, dtype=np.int64)
_NOTHING_WAITS = WaitingTuples(1, 64)


class CachedTuples(CacheStage):
    """Master tuples cached by key code; new ones enter as `admission` decides, or none without it.

    While a full cache answers next to nothing, as it does where keys are not skewed, it is sampled: one slice of the
    stream in `one_in` is looked for in it, and it learns from one read in `one_in`, both drawn at random, as if there
    were no others. More would cost more than it answers. Of the rows of one read, `max_bytes_at_once` of copies may
    enter. `overlapping` are the page groups of the table, if they overlap.
    """

    answers_by_code = True

    def __init__(
        self,
        cache: TupleCache,
        admission: Admission | None,
        columns: tuple[str, ...],
        *,
        unique: bool,
        remembers_absent: bool = True,
        one_in: int = 1,
        seed: int = 0,
        stats: JoinStats,
        max_bytes_at_once: int = 2**62,
        overlapping: OverlappingPageGroups | None = None,
    ) -> None:
        self.cache = cache
        self._max_bytes_at_once = max_bytes_at_once
        self._remembers_absent = remembers_absent
        self._overlapping = overlapping
        self.counts_frequencies = admission is not None
        self._admission = admission
        self._columns = columns
        self._unique = unique
        self._knows_all = False
        self._tuples = self._answered = 0
        self._windows = self._looked_at = 0
        self._stats = stats
        self._one_in = one_in
        self._has_ranks = False
        self._followed = FollowedEntries()
        self._answers_little = False
        """Whether it has answered next to nothing since that was a settled share."""
        self._looking, self._learning = OneIn(one_in, Random(seed)), OneIn(one_in, Random(seed + 1))
        self.at_look: Callable[[int], None] | None = None
        """Called after some windows of tuples with their number, while the cache answers a settled share of them."""
        self.at_window: Callable[[int], None] | None = None
        """Called after each window with the number of tuples since uses are counted."""
        self.began_full = False
        """Whether uses are counted since the cache was full, so that all of its entries had the same time."""

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """The cache's lock."""
        return self.cache.lock

    def load(self, reader: PageGroupReader) -> None:
        """Without admission: fill the cache with the first rows of the master table."""
        if self._admission is not None:
            return
        rows_seen = 0
        for page_group in reader.readable():
            left = self.cache.capacity - self.cache.count
            if self.cache.is_full:
                return
            pages = reader.read(np.array([page_group], dtype=np.int64), sequential=True)
            rows = np.arange(min(left, len(pages.codes)), dtype=np.int64)
            self._admit(pages, rows, np.ones(len(rows), dtype=np.int32))
            rows_seen += len(pages.codes)
        self._knows_all = reader.can_read_all and self.cache.count == rows_seen

    def decide_to_look(self) -> bool:
        """Decide whether to look for the next tuples in the cache."""
        return not self.is_sampled or self._looking.draw()

    @property
    def needs_page_groups(self) -> bool:
        """Codes alone lead to cached tuples."""
        return False

    def probe(self, codes: Int64Array, page_groups: Int32Array) -> Int32Array:  # noqa: ARG002
        """Look codes up in the cache; what is not in a cache of the whole table is absent."""
        slots = self.cache.find(codes)
        if self._knows_all:
            slots[slots < 0] = self.cache.absent_slot
        return slots

    def answer(
        self,
        codes: Int64Array,  # noqa: ARG002
        chunk: Chunk,
        rows: Int64Array,
        hits: Int64Array,
        slots: Int64Array,
        output: Output | None,
    ) -> int:
        """Answer from the cached rows."""
        absent = self.count_use(slots)
        if output is not None and chunk.batch is not None:
            output.cached(chunk.batch, rows[hits], slots, self.cache, has_absent=absent > 0)
        return absent

    def count_use(self, slots: Int64Array) -> int:
        """Count tuples that the slots answer; return how many of these stand for absent keys."""
        self._answered += len(slots)
        return self.cache.use(slots)

    def answerable(self, slots: Int64Array, each_bytes: Int64Array | int, limit_bytes: float) -> int:
        """Return how many of the first slots can be answered within the limit, at least one."""
        each_max = each_bytes if isinstance(each_bytes, int) else int(each_bytes.max(initial=0))
        max_row_bytes = self.cache.max_variable_bytes + each_max
        if len(slots) * max_row_bytes <= limit_bytes:
            return len(slots)
        sizes = self.cache.variable_bytes(slots)
        if sizes is None and not isinstance(each_bytes, np.ndarray):
            return max(1, int(limit_bytes / each_bytes))
        totals = np.zeros(len(slots), dtype=np.int64) if sizes is None else sizes
        totals += each_bytes
        return count_within(totals, limit_bytes)

    def after_read(
        self,
        page_groups: Int64Array,
        pages: PageSet,
        drained: Drained,
        rows: Int64Array,
        queue: Queue,
        *,
        whole: bool = True,  # noqa: ARG002
    ) -> None:
        """Admit the rows that matched often enough, and the absent keys that were asked for as often."""
        if self._admission is None or not len(rows):
            return
        if self.is_sampled and not self._learning.draw():
            return
        matched, matches, missing = count_matches(rows, len(pages.codes))
        codes = pages.codes[matched]
        self._stats.shadow_hits += self.cache.evicted.asked_for(codes, matches)
        absent, firsts = missing, missing
        if len(missing):
            absent, firsts, counts = np.unique(drained.codes[missing], return_index=True, return_counts=True)
            codes = np.concatenate([codes, absent])
            matches = np.concatenate([matches, counts.astype(np.int32)])
        needed = _NONE
        if self._admission.needs_page_groups and self._overlapping is not None:
            needed = self._overlapping.locate(codes).astype(np.int64)
            page_groups = self._overlapping.begun_in(page_groups)
        elif self._admission.needs_page_groups:
            of_matched = np.searchsorted(pages.bounds, matched, side="right")
            of_missing = np.searchsorted(drained.bounds, missing[firsts] if len(missing) else missing, side="right")
            needed = page_groups[np.concatenate([of_matched, of_missing]) - 1]
        worth = self._admission.worth(codes, matches, needed, queue)
        if self._admission.needs_page_groups:
            self._admission.note_read(page_groups, queue)
        of_rows, of_absent = worth[: len(matched)], worth[len(matched) :]
        floor = self.cache.floor()
        wanted = np.flatnonzero(of_rows > floor)
        if len(wanted):
            self._admit(pages, matched[wanted], of_rows[wanted])
        if len(missing) and self._remembers_absent:
            remembered = np.flatnonzero(of_absent > floor)
            if len(remembered):
                self._note(self.cache.admit(absent[remembered], of_absent[remembered], None, absent=True))

    def learn(
        self,
        codes: Int64Array,
        asks: Int32Array,
        row_counts: Int64Array,
        take: Callable[[Int64Array], Iterator[tuple[Int64Array, pa.RecordBatch | None]]],
        take_absent: Callable[[Int64Array], Iterator[tuple[Int64Array, pa.RecordBatch]]] | None = None,
    ) -> None:
        """Learn from a look-up of distinct codes, each asked for so often and each with so many rows.

        `take` yields the codes at some places, which have one row each, piece by piece with their cached columns, and
        `take_absent` those that have none with rows of their keys alone, if it has to be known which keys are absent.
        For admissions that look neither at page groups nor at what waits.
        """
        if self._admission is None or (self.is_sampled and not self._learning.draw()):
            return
        self._stats.shadow_hits += self.cache.evicted.asked_for(codes, asks)
        worth = self._admission.worth(codes, asks, _NONE, _NOTHING_WAITS)
        is_worthy = worth > self.cache.floor()
        # A code with several rows would need several entries: such codes are left to the reads.
        wanted = np.flatnonzero(is_worthy & (row_counts == 1))
        for chosen, rows in take(wanted[np.argsort(-worth[wanted], kind="stable")]):
            self._note(self.cache.admit(codes[chosen], worth[chosen], rows, absent=False))
        if self._remembers_absent:
            absent = np.flatnonzero(is_worthy & (row_counts == 0))
            if len(absent) and take_absent is None:
                self._note(self.cache.admit(codes[absent], worth[absent], None, absent=True))
            elif take_absent is not None:
                for chosen, keys in take_absent(absent):
                    self._note(self.cache.admit(codes[chosen], worth[chosen], keys, absent=True))

    @property
    def is_sampled(self) -> bool:
        """Whether it is known to answer next to nothing, and only some tuples and reads come to it for that."""
        return self._answers_little and self.cache.is_full

    def _admit(self, pages: PageSet, rows: Int64Array, matches: Int32Array) -> None:
        if not self._unique:
            # A code with several rows would need several entries: such codes are left to the reads.
            alone = run_lengths(pages.codes, pages.bounds, rows) == 1
            alone &= (rows == 0) | (pages.codes[rows - 1] != pages.codes[rows])
            rows, matches = rows[alone], matches[alone]
        if len(rows):
            batch = None
            if self._columns:
                batch, _ = pages.take_within(rows, self._columns, self._max_bytes_at_once)
                rows, matches = rows[: batch.num_rows], matches[: batch.num_rows]
            self._note(self.cache.admit(pages.codes[rows], matches, batch, absent=False))

    def arrived(self, count: int, missed: Int32Array = NO_PAGE_GROUPS) -> None:  # noqa: ARG002
        """Age after windows of tuples."""
        self._tuples += count
        if self._admission is not None and self._admission.window and self._tuples >= self._admission.window:
            self._end_window(self._admission)

    def _end_window(self, admission: Admission) -> None:
        outdated = max(self._followed.surely_lost, self._outdated(admission.remembered_windows))
        halvings = admission.age(self._answered, self._tuples, outdated, self._followed.lost)
        if self._one_in > 1:
            is_useless = self._answered < _NEXT_TO_NOTHING * self._tuples
            self._answers_little = is_useless and (self._answers_little or admission.is_settled)
        self._windows += 1
        self._looked_at += self._tuples
        self._tuples = self._answered = 0
        if self.at_window is not None:
            self.at_window(self._looked_at)
        if not halvings and self._windows < _WINDOWS_OF_A_LOOK:
            return
        if (
            self.at_look is not None
            and self._windows >= _WINDOWS_OF_A_LOOK
            and admission.is_settled
            and not self.is_sampled
        ):
            self.at_look(self._looked_at)
        if halvings > 1 or self.is_sampled:
            self._followed.forget()
        else:
            self._followed.look(self.cache, self._looked_at, self._windows, admission.remembered_windows)
        self.cache.age(halvings)
        self.cache.begin_window()
        self.began_full = self.cache.is_full
        self._has_ranks = True
        self._windows = self._looked_at = 0

    def _outdated(self, remembered_windows: float) -> float:
        """Return the share of outdated entries; none while counts stand for a short time, in which many are new."""
        part = (self._windows + 1) / max(1.0, remembered_windows - self._windows)
        return self.cache.outdated(part) if part <= _MAX_PART else 0.0

    @property
    def resizable(self) -> ResizableCache | None:
        """The stage itself, unless rows have a fixed place in it or it has the whole table."""
        return self if self.cache.rows is None and self._admission is not None else None

    def uses_by_rank(self) -> Int64Array:
        """Return how often entries were used in this window, those first that were worth most before it."""
        return self.cache.uses_by_rank()

    def hits_by_size(self, shares: Sequence[float]) -> list[int]:
        """Return how many answers of this window such shares of the cache would have given, too.

        Empty until a first window has told what entries are worth. Costs a sort of one small number an entry.
        """
        if not self._has_ranks:
            return []
        totals = np.concatenate([[0], np.cumsum(np.maximum(self.uses_by_rank(), 0))])
        entries = np.minimum((np.array(shares) * self.capacity).astype(np.int64), len(totals) - 1)
        return [int(total) for total in totals[entries]]

    def resize(self, capacity: int) -> None:
        """Let the cache hold another number of tuples."""
        self.began_full &= capacity <= self.cache.capacity
        self.cache.resize(capacity)
        if self._admission is not None:
            self._admission.resize(capacity)

    def count_in(self, stats: JoinStats) -> None:
        """Count admissions and evictions in other statistics from now on."""
        self._stats = stats

    @property
    def count(self) -> int:
        """How many entries the cache has."""
        return self.cache.count

    @property
    def capacity(self) -> int:
        """How many entries the cache can have."""
        return self.cache.capacity

    @property
    def rows(self) -> SlotRows | None:
        """The cached columns of all slots; None if there are none."""
        return self.cache.rows

    def is_absent(self, slots: Int64Array) -> BoolArray:
        """Say for each slot whether it stands for a key that the master table does not have."""
        return self.cache.is_absent(slots)

    @property
    def schema(self) -> pa.Schema:
        """The cached columns."""
        return self.cache.schema

    def hottest(self, max_count: int) -> Iterator[HotRows]:
        """Yield at most so many entries, the most used ones first, as copies."""
        return self.cache.hottest(max_count)

    def warm(self, rows: HotRows) -> int:
        """Let rows enter that another cache of the same columns held; return how many have."""
        with self.cache.lock:
            warmed = self.cache.admit(rows.codes, rows.frequencies, rows.rows, absent=False)
            absent_uses = np.ones(len(rows.absent_codes), dtype=np.int32)
            return warmed + self.cache.admit(rows.absent_codes, absent_uses, None, absent=True)

    def _note(self, admitted: int) -> None:
        before = self.cache.evictions_noted
        self.cache.evictions_noted = self.cache.evictions
        self._stats.cache_admissions += admitted
        self._stats.cache_evictions += self.cache.evictions - before
