"""Single cached tuples beside parts of the table that are kept as a whole, as a stage of the loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.engine.cache.cache_stage import NO_PAGE_GROUPS
from semistream.engine.cache.kept_pages import KeptPages
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.waiting.waiting_tuples import Drained
from semistream.policies.contract import Queue
from semistream.store.contract import PageSet


class TuplesAndPages(CachedTuples):
    """Cached tuples, of a table of which parts may be kept as a whole.

    What kept pages answer does not count for the cached tuples: they have the share that they answer of the others.
    """

    def __init__(self, kept: KeptPages, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.kept = kept
        self._probed: tuple[Int32Array, Int32Array] | None = None
        """The page groups and the slots of the tuples that were looked for last, if pages were kept."""

    def load(self, reader: PageGroupReader) -> None:
        """Learn how codes are located."""
        self.kept.locate = reader.locate
        super().load(reader)

    def decide_to_look(self) -> bool:
        """Look always where pages are kept: what waits for one of them would have it read."""
        return self.kept.row_count > 0 or super().decide_to_look()

    @property
    def needs_page_groups(self) -> bool:
        """Kept pages are found by their page groups."""
        return self.kept.row_count > 0

    def probe(self, codes: Int64Array, page_groups: Int32Array) -> Int32Array:
        """Look codes up in the kept pages and in the cache."""
        slots = super().probe(codes, page_groups)
        if not self.kept.row_count:
            return slots
        absent_slot = self.cache.absent_slot
        self.kept.find(codes, page_groups, slots, absent_slot + 1, absent_slot)
        self._probed = page_groups, slots
        return slots

    def count_use(self, slots: Int64Array) -> int:
        """Count tuples that are answered; return how many of these stand for absent keys."""
        if not self.kept.row_count:
            return super().count_use(slots)
        of_cache = slots[slots < self.cache.absent_slot]
        absent = int((slots == self.cache.absent_slot).sum())
        return absent + super().count_use(of_cache)

    def arrived(self, count: int, missed: Int32Array = NO_PAGE_GROUPS) -> None:
        """Count what the tuples asked for, and age after windows of those that no kept page answers."""
        if self._probed is not None:
            page_groups, slots = self._probed
            count -= self.kept.note(page_groups[:count], slots[:count])
            self._probed = None
        else:
            self.kept.note_missed(missed, count)
        super().arrived(count)

    def after_read(
        self,
        page_groups: Int64Array,
        pages: PageSet,
        drained: Drained,
        rows: Int64Array,
        queue: Queue,
        *,
        whole: bool = True,
    ) -> None:
        """Keep what is wanted of the pages, and learn which of their rows to cache."""
        self.kept.take(pages.codes)
        super().after_read(page_groups, pages, drained, rows, queue, whole=whole)

    def want(self, parts: BoolArray) -> None:
        """Keep these parts of the table from now on; single tuples of them are not needed any more."""
        self.kept.want(parts)
        slots = np.flatnonzero(parts[self.kept.parts_of(self.cache.codes)])
        self.cache.forget(slots)
        if self._admission is not None:
            self._admission.resize(self.capacity)  # it answers another share from now on
