"""Moves memory between the cached and the waiting tuples, to where it serves more."""

from __future__ import annotations

from semistream.engine.cache.cache_stage import ResizableCache
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.caching import best_cache_size

_MIN_SHARE = 0.005
_MAX_SHARE = 0.6
_START = 0.4
"""A small cache grows fast where keys are skewed, and costs little where they are not."""


class MemoryBalance:
    """Looks after some windows what the entries of the cache have answered, and changes its size accordingly.

    A cache that is sampled has the least size, and begins anew when it no longer is.

    Memory is never counted twice: the cache shrinks before more tuples may wait, and grows only when few enough do.
    """

    def __init__(
        self, cache: ResizableCache, waiting: WaitingTuples, *, entry_bytes: float, waiting_bytes: float
    ) -> None:
        self._cache = cache
        self._waiting = waiting
        self._entry_bytes = entry_bytes
        self._waiting_bytes = waiting_bytes
        self._total_bytes = cache.capacity * entry_bytes + waiting.capacity * waiting_bytes
        self._min_entries = max(64, int(_MIN_SHARE * self._total_bytes / entry_bytes))
        self._max_entries = max(self._min_entries, int(_MAX_SHARE * self._total_bytes / entry_bytes))
        self._wanted = min(cache.capacity, max(self._min_entries, int(_START * cache.capacity)))
        self._first = self._wanted
        self._was_sampled = False
        self._was_full = False
        """Whether the window began with a full cache, so that all of its entries had the same time to be used."""
        cache.at_look = self._look

    def after_round(self) -> None:
        """Move memory as was decided, as far as the tuples that wait allow it."""
        if self._cache.is_sampled != self._was_sampled:
            self._was_sampled = not self._was_sampled
            self._wanted = self._min_entries if self._was_sampled else self._first
        wanted, cache = self._wanted, self._cache
        if wanted == cache.capacity:
            return
        slots = int((self._total_bytes - wanted * self._entry_bytes) / self._waiting_bytes)
        if wanted < cache.capacity:
            with cache.guard:
                cache.resize(wanted)
            self._waiting.resize(slots)
            return
        self._waiting.capacity = slots  # no more may enter until so few wait
        if self._waiting.count <= slots:
            self._waiting.resize(slots)
            with cache.guard:
                cache.resize(wanted)

    def _look(self, tuples: int) -> None:
        cache = self._cache
        is_full = self._wanted == cache.capacity == cache.count
        if is_full and self._was_full:
            self._wanted = best_cache_size(
                cache.uses_by_rank(),
                tuples,
                entry_bytes=self._entry_bytes,
                total_bytes=self._total_bytes,
                min_entries=self._min_entries,
                max_entries=self._max_entries,
            )
        self._was_full = is_full and self._wanted <= cache.capacity
