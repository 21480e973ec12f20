"""Answers the stream of a tiny join by a rule, and counts the reads."""

from __future__ import annotations

from collections.abc import Callable

from semistream.policies.contract import Moment, PageChoice
from semistream_lab.tiny_joins.rules import ListedQueue, Rule
from semistream_lab.tiny_joins.tiny_join import TinyJoin

Keeping = Callable[[TinyJoin, frozenset[int], int], list[int]]
"""Returns those of some rows that stay in the cache, when so many tuples have been taken in."""


def keep_none(join: TinyJoin, rows: frozenset[int], taken: int) -> list[int]:  # noqa: ARG001
    """Keep no row."""
    return []


def keep_most_asked(join: TinyJoin, rows: frozenset[int], taken: int) -> list[int]:
    """Keep what was asked for most often so far."""
    past = join.keys[:taken]
    return sorted(rows, key=lambda key: (-past.count(key), key))[: join.cached]


def reads_by(join: TinyJoin, rule: Rule, keep: Keeping = keep_none, learner: PageChoice | None = None) -> int:
    """Return how many reads it takes to answer all tuples, if a page is read whenever no more can be taken in."""
    queue = ListedQueue(join.page_count, join.slots)
    cache: frozenset[int] = frozenset()
    taken = reads = 0
    while True:
        while queue.count < join.slots and taken < len(join.keys):
            if join.keys[taken] not in cache:
                queue.add(join.page_of(join.keys[taken]))
            taken += 1
        if not queue.count:
            return reads
        page = rule(queue, Moment(input_pending=taken < len(join.keys)))
        matches = queue.drain(page)
        cache = frozenset(keep(join, cache.union(join.rows_of(page)), taken))
        reads += 1
        if learner is not None:
            learner.after_read(page, matches, queue)
