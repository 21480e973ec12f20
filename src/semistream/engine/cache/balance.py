"""Moves memory between cached tuples, waiting tuples and whole pages, to where it serves more."""

from __future__ import annotations

import numpy as np

from semistream.engine.cache.cache_stage import ResizableCache
from semistream.engine.cache.tuples_and_pages import TuplesAndPages
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.caching import PageMemory, PageUse, best_cache_size, best_kept

_MIN_SHARE = 0.005
_MAX_SHARE = 0.6
_START = 0.4
"""A small cache grows fast where keys are skewed, and costs little where they are not."""
_MIN_WAITING_SHARE = 1 / 64
_TUPLES_PER_PART = 64
"""So many tuples for each part of the table are seen at least before parts are compared."""
_QUEUES_SEEN = 0.25
"""And so many times what may wait, for memory moves while the queue is emptied."""
_MAX_PATIENCE = 32
"""While a comparison of parts changes nothing, the time to the next one doubles, up to so many times the first."""
_STEPS = 16
"""The room for pages grows by one part in so many, while pages come in and waiting tuples leave."""
_NO_PARTS = np.zeros(0, dtype=np.bool_)


class MemoryBalance:
    """Looks after some windows what the entries of the cache have answered, and changes its size accordingly.

    A cache that is sampled has the least size, and begins anew when it no longer is. Where the cache may keep parts of
    the table as a whole, what is asked of the parts says which it keeps.

    Memory is never counted twice: the cache shrinks and pages leave before more tuples may wait, and both grow only
    when few enough tuples do.
    """

    def __init__(
        self,
        cache: ResizableCache,
        waiting: WaitingTuples,
        *,
        entry_bytes: float,
        waiting_bytes: float,
        page_group_bytes: float = 0.0,
    ) -> None:
        self._cache = cache
        self._waiting = waiting
        self._entry_bytes = entry_bytes
        self._waiting_bytes = waiting_bytes
        self._page_group_bytes = page_group_bytes
        self._total_bytes = cache.capacity * entry_bytes + waiting.capacity * waiting_bytes
        self._min_entries = max(64, int(_MIN_SHARE * self._total_bytes / entry_bytes))
        self._max_entries = max(self._min_entries, int(_MAX_SHARE * self._total_bytes / entry_bytes))
        self._wanted = min(cache.capacity, max(self._min_entries, int(_START * cache.capacity)))
        self._first = self._wanted
        self._was_sampled = False
        self._was_full = False
        """Whether the window began with a full cache, so that all of its entries had the same time to be used."""
        self._pages = cache if isinstance(cache, TuplesAndPages) else None
        self._parts = self._pages.kept.wanted if self._pages is not None else _NO_PARTS
        """The parts of the table that are to be kept."""
        self._limit = 0
        """For how many page groups there is room."""
        self._patience = 1
        cache.at_look = self._look
        if self._pages is not None:
            self._pages.at_window = self._consider_pages

    def after_round(self) -> None:
        """Move memory as was decided, as far as the tuples that wait allow it."""
        if self._cache.is_sampled != self._was_sampled:
            self._was_sampled = not self._was_sampled
            self._wanted = self._min_entries if self._was_sampled else self._first
        wanted, cache = self._wanted, self._cache
        limit = self._pages_wanted()
        if wanted == cache.capacity and limit == self._limit:
            return
        if wanted < cache.capacity:
            with cache.guard:
                cache.resize(wanted)
        if not self._make_room(wanted, limit):
            return
        if wanted > cache.capacity:
            with cache.guard:
                cache.resize(wanted)

    def _make_room(self, entries: int, limit: int) -> bool:
        """Let no more tuples wait than have room beside so much else, and pages come as others leave.

        Returns whether so few wait already.
        """
        waiting = self._waiting
        free_bytes = self._total_bytes - entries * self._entry_bytes
        slots = int((free_bytes - limit * self._page_group_bytes) / self._waiting_bytes)
        held = max(slots, waiting.count)
        if held > slots and self._pages is not None:
            fitting = min(limit, int((free_bytes - held * self._waiting_bytes) / self._page_group_bytes))
            limit = fitting if fitting >= self._limit + max(1, limit // _STEPS) else self._limit
        if held == slots or limit > self._limit:
            waiting.resize(held)
            if self._pages is not None and limit != self._limit:
                self._limit = limit
                with self._pages.guard:
                    self._pages.kept.allow(limit)
        waiting.capacity = slots  # no more may enter until so few wait
        return held == slots

    def _pages_wanted(self) -> int:
        """Return how many page groups are to be kept in all; those that are no longer wanted leave at once."""
        pages = self._pages
        if pages is None:
            return 0
        kept = pages.kept
        if self._parts is not kept.wanted:
            with pages.guard:
                pages.want(self._parts)
            self._parts = kept.wanted
        return int(kept.page_groups[kept.wanted].sum())

    def _free_bytes(self) -> float:
        """Return what is left for single tuples, cached and waiting ones."""
        if self._pages is None:
            return self._total_bytes
        return self._total_bytes - float(self._pages.kept.page_groups[self._parts].sum()) * self._page_group_bytes

    def _look(self, tuples: int) -> None:
        cache = self._cache
        is_full = self._wanted == cache.capacity == cache.count
        if is_full and self._was_full:
            self._wanted = best_cache_size(
                cache.uses_by_rank(),
                tuples,
                entry_bytes=self._entry_bytes,
                total_bytes=self._free_bytes(),
                min_entries=self._min_entries,
                max_entries=self._max_entries,
            )
        self._was_full = is_full and self._wanted <= cache.capacity

    def _consider_pages(self, tuples: int) -> None:
        """Decide which parts of the table to keep, once enough has been seen."""
        pages = self._pages
        assert pages is not None
        kept, cache = pages.kept, pages.cache
        is_full = self._wanted == cache.capacity == cache.count
        enough = self._patience * max(_TUPLES_PER_PART * kept.parts, _QUEUES_SEEN * self._waiting.capacity)
        is_moving = self._parts is not kept.wanted or self._waiting.count > self._waiting.capacity
        if not pages.began_full:
            kept.fade(0.0)  # what a cache that is filling lets through says nothing of what it will
        if is_moving or not is_full or not pages.began_full or kept.seen < enough:
            return
        codes, uses = cache.codes_by_rank()
        demand = kept.demand / kept.seen
        of_others = 1.0 - float(demand[kept.wanted].sum())
        best = best_kept(
            PageUse(
                demand=demand,
                page_groups=kept.page_groups,
                kept=kept.wanted,
                entry_parts=kept.parts_of(codes),
                entry_uses=uses.astype(np.float64) * (of_others / tuples),
            ),
            PageMemory(
                total_bytes=self._total_bytes,
                page_group_bytes=self._page_group_bytes,
                entry_bytes=self._entry_bytes,
                min_waiting_bytes=_MIN_WAITING_SHARE * self._total_bytes,
                min_entries=self._min_entries,
                max_entry_share=_MAX_SHARE,
            ),
        )
        kept.fade(0.5)
        self._patience = min(_MAX_PATIENCE, 2 * self._patience) if best is None else 1
        if best is not None:
            self._parts = best.parts
            self._wanted = max(self._min_entries, best.entries)
            self._was_full = False
