"""Whole page groups in memory that answer stream tuples, as stages of the loop."""

from __future__ import annotations

from itertools import islice

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.resident_pages import ResidentPages
from semistream.engine.output.output import Output
from semistream.engine.phases.stream_input import Chunk
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.reading.matching import match
from semistream.engine.waiting.waiting_tuples import Drained, WaitingTuples
from semistream.policies.caching import BlockUtility
from semistream.policies.contract import Queue
from semistream.store.contract import PageSet


class PinnedPages(CacheStage):
    """The first page groups of the master table, pinned; waiting tuples are matched with them in each round."""

    probes_on_arrival = False

    def __init__(self, resident: ResidentPages) -> None:
        self.resident = resident

    def load(self, reader: PageGroupReader) -> None:
        """Read the pinned page groups."""
        for page_group in islice(reader.readable(), self.resident.capacity):
            pages = reader.read(np.array([page_group], dtype=np.int64), sequential=True)
            if not self.resident.has_room(pages):
                return
            self.resident.put(page_group, pages)

    def answer_waiting(self, waiting: WaitingTuples) -> list[tuple[Drained, PageSet]]:
        """Take all tuples that wait for a pinned page group."""
        wanted = [page_group for page_group in self.resident.page_groups.tolist() if waiting.waits_for(page_group)]
        return [
            (waiting.drain(np.array([page_group], dtype=np.int64)), self.resident.pages_of(page_group))
            for page_group in wanted
        ]

    def probed_rows(self) -> int:
        """Return the pinned rows."""
        return sum(len(self.resident.pages_of(page_group).codes) for page_group in self.resident.page_groups.tolist())


class UsefulBlocks(CacheStage):
    """Page groups kept because they serve many tuples; arriving tuples are matched with them first.

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

    def load(self, reader: PageGroupReader) -> None:
        """Start empty."""

    def probe(self, codes: Int64Array, page_groups: Int32Array) -> Int32Array:  # noqa: ARG002
        """Say which tuples need a resident page group."""
        return self.resident.find(page_groups)

    def answer(
        self,
        codes: Int64Array,
        chunk: Chunk,
        rows: Int64Array,
        hits: Int64Array,
        slots: Int64Array,
        output: Output | None,
    ) -> int:
        """Answer from the resident blocks."""
        codes, rows = codes[hits], rows[hits]
        order = np.argsort(slots, kind="stable")
        served, starts = np.unique(slots[order], return_index=True)
        bounds = np.append(starts, len(slots))
        absent = 0
        for index, page_group in enumerate(self.resident.page_group_at(served).tolist()):
            of_block = order[bounds[index] : bounds[index + 1]]
            self._utility.served(page_group, len(of_block))
            pages = self.resident.pages_of(page_group)
            found_rows, match_count = match(pages.codes, pages.bounds, codes[of_block], np.array([0, len(of_block)]))
            absent += len(of_block) - match_count
            if output is not None and chunk.batch is not None:
                output.answered_on_arrival(chunk.batch, rows[of_block], pages, found_rows)
        self._served += len(slots)
        return absent

    def after_read(
        self,
        page_groups: Int64Array,
        pages: PageSet,
        drained: Drained,
        rows: Int64Array,
        queue: Queue,  # noqa: ARG002
        *,
        whole: bool = True,
    ) -> None:
        """Keep the block that was read if it is worth more than another."""
        self._served += len(rows)
        self._reads += len(page_groups)
        if not whole:
            return
        for index, page_group in enumerate(page_groups.tolist()):
            matched = int(drained.bounds[index + 1] - drained.bounds[index])
            self._utility.served(page_group, matched)
            if len(page_groups) > 1 or self.resident.find(page_groups.astype(np.int32))[0] >= 0:
                continue
            if self._makes_room(page_group, pages):
                self.resident.put(page_group, pages)

    def _makes_room(self, page_group: int, pages: PageSet) -> bool:
        """Give up blocks that are worth less than a new one, until it has room; say whether it has."""
        if not self.resident.may_hold(pages):
            return False
        while not self.resident.has_room(pages):
            least_useful = self._utility.least_useful(self.resident.page_groups) if len(self.resident) else -1
            if least_useful < 0 or self._utility.of(least_useful) >= self._utility.of(page_group):
                return False
            self.resident.drop(least_useful)
        return True

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
            self.resident.drop(self._utility.least_useful(self.resident.page_groups))
        self.resident.resize(blocks)
        waiting.resize(waiting.capacity + freed)
