"""Cost models of the algorithms that refill a queue and read by it, with and without a cache."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from semistream.core.costs import CostProfile, Operations
from semistream.engine.recipe import PagePinning, TupleCaching
from semistream.policies.caching import AboveRate, AboveThreshold, RandomOverwrite
from semistream.policies.contract import PageChoice
from semistream_lab.cost.cache_contents import LearningCache
from semistream_lab.cost.division import Division
from semistream_lab.cost.read_frequencies import reads_by

WARM_UP_QUEUES = 3.0
"""What a measurement lets pass before it starts (`semistream_lab.measurement`)."""
_MAX_ROUNDS = 20
_HANDOVER_FILL = 1.7
"""How quickly a larger handover buffer ends its shortage; measured, not derived."""


@dataclass(frozen=True)
class Iteration:
    """One read and all that belongs to it, on average."""

    tuples: float  # w
    cached_share: float  # p_N
    seconds: float  # c_loop


@dataclass(frozen=True)
class _Round:
    """What one read brings."""

    served: float  # w_S
    cached_share: float  # p_N
    rows: float  # d
    pinned_rows: float = 0.0
    pinned_answers: float = 0.0
    """The pinned page groups that have tuples to answer."""

    @property
    def tuples(self) -> float:
        """The tuples of the stream: w."""
        return self.served / (1 - self.cached_share)


def refilled_queue(division: Division, queues: float) -> Iteration:
    """Model a recipe with a queue that is kept full; `queues` is the length of the run, for caches that learn."""
    choice = division.recipe.page_choice(division.setting)
    caching = division.recipe.caching
    if isinstance(caching, PagePinning) and division.sizes.cache_blocks >= division.page_group_count:
        return _all_pinned(division)
    if isinstance(caching, PagePinning):
        return _in_turn(_pinned_pages(division, choice), division, on_arrival=False, learning=False)
    if not isinstance(caching, TupleCaching) or not division.sizes.cache_tuples:
        brought = _first_rows_cached(division, choice, 0)
        if division.recipe.side_by_side:
            return _side_by_side(brought, division, choice.buffers)
        return _in_turn(brought, division, on_arrival=False, learning=False)
    if caching.admission is None and division.sizes.cache_tuples >= division.situation.master_rows:
        return all_in_memory(division)
    if caching.admission is None:
        brought = _first_rows_cached(division, choice, division.sizes.cache_tuples)
    else:
        brought = _learned(division, choice, caching, queues)
    if division.recipe.side_by_side:
        return _side_by_side(brought, division, choice.buffers)
    return _in_turn(brought, division, on_arrival=True, learning=caching.admission is not None)


def _first_rows_cached(division: Division, choice: PageChoice, cached_rows: int) -> _Round:
    """The first rows of the table are cached for good, or none."""
    missed = division.shares.of_page_groups(division.bounds, cached_rows)
    total = float(missed.sum())
    reads = reads_by(choice, missed / total, division.waiting_slots)
    return _Round(reads.tuples_per_read, max(0.0, 1 - total), reads.mean(division.page_group_rows))


def _pinned_pages(division: Division, choice: PageChoice) -> _Round:
    """The first page groups are pinned and looked up in each round.

    Of the w tuples that have entered since the last read, w·p_N are for them; only the rest of the queue is old.
    """
    pinned = division.sizes.cache_blocks
    shares = division.shares.of_page_groups(division.bounds)
    cached = float(shares[:pinned].sum())
    swapped = shares.copy()
    swapped[:pinned] = 0.0
    swapped /= swapped.sum()
    slots = float(division.waiting_slots)
    reads = reads_by(choice, swapped, slots)
    for _ in range(_MAX_ROUNDS):
        # What is taken in is in proportion to the queue, so the next guess is nearly exact.
        taken = reads.tuples_per_read / (1 - cached) * cached / slots
        refined = division.waiting_slots / (1 + taken)
        if abs(refined - slots) < 1e-6 * slots:
            break
        slots = refined
        reads = reads_by(choice, swapped, slots)
    rows = division.page_group_rows
    tuples = reads.tuples_per_read / (1 - cached)
    return _Round(
        reads.tuples_per_read,
        cached,
        reads.mean(rows),
        pinned_rows=float(rows[:pinned].sum()),
        pinned_answers=float(-np.expm1(-shares[:pinned] * tuples).sum()),
    )


def _all_pinned(division: Division) -> Iteration:
    """All page groups are pinned: a queue of tuples is answered at once, by a look-up of all rows."""
    slots = float(division.waiting_slots)
    rows = float(division.situation.master_rows)
    costs = division.costs
    done = Operations(outputs=slots, removals=slots, takes=slots, appends=slots)
    around = costs.round_seconds + division.page_group_count * costs.answer_seconds
    return Iteration(slots, 1.0, costs.seconds(done) + rows * costs.page_row_seconds + around)


def all_in_memory(division: Division) -> Iteration:
    """Each tuple probes a cache that has all rows."""
    return Iteration(1.0, 1.0, division.costs.seconds(Operations(probes=1, outputs=1, takes=1)))


def _learned(division: Division, choice: PageChoice, caching: TupleCaching, queues: float) -> _Round:
    """The cache learns from what reads bring."""
    assert caching.admission is not None
    assert caching.replacement is not None
    admission = caching.admission(division.setting)
    assert isinstance(admission, AboveThreshold | AboveRate)
    cache = LearningCache(
        shares=division.shares,
        bounds=division.bounds,
        choice=choice,
        admission=admission,
        at_random=isinstance(caching.replacement(division.setting), RandomOverwrite),
        capacity=division.sizes.cache_tuples,
        slots=division.waiting_slots,
        handover_slots=division.sizes.handover_slots if division.recipe.side_by_side else 0,
    )
    state = cache.over(WARM_UP_QUEUES, WARM_UP_QUEUES + queues)
    return _Round(state.tuples_per_read, state.share, state.rows_per_read)


def _in_turn(brought: _Round, division: Division, *, on_arrival: bool, learning: bool) -> Iteration:
    """One phase after the other."""
    tuples = brought.tuples
    waited = brought.served if on_arrival else tuples
    done = Operations(
        seeks=1,
        bytes_read=brought.rows * division.situation.row_bytes,
        probes=tuples if on_arrival else 0.0,
        outputs=tuples,
        removals=waited,
        takes=tuples,
        appends=waited,
        frequency_checks=brought.rows if learning else 0.0,
    )
    costs = division.costs
    around = costs.round_seconds + brought.pinned_answers * costs.answer_seconds
    looked_up = (brought.rows + brought.pinned_rows) * costs.page_row_seconds
    return Iteration(tuples, brought.cached_share, costs.seconds(done) + looked_up + around)


def _side_by_side(brought: _Round, division: Division, buffers: int) -> Iteration:
    """The phases at the same time: the longer of the two counts, and of several buffers the longer of load and probe.

    If the stream phase is the longer one the queue is not full, and the service rate is the stream phase's.
    """
    costs = division.costs
    # No more can be taken in for a read than the buffer between the phases holds, and some reads want far more.
    served = brought.served * -math.expm1(-_HANDOVER_FILL * max(1, division.sizes.handover_slots) / brought.served)
    tuples = served / (1 - brought.cached_share)
    fetch = costs.seconds(Operations(takes=served, appends=served))
    load = costs.seconds(Operations(seeks=1 / buffers, bytes_read=brought.rows * division.situation.row_bytes))
    probe = brought.rows * costs.page_row_seconds + costs.seconds(
        Operations(frequency_checks=brought.rows, outputs=served, removals=served)
    )
    disk = costs.round_seconds + fetch + (load + probe if buffers == 1 else max(load, probe))
    return Iteration(tuples, brought.cached_share, max(disk, stream_seconds(costs, tuples, served)))


def stream_seconds(costs: CostProfile, tuples: float, missed: float) -> float:
    """Return what the stream phase of phases side by side takes."""
    return costs.seconds(Operations(takes=tuples, probes=tuples, outputs=tuples - missed, hand_overs=missed))
