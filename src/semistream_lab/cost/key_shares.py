"""Which share of the stream asks for which rows of the master table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.compile import kernel
from semistream.generator import ZipfKeys
from semistream_lab.cost.situation import Situation

_SHUFFLE_SEED = 0
_SINGLE_RANKS = 128
_BIN_GROWTH = 1.04
_PLACED_RANKS = 1 << 15


class KeyShares:
    """The law of the keys, summed up along the table and along the ranks; 16 bytes a row.

    Where ranks are shuffled the table is the one that seed 0 gives: the loads of pages hardly differ between seeds.
    """

    def __init__(self, keys: ZipfKeys, *, is_sorted: bool) -> None:
        self.rows = master_rows = keys.key_count
        self.sorted = is_sorted
        by_rank = keys.probabilities()
        self._by_rank = _summed(by_rank)
        self._by_row = self._by_rank
        edges = _rank_edges(master_rows)
        self.rank_edges: Int64Array = edges
        """Ranks are treated in groups of like frequency: where the groups start, and the number of rows."""
        self.group_sizes: Float64Array = np.diff(edges).astype(np.float64)
        self.group_shares: Float64Array = np.diff(self._by_rank[edges])
        """The share of the stream that asks for each group."""
        self.group_rows = (edges[:-1] + edges[1:] - 1) // 2
        """The row in the middle of each group, if ranks are sorted."""
        self._placed_rows = np.empty(0, dtype=np.int64)
        self._placed_on = self._placed_for = self._inside_for = self._placed_rows
        self._inside: tuple[Int64Array, Float64Array]
        if not self.sorted:
            rows = keys.keys_of(np.arange(1, master_rows + 1)) - 1
            by_row = np.empty(master_rows, dtype=np.float64)
            by_row[rows] = by_rank
            self._by_row = _summed(by_row)
            # The most frequent ranks are placed one by one; the rest is spread evenly anyway.
            last = int(np.searchsorted(edges, _PLACED_RANKS))
            self._placed_groups = min(last, len(edges) - 1)
            placed = int(edges[self._placed_groups])
            self._placed_rows = rows[:placed]
            self._placed_shares = by_rank[:placed]

    def of_first_ranks(self, ranks: int) -> float:
        """Return the share of the stream that asks for the most frequent keys."""
        return float(self._by_rank[min(ranks, self.rows)])

    def of_page_groups(self, bounds: Int64Array, first_row: int = 0) -> Float64Array:
        """Return the share of each page group, rows before `first_row` left out."""
        shares: Float64Array = np.diff(self._by_row[np.maximum(bounds, first_row)])
        return shares

    def missed_by_page_group(self, bounds: Int64Array, cached: Float64Array) -> Float64Array:
        """Return the share of each page group that is not cached, `cached` being the chance of each group's keys."""
        if self.sorted:
            missed_before = np.concatenate([[0.0], np.cumsum(self.group_shares * (1.0 - cached))])
            group, inside = self._bounds_inside_groups(bounds)
            shares: Float64Array = np.diff(missed_before[group] + inside * (1.0 - cached[group]))
            return np.maximum(shares, 0.0)
        missed = np.diff(self._by_row[bounds])
        placed = self._placed_groups
        spread = float((self.group_shares[placed:] * cached[placed:]).sum())
        _take_cached(
            missed,
            bounds,
            spread / self.rows,
            self._page_group_of_placed(bounds),
            self._placed_shares,
            self.rank_edges[: placed + 1],
            cached,
        )
        return missed

    def _bounds_inside_groups(self, bounds: Int64Array) -> tuple[Int64Array, Float64Array]:
        """Return the group of ranks that each bound is in, and the share of its ranks before the bound."""
        if self._inside_for is not bounds:
            group = np.searchsorted(self.rank_edges, bounds, side="right") - 1
            group = np.clip(group, 0, len(self.group_sizes) - 1)
            self._inside = group, self._by_rank[bounds] - self._by_rank[self.rank_edges[group]]
            self._inside_for = bounds
        return self._inside

    def _page_group_of_placed(self, bounds: Int64Array) -> Int64Array:
        if self._placed_for is not bounds:
            self._placed_on = np.searchsorted(bounds, self._placed_rows, side="right") - 1
            self._placed_for = bounds
        return self._placed_on

    def page_group_of_groups(self, bounds: Int64Array) -> Int64Array:
        """Return the page group that the middle of each group is on, if ranks are sorted."""
        return np.searchsorted(bounds, self.group_rows, side="right") - 1


def key_shares(situation: Situation) -> KeyShares:
    """Return the shares of a situation; those of the last few are kept."""
    return _cached_shares(Situation(situation.master_rows, 1, situation.exponent, situation.ranks, law=situation.law))


@lru_cache(maxsize=3)
def _cached_shares(situation: Situation) -> KeyShares:
    return KeyShares(situation.keys(_SHUFFLE_SEED), is_sorted=situation.ranks == "sorted")


def _summed(shares: Float64Array) -> Float64Array:
    total = np.empty(len(shares) + 1, dtype=np.float64)
    total[0] = 0.0
    np.cumsum(shares, out=total[1:])
    return total


def _rank_edges(rows: int) -> Int64Array:
    """Return where groups of ranks start: single ranks first, then ever longer groups."""
    single = np.arange(min(rows, _SINGLE_RANKS), dtype=np.int64)
    if rows <= _SINGLE_RANKS:
        return np.append(single, rows)
    steps = int(np.ceil(np.log(rows / _SINGLE_RANKS) / np.log(_BIN_GROWTH)))
    longer = np.unique(np.geomspace(_SINGLE_RANKS, rows, steps + 1).round().astype(np.int64))
    return np.concatenate([single, longer])


@kernel
def _take_cached(
    missed: Float64Array,
    bounds: Int64Array,
    spread: float,
    page_groups: Int64Array,
    shares: Float64Array,
    edges: Int64Array,
    cached: Float64Array,
) -> None:
    """Subtract from the share of each page group what is cached, `spread` for each row and the placed ranks.

    `page_groups` and `shares` are those of the placed ranks, which are in groups that start at `edges`.
    """
    for group in range(len(edges) - 1):
        for rank in range(edges[group], edges[group + 1]):
            missed[page_groups[rank]] -= shares[rank] * cached[group]
    for place in range(len(missed)):
        missed[place] = max(missed[place] - spread * (bounds[place + 1] - bounds[place]), 0.0)
