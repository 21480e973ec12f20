"""The fewest reads of tiny joins, against every order of reads that there is; and the rules beside them."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.policies.contract import Moment, PageChoice
from semistream.policies.page_choice import OldestWaiting
from semistream_lab.tiny_joins.fewest_reads import fewest_reads
from semistream_lab.tiny_joins.playing import keep_most_asked, keep_none, reads_by
from semistream_lab.tiny_joins.rules import (
    ListedQueue,
    longest_wait_first,
    most_requests_first,
    new_rules,
    requests_times_wait,
)
from semistream_lab.tiny_joins.tiny_join import TinyJoin


def fewest_of_all(join: TinyJoin) -> int:
    """Return the fewest reads if any page may be read at any time, waited for or not, and any rows of it be kept."""
    states = {(0, (), frozenset[int]())}
    reads = 0
    while True:
        reached = set(states)
        while states:
            taken, waiting, cache = states.pop()
            if taken == len(join.keys) and not waiting:
                return reads
            if taken < len(join.keys) and len(waiting) < join.slots:
                key = join.keys[taken]
                state = (taken + 1, waiting if key in cache else tuple(sorted((*waiting, key))), cache)
                if state not in reached:
                    reached.add(state)
                    states.add(state)
        for taken, waiting, cache in reached:
            for page in range(join.page_count):
                left = tuple(key for key in waiting if join.page_of(key) != page)
                rows = sorted(cache.union(join.rows_of(page)))
                kept = chain.from_iterable(combinations(rows, size) for size in range(join.cached + 1))
                states.update((taken, left, frozenset(some)) for some in kept)
        reads += 1


tiny = st.builds(
    TinyJoin,
    st.lists(st.integers(0, 3), min_size=1, max_size=9).map(tuple),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 2),
)


@given(tiny)
@settings(max_examples=150, deadline=None)
def test_no_other_order_of_reads_needs_fewer(join: TinyJoin) -> None:
    assert fewest_reads(join) == fewest_of_all(join)


@given(tiny)
@settings(max_examples=100, deadline=None)
def test_no_rule_needs_fewer_and_each_answers_all(join: TinyJoin) -> None:
    keep = keep_most_asked if join.cached else keep_none
    for rule, learner in new_rules().values():
        assert fewest_reads(join) <= reads_by(join, rule, keep, learner) <= len(join.keys)


def test_min_does_not_always_keep_what_saves_reads() -> None:
    found = 0
    for seed in range(60):
        keys = np.random.default_rng(seed).integers(0, 6, 24)
        join = TinyJoin(tuple(keys.tolist()), slots=3, rows_per_page=2, cached=1)
        by_min = fewest_reads(join, cache_by_min=True)
        assert by_min >= fewest_reads(join)
        found += by_min > fewest_reads(join)
    assert found


def waiting(*pages: int) -> ListedQueue:
    queue = ListedQueue(max(pages) + 1, len(pages))
    for page in pages:
        queue.add(page)
    return queue


def test_rules_weigh_number_and_wait_as_their_names_say() -> None:
    now = Moment(input_pending=True)
    queue = waiting(0, 1, 1, 2, 2, 2)
    assert most_requests_first(queue, now) == 2
    assert longest_wait_first(queue, now) == 1  # 5 + 4, against 6 and 3 + 2 + 1
    assert requests_times_wait(queue, now) == 1  # 2 · 5, against 1 · 6 and 3 · 3


def test_a_listed_queue_shows_a_page_choice_what_waits() -> None:
    queue = waiting(2, 0, 2, 1)
    assert queue.counts.tolist() == [1, 1, 2]
    assert queue.in_order_of_age().tolist() == [2, 0, 1]
    assert (queue.oldest(), queue.youngest(), queue.fullest()) == (2, 1, 2)
    assert queue.since.tolist() == [1, 3, 0]
    choice: PageChoice = OldestWaiting()
    assert choice.choose(queue, Moment(input_pending=True)).tolist() == [2]
    assert queue.drain(2) == 2
    assert queue.count == 2
