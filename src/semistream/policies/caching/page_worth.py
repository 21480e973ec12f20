"""Which parts of the table to keep as whole pages, beside a cache of single tuples and the tuples that wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import BoolArray, Float64Array, Int64Array
from semistream.policies.caching.cache_size import answered_by_size

_SIZES = np.array([0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.25, 1.6, 2.25, 3.4, 5.0])
"""Sizes of the cache of single tuples that are looked at, beside the one it has."""
_MAX_GROWTH = 1.25
"""Larger ones are guessed at: what they promise speaks against pages, not for them."""
_AS_MUCH = 1.3
"""Parts whose worth differs by less are taken in the order of the table, those first that are kept already: so what is
left to read stays in runs, and noise moves nothing."""
_WORTH_A_MOVE = 1.1
_LEAST_BYTES = 0.01
"""Pages whose tuples are cached one by one already cost next to nothing, but not nothing."""


@dataclass(frozen=True)
class PageUse:
    """What is known of the parts of a table and of the cached tuples, all in shares of the stream."""

    demand: Float64Array
    """What each part is asked for, but for what single cached tuples answer."""
    page_groups: Int64Array
    """The page groups of each part."""
    kept: BoolArray
    """Which parts are kept now."""
    entry_parts: Int64Array
    """The part of each cached tuple, those first that were worth most before."""
    entry_uses: Float64Array
    """What each of them has answered."""


@dataclass(frozen=True)
class PageMemory:
    """What memory there is to divide, and what things take."""

    total_bytes: float
    page_group_bytes: float
    entry_bytes: float
    min_waiting_bytes: float
    min_entries: int
    max_entry_share: float


@dataclass(frozen=True)
class Kept:
    """What should be kept."""

    parts: BoolArray
    entries: int
    """How many single tuples should be cached beside them."""


def best_kept(use: PageUse, memory: PageMemory) -> Kept | None:
    """Return which parts to keep so that a byte read serves most tuples; None if that is hardly more than now.

    The bound for any choice of pages is 2·h/(Σ√π)² tuples for each page read, with h tuples that wait and π the demand
    of each page that is read at all. A page that is kept takes its √π out of the sum, and its bytes out of h; a cached
    tuple takes what it answers out of the π of its page. So parts come in the order of √π for each byte, less the bytes
    of the single tuples that need not be cached any more, for each of some sizes of the cache.
    """
    count = len(use.entry_parts)
    best: tuple[float, BoolArray, int] | None = None
    now = 0.0
    for size in sorted({int(share * count) for share in _SIZES} | {count}):
        if size * memory.entry_bytes > memory.max_entry_share * memory.total_bytes:
            continue
        roots, entries = _with_entries(use, memory, size)
        part_bytes = use.page_groups * memory.page_group_bytes - entries * memory.entry_bytes
        waiting_bytes = memory.total_bytes - max(size, memory.min_entries) * memory.entry_bytes
        kept_bytes, kept_roots = float(part_bytes[use.kept].sum()), float(roots[use.kept].sum())
        all_roots = float(roots.sum())
        now = max(now, _served(waiting_bytes - kept_bytes, all_roots - kept_roots, memory))
        if size > _MAX_GROWTH * count:
            continue
        order = _in_order_of_worth(roots, part_bytes, use.kept, memory)
        taken = np.concatenate([[0.0], np.cumsum(part_bytes[order])])
        rest = all_roots - np.concatenate([[0.0], np.cumsum(roots[order])])
        served = np.array([_served(waiting_bytes - t, r, memory) for t, r in zip(taken, rest, strict=True)])
        number = int(np.argmax(served))
        if best is None or served[number] > best[0]:
            parts = np.zeros(len(roots), dtype=np.bool_)
            parts[order[:number]] = True
            best = float(served[number]), parts, int(entries[~parts].sum())
    if best is None or best[0] <= _WORTH_A_MOVE * now or np.array_equal(best[1], use.kept):
        return None
    return Kept(best[1], best[2])


def _with_entries(use: PageUse, memory: PageMemory, size: int) -> tuple[Float64Array, Float64Array]:
    """Return Σ√π of each part with so many single tuples cached, and how many of these are of the part."""
    parts, count = len(use.demand), len(use.entry_parts)
    entries = np.bincount(use.entry_parts[:size], minlength=parts).astype(np.float64)
    demand = use.demand
    if size < count:
        demand = demand + np.bincount(use.entry_parts[size:], weights=use.entry_uses[size:], minlength=parts)
    elif size > count:
        answered = float(use.entry_uses.sum())
        missed = float(demand[~use.kept].sum())
        more = answered_by_size(use.entry_uses, size) - answered
        scale = max(0.05, 1.0 - more / missed) if missed > 0 else 1.0
        demand = np.where(use.kept, demand, demand * scale)
        # More of them would come from where most is asked for that they do not answer yet.
        entries += (size - count) * np.where(use.kept, 0.0, use.demand) / max(missed, 1e-12)
        entries = np.minimum(entries, use.page_groups * memory.page_group_bytes / memory.entry_bytes)
    roots = np.sqrt(demand * use.page_groups)
    return roots, entries


def _in_order_of_worth(
    roots: Float64Array, part_bytes: Float64Array, kept: BoolArray, memory: PageMemory
) -> Int64Array:
    least = _LEAST_BYTES * memory.page_group_bytes
    worth = np.log(np.maximum(roots, 1e-12) / np.maximum(part_bytes, least))
    return np.lexsort((~kept, -np.round(worth / np.log(_AS_MUCH))))


def _served(waiting_bytes: float, roots: float, memory: PageMemory) -> float:
    """Return what a byte that is read serves, in some unit."""
    if waiting_bytes < memory.min_waiting_bytes:
        return 0.0
    return waiting_bytes / max(roots, 1e-9) ** 2
