"""A join with a handful of pages, and what happens in it when pages are read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True)
class TinyJoin:
    """A recorded stream, and the sizes of the join that answers it."""

    keys: tuple[int, ...]
    """What each tuple asks for, from 0 on; key k is on page k // rows_per_page."""
    slots: int
    """How many tuples may wait."""
    rows_per_page: int = 1
    cached: int = 0
    """How many single rows may be kept."""

    @cached_property
    def page_count(self) -> int:
        """The pages up to the last one that is asked for."""
        return max(self.keys) // self.rows_per_page + 1

    def page_of(self, key: int) -> int:
        """Return the page of a key."""
        return key // self.rows_per_page

    def rows_of(self, page: int) -> range:
        """Return the keys of a page."""
        return range(page * self.rows_per_page, (page + 1) * self.rows_per_page)

    def begin(self) -> Progress:
        """Return the state when the first tuples have been taken in."""
        return self.filled(0, [0] * (self.page_count * self.rows_per_page), ())

    def filled(self, taken: int, waiting: list[int], cache: tuple[int, ...]) -> Progress:
        """Return the state when no more tuples can be taken in: hits leave at once, misses wait."""
        room, keys = self.slots - sum(waiting), self.keys
        while room and taken < len(keys):
            if keys[taken] not in cache:
                waiting[keys[taken]] += 1
                room -= 1
            taken += 1
        return Progress(taken, tuple(waiting), cache)

    def after_read(self, state: Progress, page: int, cache: tuple[int, ...]) -> Progress:
        """Return the state after a read of a page, with what is cached from then on."""
        waiting = list(state.waiting)
        for key in self.rows_of(page):
            waiting[key] = 0
        return self.filled(state.taken, waiting, cache)

    def wanted(self, state: Progress) -> list[int]:
        """Return the pages that are waited for."""
        step = self.rows_per_page
        return [page for page in range(self.page_count) if any(state.waiting[page * step : (page + 1) * step])]


class Progress(NamedTuple):
    """How far a join is."""

    taken: int
    """How many tuples have been taken in."""
    waiting: tuple[int, ...]
    """How many tuples wait for each key."""
    cache: tuple[int, ...]
    """The keys that are cached, in their order."""
