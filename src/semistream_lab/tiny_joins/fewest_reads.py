"""The fewest reads that answer a recorded stream, found by following all ways to read and to cache at once.

The problem is that of on-demand broadcast, where one transmission of a page serves all who wait for it, with a bound on
how many wait instead of their waiting time; with a cache it is that of delayed hits, where misses share the fetch that
is under way, so that Belady's MIN is not the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from semistream_lab.tiny_joins.tiny_join import Progress, TinyJoin


def fewest_reads(join: TinyJoin, *, cache_by_min: bool = False) -> int:
    """Return the fewest reads; with `cache_by_min` only the pages are chosen, and the cache keeps what MIN keeps.

    Reads wait until no more tuples can be taken in: an earlier read can be put off until then, since it then answers
    all that it would have answered and more. Costs time and memory in proportion to the states, of which there are very
    many for more than ten keys, tuples that wait, or rows that are cached.
    """
    states = {join.begin()}
    reads = 0
    while not any(state.taken == len(join.keys) and not any(state.waiting) for state in states):
        states = {following for state in states for following in _following(join, state, cache_by_min=cache_by_min)}
        reads += 1
    return reads


def _following(join: TinyJoin, state: Progress, *, cache_by_min: bool) -> Iterator[Progress]:
    for page in join.wanted(state):
        kept = frozenset(state.cache).union(join.rows_of(page)) if join.cached else frozenset()
        if cache_by_min:
            yield join.after_read(state, page, tuple(sorted(kept_by_min(join, kept, state.taken))))
            continue
        for cache in combinations(sorted(kept), min(join.cached, len(kept))):
            yield join.after_read(state, page, cache)


def kept_by_min(join: TinyJoin, rows: frozenset[int], taken: int) -> list[int]:
    """Return those of some rows that are asked for again soonest, as many as can be cached."""
    to_come = join.keys[taken:]
    next_use = {key: to_come.index(key) if key in to_come else len(to_come) for key in rows}
    return sorted(rows, key=lambda key: (next_use[key], key))[: join.cached]
