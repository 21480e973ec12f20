"""What the papers prove or promise, on random streams, from the log of reads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trace import page_of, run_trace

from semistream.algorithms.registry import ALGORITHMS

keys = st.lists(st.one_of(st.integers(1, 40), st.sampled_from([1, 2, 17, 40])), min_size=1, max_size=300)
fixed = settings(max_examples=60, deadline=None, derandomize=True, print_blob=True)
PARTS = {"meshjoin": {"parts": 10}}
AROUND_AN_HOUR = [1 + number * 13 % 40 for number in range(20)] + [5]
MOMENTS = [number * 1e-6 for number in range(20)] + [3600.0]


@fixed
@given(keys, st.integers(1, 24))
def test_hybridjoin_reads_no_page_twice_within_as_many_tuples_as_can_wait(stream: list[int], slots: int) -> None:
    """Theorem 1: a page is read again only for a tuple that entered after its last read and has become the oldest."""
    trace = run_trace("hybridjoin", stream, slots=slots)
    last_entered: dict[int, int] = {}
    for (page, _), entered in zip(trace.served, trace.entered, strict=True):
        if page in last_entered and entered < len(stream):  # at the end of the stream nothing enters any more
            # The queue was full at both reads. All that waited after the first was older than the second's oldest
            # and has left, and each that left was replaced: a whole queue has entered since.
            assert entered - last_entered[page] >= slots
        last_entered[page] = entered


@fixed
@given(keys, st.integers(1, 24))
def test_hybridjoin_reads_at_most_once_per_tuple_and_never_in_vain(stream: list[int], slots: int) -> None:
    """Theorem 2: every read answers at least the oldest tuple."""
    trace = run_trace("hybridjoin", stream, slots=slots)
    assert len(trace.served) <= len(stream)
    assert all(answered >= 1 for _, answered in trace.served)


@fixed
@given(keys, st.integers(1, 4))
def test_meshjoin_passes_every_page_once_per_round(stream: list[int], part: int) -> None:
    trace = run_trace("meshjoin", stream, slots=10 * part, parameters={"parts": 10})
    assert trace.pages == [number % 10 for number in range(len(trace.pages))]


def test_a_part_of_the_table_that_nobody_asks_for_is_read_by_meshjoin_only() -> None:
    stream = [1 + number * 7 % 20 for number in range(200)]  # pages 0 to 4
    asked = set(map(page_of, stream))
    assert set(run_trace("hybridjoin", stream).pages) == asked == set(range(5))
    assert set(run_trace("meshjoin", stream, slots=20, parameters={"parts": 10}).pages) == set(range(10))


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ("meshjoin", "r-meshjoin")])
def test_on_a_silent_stream_the_queue_drains(algorithm: str) -> None:
    """Tuples come, then none for an hour, then a last one: all of the first have left long before it."""
    trace = run_trace(
        algorithm, AROUND_AN_HOUR, slots=40, arrivals=MOMENTS, chunk_tuples=20, cache_blocks=1, handover_slots=40
    )
    if algorithm == "partitioned":  # its known flaw
        assert trace.stats.max_wait_seconds > 3000
    else:
        assert trace.stats.max_wait_seconds < 1


def test_meshjoin_keeps_tuples_until_enough_of_them_have_come() -> None:
    trace = run_trace(
        "meshjoin", AROUND_AN_HOUR, slots=100, arrivals=MOMENTS, chunk_tuples=20, parameters={"parts": 10}
    )
    assert trace.stats.max_wait_seconds > 3000


@pytest.mark.parametrize("algorithm", ["hybridjoin", "cachejoin", "p-cachejoin"])
def test_a_tuple_that_comes_late_in_the_last_chunk_is_not_lost(algorithm: str) -> None:
    run_trace(algorithm, [17, 5], arrivals=[0.0, 3600.0])  # asserts that both tuples have left


def test_partitioned_join_goes_on_when_all_is_answered_from_memory() -> None:
    run_trace("partitioned", [40] * 30, slots=6, cache_blocks=1)  # asserts that the join ends


def test_the_oracle_never_reads_after_it_has_loaded_the_table() -> None:
    assert run_trace("oracle", [1000] * 100).stats.read_requests == 10


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ("inlj", "partitioned", "oracle")])
def test_an_absent_key_costs_no_more_reads_than_a_present_one(algorithm: str) -> None:
    """Key 40 is the last of the table; 1000 would stand on the same page."""
    settings_of = {"parameters": PARTS.get(algorithm), "cache_blocks": 1, "cache_tuples": 5, "handover_slots": 60}
    present, absent = (run_trace(algorithm, [key] * 10_000, slots=60, **settings_of) for key in (40, 1000))
    assert absent.stats.absent == 10_000
    assert absent.stats.read_requests <= present.stats.read_requests
    if algorithm not in PARTS and algorithm != "r-meshjoin":  # a ring turns whatever is asked for
        # At worst every read answers a full queue, besides what is loaded before the start.
        assert absent.stats.read_requests <= 10_000 / 60 + 11


@pytest.mark.parametrize("algorithm", ["cachejoin", "sscj", "cachejoin-l", "cachejoin-pq", "p-cachejoin", "ssij"])
def test_an_absent_key_that_is_asked_for_often_is_remembered(algorithm: str) -> None:
    trace = run_trace(algorithm, [1000] * 10_000, slots=60, cache_blocks=1, cache_tuples=4, handover_slots=60)
    assert trace.stats.read_requests <= 3
