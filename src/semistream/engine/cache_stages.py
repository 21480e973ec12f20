"""Ways to answer stream tuples from master data in memory, as stages of the loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.stats import JoinStats
from semistream.engine.matching import count_matches, run_lengths
from semistream.engine.output import Output
from semistream.engine.reader import PartitionReader
from semistream.engine.resident_pages import ResidentPages
from semistream.engine.stream_input import Chunk
from semistream.engine.tuple_cache import HotRows, TupleCache
from semistream.engine.waiting import Drained, WaitingTuples
from semistream.policies.caching import BlockUtility
from semistream.policies.contract import Admission, Queue
from semistream.store.contract import PageSet

_WINDOWS_OF_A_LOOK = 2
_NEXT_TO_NOTHING = 0.05
_NONE = np.empty(0, dtype=np.int64)


class CacheStage(ABC):
    """Answers tuples without a read.

    `probe` and `answer` come from the thread that takes tuples in, `after_read` from the one that reads; `guard` is
    held around each of them.
    """

    probes_on_arrival = True
    counts_frequencies = False
    """Each row of a partition read costs a look at its frequency (c_F)."""
    loaded = False
    """Whether `load` has been called; a stage may serve several runs of a join, one after the other."""

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """The lock, if two threads use the stage."""
        return nullcontext()

    @abstractmethod
    def load(self, reader: PartitionReader) -> None:
        """Read what must be in memory before the first tuple comes."""

    def probe(self, codes: Int64Array, partitions: Int32Array) -> Int32Array:  # noqa: ARG002
        """Return for each tuple where its answer is, or -1."""
        raise AssertionError("this stage does not probe on arrival")

    def answer(
        self,
        codes: Int64Array,  # noqa: ARG002
        chunk: Chunk,  # noqa: ARG002
        rows: Int64Array,  # noqa: ARG002
        slots: Int64Array,  # noqa: ARG002
        output: Output | None,  # noqa: ARG002
    ) -> int:
        """Hand the answers of tuples with a slot to the output; return how many of the tuples are absent."""
        raise AssertionError("this stage does not probe on arrival")

    def arrived(self, count: int) -> None:  # noqa: B027
        """Learn that so many tuples have been probed and are answered or wait now."""

    def answer_waiting(self, waiting: WaitingTuples) -> list[tuple[Drained, PageSet]]:  # noqa: ARG002
        """Take the waiting tuples that can be answered now, with the pages that answer them."""
        return []

    def probed_rows(self) -> int:
        """Return how many master rows `answer_waiting` looks up in the waiting tuples."""
        return 0

    def after_read(  # noqa: B027
        self,
        partitions: Int64Array,
        pages: PageSet,
        drained: Drained,
        rows: Int64Array,
        queue: Queue,
        *,
        whole: bool = True,
    ) -> None:
        """Learn what a read has brought; `rows` has for each drained tuple its row in `pages`, or -1.

        `partitions` has the partition of each range of `pages`; the ranges are `whole` partitions or parts of them.
        """

    def after_batch(self, waiting: WaitingTuples) -> None:  # noqa: B027
        """Called whenever no tuple waits."""


class CachedTuples(CacheStage):
    """Master tuples cached by key code; new ones enter as `admission` decides, or none without it.

    While a full cache answers next to nothing, as it does where keys are not skewed, it learns from one read in
    `one_read_in`, drawn at random, which then stands for all of them: to learn from each would cost more than it
    answers.
    """

    def __init__(
        self,
        cache: TupleCache,
        admission: Admission | None,
        columns: tuple[str, ...],
        *,
        unique: bool,
        remembers_absent: bool = True,
        one_read_in: int = 1,
        seed: int = 0,
        stats: JoinStats,
    ) -> None:
        self.cache = cache
        self._remembers_absent = remembers_absent
        self.counts_frequencies = admission is not None
        self._admission = admission
        self._columns = columns
        self._unique = unique
        self._knows_all = False
        self._tuples = self._answered = 0
        self._windows = self._looked_at = 0
        self._stats = stats
        self._one_read_in = one_read_in
        self._share = 1.0
        """Which part of the tuples of the last window was answered."""
        self._random = Random(seed)
        self._unlearned = 0
        """How many more reads go by before one to learn from."""
        self.at_look: Callable[[int], None] | None = None
        """Called after some windows of tuples with their number, while the cache answers a settled share of them."""

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """The cache's lock."""
        return self.cache.lock

    def load(self, reader: PartitionReader) -> None:
        """Without admission: fill the cache with the first rows of the master table."""
        if self._admission is not None:
            return
        loaded = rows_seen = 0
        for partition in reader.readable():
            left = self.cache.capacity - self.cache.count
            if left <= 0:
                return
            loaded += 1
            pages = reader.read(np.array([partition], dtype=np.int64), sequential=True)
            rows = np.arange(min(left, len(pages.codes)), dtype=np.int64)
            self._admit(pages, rows, np.ones(len(rows), dtype=np.int32))
            rows_seen += len(pages.codes)
        self._knows_all = loaded == reader.partition_count and self.cache.count == rows_seen

    def probe(self, codes: Int64Array, partitions: Int32Array) -> Int32Array:  # noqa: ARG002
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
        slots: Int64Array,
        output: Output | None,
    ) -> int:
        """Answer from the cached rows."""
        absent = self.cache.use(slots)
        self._answered += len(slots)
        if output is not None and chunk.batch is not None:
            output.cached(chunk.batch, rows, slots, self.cache)
        return absent

    def after_read(
        self,
        partitions: Int64Array,
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
        stands_for = self._stands_for()
        if not stands_for:
            return
        matched, matches, missing = count_matches(rows, len(pages.codes))
        if stands_for > 1:
            matches *= stands_for
        codes = pages.codes[matched]
        self._stats.shadow_hits += self.cache.evicted.asked_for(codes, matches)
        absent, firsts = missing, missing
        if len(missing):
            absent, firsts, counts = np.unique(drained.codes[missing], return_index=True, return_counts=True)
            codes = np.concatenate([codes, absent])
            matches = np.concatenate([matches, counts.astype(np.int32) * stands_for])
        needed = _NONE
        if self._admission.needs_partitions:
            of_matched = np.searchsorted(pages.bounds, matched, side="right")
            of_missing = np.searchsorted(drained.bounds, missing[firsts] if len(missing) else missing, side="right")
            needed = partitions[np.concatenate([of_matched, of_missing]) - 1]
        worth = self._admission.worth(codes, matches, needed, queue)
        of_rows, of_absent = worth[: len(matched)], worth[len(matched) :]
        floor = self.cache.floor()
        wanted = np.flatnonzero(of_rows > floor)
        if len(wanted):
            self._admit(pages, matched[wanted], of_rows[wanted])
        if len(missing) and self._remembers_absent:
            remembered = np.flatnonzero(of_absent > floor)
            if len(remembered):
                self._note(self.cache.admit(absent[remembered], of_absent[remembered], None, absent=True))

    def _stands_for(self) -> int:
        """Return for how many reads the cache is to learn from this one; 0 for not at all."""
        if self._one_read_in == 1 or self._share > _NEXT_TO_NOTHING or self.cache.count < self.cache.capacity:
            self._unlearned = 0
            return 1
        if self._unlearned:
            self._unlearned -= 1
            return 0
        self._unlearned = self._random.randrange(2 * self._one_read_in - 1)
        return self._one_read_in

    def _admit(self, pages: PageSet, rows: Int64Array, matches: Int32Array) -> None:
        if not self._unique:
            # A code with several rows would need several entries: such codes are left to the reads.
            alone = run_lengths(pages.codes, pages.bounds, rows) == 1
            alone &= (rows == 0) | (pages.codes[rows - 1] != pages.codes[rows])
            rows, matches = rows[alone], matches[alone]
        if len(rows):
            batch = pages.take(rows, self._columns) if self._columns else None
            self._note(self.cache.admit(pages.codes[rows], matches, batch, absent=False))

    def arrived(self, count: int) -> None:
        """Age after windows of tuples."""
        self._tuples += count
        if self._admission is not None and self._admission.window and self._tuples >= self._admission.window:
            self._end_window(self._admission)

    def _end_window(self, admission: Admission) -> None:
        halvings = admission.age(self._answered, self._tuples)
        self._share = self._answered / self._tuples
        self._windows += 1
        self._looked_at += self._tuples
        self._tuples = self._answered = 0
        if not halvings and self._windows < _WINDOWS_OF_A_LOOK:
            return
        if self.at_look is not None and self._windows >= _WINDOWS_OF_A_LOOK and admission.is_settled:
            self.at_look(self._looked_at)
        self.cache.age(halvings)
        self.cache.begin_window()
        self._windows = self._looked_at = 0

    def resize(self, capacity: int) -> None:
        """Let the cache hold another number of tuples."""
        self.cache.resize(capacity)
        if self._admission is not None:
            self._admission.resize(capacity)

    def count_in(self, stats: JoinStats) -> None:
        """Count admissions and evictions in other statistics from now on."""
        self._stats = stats

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


class PinnedPages(CacheStage):
    """The first partitions of the master table, pinned; waiting tuples are matched with them in each round."""

    probes_on_arrival = False

    def __init__(self, resident: ResidentPages) -> None:
        self.resident = resident

    def load(self, reader: PartitionReader) -> None:
        """Read the pinned partitions."""
        for partition in islice(reader.readable(), self.resident.capacity):
            self.resident.put(partition, reader.read(np.array([partition], dtype=np.int64), sequential=True))

    def answer_waiting(self, waiting: WaitingTuples) -> list[tuple[Drained, PageSet]]:
        """Take all tuples that wait for a pinned partition."""
        wanted = [partition for partition in self.resident.partitions.tolist() if waiting.counts[partition]]
        return [
            (waiting.drain(np.array([partition], dtype=np.int64)), self.resident.pages_of(partition))
            for partition in wanted
        ]

    def probed_rows(self) -> int:
        """Return the pinned rows."""
        return sum(len(self.resident.pages_of(partition).codes) for partition in self.resident.partitions.tolist())


class UsefulBlocks(CacheStage):
    """Partitions kept because they serve many tuples; arriving tuples are matched with them first.

    After a read the block stays if it has served more than the resident block that has served least. With
    `slots_per_block`, the memory of blocks and of waiting tuples can be exchanged at that rate: whenever no tuple waits
    and enough has been seen, it moves on in the direction in which a read has come to serve more tuples.
    """

    BATCHES_PER_MOVE = 4
    SHARE_PER_MOVE = 16

    def __init__(self, resident: ResidentPages, utility: BlockUtility, *, slots_per_block: int = 0) -> None:
        self.resident = resident
        self._utility = utility
        self._slots_per_block = slots_per_block
        self._served = 0
        self._reads = 0
        self._batches = 0
        self._last_gain = 0.0
        self._direction = 1

    def load(self, reader: PartitionReader) -> None:
        """Start empty."""

    def probe(self, codes: Int64Array, partitions: Int32Array) -> Int32Array:  # noqa: ARG002
        """Say which tuples need a resident partition."""
        return self.resident.find(partitions)

    def answer(
        self, codes: Int64Array, chunk: Chunk, rows: Int64Array, slots: Int64Array, output: Output | None
    ) -> int:
        """Answer from the resident blocks."""
        found = self.resident.match(codes, slots)
        order = np.argsort(slots, kind="stable")
        served, starts = np.unique(slots[order], return_index=True)
        bounds = np.append(starts, len(slots))
        for index, partition in enumerate(self.resident.partition_at(served).tolist()):
            of_block = order[bounds[index] : bounds[index + 1]]
            self._utility.served(partition, len(of_block))
            if output is not None and chunk.batch is not None:
                output.answered_on_arrival(
                    chunk.batch, rows[of_block], self.resident.pages_of(partition), found[of_block]
                )
        self._served += len(slots)
        return int((found < 0).sum())

    def after_read(
        self,
        partitions: Int64Array,
        pages: PageSet,
        drained: Drained,
        rows: Int64Array,
        queue: Queue,  # noqa: ARG002
        *,
        whole: bool = True,
    ) -> None:
        """Keep the block that was read if it is worth more than another."""
        self._served += len(rows)
        self._reads += len(partitions)
        if not whole:
            return
        for index, partition in enumerate(partitions.tolist()):
            matched = int(drained.bounds[index + 1] - drained.bounds[index])
            self._utility.served(partition, matched)
            if len(partitions) > 1 or self.resident.find(partitions.astype(np.int32))[0] >= 0:
                continue
            if len(self.resident) >= self.resident.capacity:
                least = self._utility.least(self.resident.partitions) if len(self.resident) else -1
                if least < 0 or self._utility.of(least) >= self._utility.of(partition):
                    continue
                self.resident.drop(least)
            self.resident.put(partition, pages)

    def after_batch(self, waiting: WaitingTuples) -> None:
        """Age the merits, and move memory between blocks and waiting tuples."""
        if not self._reads:
            return
        self._utility.age()
        self._batches += 1
        if self._slots_per_block and self._batches % self.BATCHES_PER_MOVE == 0:
            gain = self._served / self._reads
            if gain < self._last_gain:
                self._direction = -self._direction
            self._last_gain = gain
            self._served = self._reads = 0
            self._move(waiting)

    def _move(self, waiting: WaitingTuples) -> None:
        total = self.resident.capacity + waiting.capacity // self._slots_per_block
        moved = self._direction * max(1, total // self.SHARE_PER_MOVE)
        blocks = min(max(1, self.resident.capacity + moved), total - max(1, total // 8))
        freed = (self.resident.capacity - blocks) * self._slots_per_block
        if blocks < 1 or waiting.capacity + freed < self._slots_per_block:
            return
        while len(self.resident) > blocks:
            self.resident.drop(self._utility.least(self.resident.partitions))
        self.resident.resize(blocks)
        waiting.resize(waiting.capacity + freed)
