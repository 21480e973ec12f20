"""Measures which pages are read how often, and what a read brings, against how often the stream asks for the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from semistream.core.arrays import Float64Array, Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue
from semistream.policies.page_choice import DueFrequent
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.measuring.observed import measured, watched
from semistream_lab.experiments.measuring.read_log import LoggedChoice, ReadLog
from semistream_lab.experiments.point import Point, Row, Scalar

FREQUENT = 2.0
"""A page is frequent if the stream asks for it so many times as often as for the average page: the limit above which
the priority queue takes a page in is twice the mean, too."""
_WARM_QUEUES = 4
_GROUPS = 10


@dataclass
class ScheduleLog(ReadLog):
    """The reads of a disk phase, with what the priority queue of frequent pages did at each."""

    scheduled: list[bool] = field(default_factory=list)
    """The page was another than the one of the oldest tuple."""
    taken_in: list[bool] = field(default_factory=list)
    """The page entered the priority queue by this read."""
    longest: int = 0
    """The most pages that were in the priority queue at one time."""
    slots: int = 0


class _LoggedReads(LoggedChoice):
    """Chooses as another page choice does, and writes down what it does with its priority queue, if it has one."""

    def __init__(self, inside: PageChoice, log: ScheduleLog) -> None:
        super().__init__(inside, log)
        self._reads = log
        self._schedule = inside if isinstance(inside, DueFrequent) else None
        self._by_schedule = False

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        oldest = queue.oldest()
        chosen = super().choose(queue, moment)
        self._by_schedule = bool(chosen[0] != oldest)
        return chosen

    def after_read(self, page_group: int, matches: int, queue: Queue) -> None:
        schedule = self._schedule
        known = schedule is not None and schedule.is_frequent(page_group)
        super().after_read(page_group, matches, queue)
        self._reads.scheduled.append(self._by_schedule)
        self._reads.taken_in.append(not known and schedule is not None and schedule.is_frequent(page_group))
        self._reads.slots = queue.capacity
        if schedule is not None:
            self._reads.longest = max(self._reads.longest, schedule.frequent_count)


def run(point: Point) -> Row:
    """Measure a point."""
    log = ScheduleLog()
    result = measured(point, watched(point, lambda inside: _LoggedReads(inside, log)))
    pages_per_read = result.pages_per_read
    if rates.reads_from_key(point):
        shares = shares_from_each(page_shares(point, 1), pages_per_read)
    else:
        shares = page_shares(point, pages_per_read)
    return {**rates.row_of(result), **_counts(log, shares), **_linearity(log, shares), **_entries(log, shares)}


@lru_cache(maxsize=4)
def page_shares(point: Point, pages_per_read: int) -> Float64Array:
    """Return the share of the stream that asks for each page group."""
    keys = rates.keys_of(point)
    rows_per_page_group = pages_per_read * rates.page_rows_of(point)
    page_groups = (keys.keys_of(np.arange(1, point.master_rows + 1, dtype=np.int64)) - 1) // rows_per_page_group
    return np.bincount(page_groups, weights=keys.probabilities()).astype(np.float64)


def shares_from_each(shares: Float64Array, pages: int) -> Float64Array:
    """Return the share of the stream that asks for each page or for those after it, so many together."""
    up_to = np.concatenate([[0.0], np.cumsum(shares)])
    begun = np.arange(len(shares))
    together: Float64Array = up_to[np.minimum(begun + pages, len(shares))] - up_to[begun]
    return together


def _counts(log: ScheduleLog, shares: Float64Array) -> dict[str, Scalar]:
    """Say how often pages are read that the stream often asks for, and others; after the warm-up."""
    late = np.array(log.entered) > _WARM_QUEUES * log.slots
    page_groups = np.array(log.page_groups, dtype=np.int64)[late]
    reads = np.bincount(page_groups, minlength=len(shares)).astype(np.float64)
    frequent = shares >= FREQUENT * shares.mean()
    hottest = np.argsort(shares)[::-1][: max(1, len(shares) // 10)]
    is_hot = np.isin(np.arange(len(shares)), hottest)
    return {
        "reads": len(page_groups),
        "frequent_pages": float(frequent.mean()),
        "frequent_tuples": float(shares[frequent].sum() / shares.sum()),
        "reads_of_infrequent": float((~frequent[page_groups]).mean()),
        "reads_of_rare": float((shares[page_groups] < shares.mean()).mean()),
        "hot_reads_ratio": float(reads[is_hot].mean() / reads[~is_hot].mean()),
        "hot_tuples_ratio": float(shares[is_hot].mean() / shares[~is_hot].mean()),
    }


def _linearity(log: ScheduleLog, shares: Float64Array) -> dict[str, Scalar]:
    """Compare the matches of scheduled reads with the share of the page times the tuples entered since its last read.

    Only scheduled reads tell: others come when the page's first tuple has grown old, so that how long the page was left
    alone depends on when that tuple came. Reads are grouped by the tuples entered.
    """
    page_groups = np.array(log.page_groups, dtype=np.int64)
    order = np.argsort(page_groups, kind="stable")
    entered, matches = np.array(log.entered)[order], np.array(log.answered)[order]
    again = np.diff(page_groups[order], prepend=-1) == 0
    again &= np.array(log.scheduled, dtype=np.bool_)[order]
    if again.sum() < 10 * _GROUPS:
        return {}
    since = np.diff(entered, prepend=0)[again].astype(np.float64)
    expected, matched = since * shares[page_groups[order][again]], matches[again].astype(np.float64)
    groups = np.array_split(np.argsort(since, kind="stable"), _GROUPS)
    ratios = [float(matched[group].sum() / expected[group].sum()) for group in groups]
    return {
        "matches_per_expected": float(matched.sum() / expected.sum()),
        "min_matches_per_expected": min(ratios),
        "max_matches_per_expected": max(ratios),
        "matches_correlation": float(np.corrcoef(expected, matched)[0, 1]),
        "shortest_interval": float(since[groups[0]].mean()),
        "longest_interval": float(since[groups[-1]].mean()),
    }


def _entries(log: ScheduleLog, shares: Float64Array) -> dict[str, Scalar]:
    """Say which pages entered the priority queue: frequent ones, or others by accident."""
    pages = np.array(log.page_groups, dtype=np.int64)[np.array(log.taken_in, dtype=np.bool_)]
    if not len(pages):
        return {"queue_entries": 0}
    return {
        "queue_entries": len(pages),
        "entries_of_rare": float((shares[pages] < shares.mean()).mean()),
        "entries_of_infrequent": float((shares[pages] < FREQUENT * shares.mean()).mean()),
        "longest_queue": log.longest,
        "queue_bytes": log.longest * DueFrequent.NODE_BYTES,
    }
