"""On any stream, the joins with a cache or frequent pages do what the papers' steps do: reads, answers, cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import paper_steps_cached as steps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_steps_cached import AboveRate, FrequentPages, LeastFrequent, MasterTuples, Read, above
from small_trace import Trace, run_trace

keys = st.lists(
    st.one_of(st.integers(1, 40), st.sampled_from([1, 2, 3, 17, 18, 40]), st.sampled_from([1, 3])),
    min_size=1,
    max_size=150,
)
slots = st.integers(1, 24)
sizes = st.integers(1, 4)
fixed = settings(max_examples=60, deadline=None, derandomize=True, print_blob=True)
SKEWED = [[1, 5, 9, 13, 3, 2][(number * number + number // 7) % 6] for number in range(400)]
"""Six keys of four pages that come back all the time."""


def follows(trace: Trace, expected: list[Read], table: MasterTuples | None = None) -> None:
    """Assert that the join did the same reads, answered the same tuples and had the same in its cache after each."""
    assert [page for page, _ in trace.served] == [read.page for read in expected]
    assert trace.answered == [read.answered for read in expected]
    if table is not None:
        assert trace.cached == [read.cached for read in expected]
        assert next(table.overwritten, None) is None, "the join overwrote what the paper's steps do not"
        in_reads = sum(len(read.answered) for read in expected)
        assert trace.stats.cache_hits == trace.stats.tuples_out - in_reads


def table_for(trace: Trace, size: int) -> MasterTuples:
    """Return a cache that is overwritten where the join's was."""
    return MasterTuples(size, iter(trace.overwritten))


@fixed
@given(keys, slots, sizes, st.integers(0, 2), st.integers(0, 3))
def test_cachejoin(stream: list[int], size: int, cached: int, threshold: int, seed: int) -> None:
    trace = run_cached("cachejoin", stream, size, cached, threshold, seed=seed)
    table = table_for(trace, cached)
    follows(trace, steps.queue_join(stream, size, table, above(max(1, threshold))), table)


def test_the_stream_phase_ends_when_the_queue_is_full() -> None:
    # 1 1 fill the queue; the read of page 0 caches key 1. 5 5 fill it again: what follows them is looked for after the
    # read of page 1, which has overwritten key 1 by key 5, so 1 1 wait and are read for.
    trace = run_cached("cachejoin", [1, 1, 5, 5, 1, 1], 2, 1, 1)
    assert trace.answered == [[0, 1], [2, 3], [4, 5]]
    assert trace.cached == [[1], [5], [1]]


@fixed
@given(keys, slots, sizes)
def test_sscj(stream: list[int], size: int, cached: int) -> None:
    trace = run_cached("sscj", stream, size, cached, 1)
    table = LeastFrequent(cached, iter(trace.overwritten))
    follows(trace, steps.queue_join(stream, size, table, above(1)), table)


@fixed
@given(keys, slots, sizes, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([1.0, 4.0]))
def test_cachejoin_l(stream: list[int], size: int, cached: int, position: float, patience: float) -> None:
    trace = run_cached("cachejoin-l", stream, size, cached, 1, position=position, patience=patience)
    table = table_for(trace, cached)
    choose = steps.at_position(position, patience, size)
    follows(trace, steps.queue_join(stream, size, table, above(1), choose), table)


@fixed
@given(keys, slots, st.sampled_from([0.0, 0.9]), st.sampled_from([0.5, 2.0]), st.sampled_from([0.5, 1.0, 2.0]))
def test_hybridjoin_pq(stream: list[int], size: int, decay: float, eagerness: float, entry: float) -> None:
    parameters = {"decay": decay, "eagerness": eagerness, "entry": entry}
    trace = run_trace("hybridjoin-pq", stream, slots=size, parameters=parameters)
    frequent = FrequentPages(size, decay or None, eagerness, entry)
    follows(trace, steps.queue_join(stream, size, frequent=frequent))


@fixed
@given(keys, slots, sizes, st.sampled_from([0.0, 0.9]), st.sampled_from([0.5, 1.0]), st.sampled_from([0.0, 1.5]))
def test_cachejoin_pq(stream: list[int], size: int, cached: int, decay: float, entry: float, rate: float) -> None:
    trace = run_cached("cachejoin-pq", stream, size, cached, 2, decay=decay, entry=entry, rate=rate)
    admission = AboveRate(3, size) if rate else above(2)
    table = table_for(trace, cached)
    frequent = FrequentPages(size, decay or None, 2.0, entry)
    follows(trace, steps.queue_join(stream, size, table, admission, frequent=frequent), table)


@fixed
@given(keys, slots, st.integers(1, 8), sizes)
def test_p_cachejoin(stream: list[int], size: int, buffer: int, cached: int) -> None:
    trace = run_cached("p-cachejoin", stream, size, cached, 1, handover_slots=buffer)
    table = table_for(trace, cached)
    follows(trace, steps.side_by_side(stream, size, buffer, table, above(1)), table)


@fixed
@given(keys, slots, st.integers(1, 8), sizes)
def test_op_cachejoin(stream: list[int], size: int, buffer: int, cached: int) -> None:
    trace = run_cached("op-cachejoin", stream, size, cached, 1, handover_slots=buffer)
    table = table_for(trace, cached)
    follows(trace, steps.side_by_side(stream, size, buffer, table, above(1), both_ends=True), table)


@pytest.mark.parametrize("algorithm", ["cachejoin", "sscj", "cachejoin-l", "cachejoin-pq", "p-cachejoin"])
def test_caches_are_full_and_overwritten_in_these_comparisons(algorithm: str) -> None:
    trace = run_cached(algorithm, SKEWED, 12, 2, 1, handover_slots=6)
    assert len(trace.overwritten) > 10
    assert trace.stats.cache_hits > 40


def test_frequent_pages_have_turns_in_these_comparisons() -> None:
    parameters = {"entry": 0.5, "eagerness": 0.5}
    assert (
        run_trace("hybridjoin-pq", SKEWED, slots=12, parameters=parameters).pages
        != run_trace("hybridjoin", SKEWED, slots=12).pages
    )


def run_cached(
    algorithm: str,
    stream: Sequence[int],
    slots: int,
    cached: int,
    threshold: int,
    *,
    seed: int = 0,
    handover_slots: int = 0,
    from_key: int = 0,
    **parameters: float,
) -> Trace:
    wanted: dict[str, Any] = {"threshold": max(1, threshold), **parameters}
    sizes = {"cache_tuples": cached, "handover_slots": handover_slots}
    return run_trace(algorithm, stream, slots=slots, parameters=wanted, seed=seed, from_key=from_key, **sizes)
