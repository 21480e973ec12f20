"""On any stream the reads are those of the papers' steps, played through one tuple at a time."""

from __future__ import annotations

import paper_steps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trace import run_trace

keys = st.lists(st.one_of(st.integers(1, 40), st.sampled_from([1, 2, 3, 17, 18, 40])), min_size=1, max_size=120)
slots = st.integers(1, 24)
fixed = settings(max_examples=60, deadline=None, derandomize=True, print_blob=True)


def reads_of(steps: paper_steps.Reads) -> list[tuple[int, int]]:
    return [(page, len(answered)) for page, answered in steps]


@fixed
@given(keys, slots)
def test_hybridjoin(stream: list[int], size: int) -> None:
    assert run_trace("hybridjoin", stream, slots=size).served == reads_of(paper_steps.hybridjoin(stream, size))


@fixed
@given(keys, slots, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([1.0, 4.0]))
def test_hybridjoin_l(stream: list[int], size: int, position: float, patience: float) -> None:
    trace = run_trace("hybridjoin-l", stream, slots=size, parameters={"position": position, "patience": patience})
    assert trace.served == reads_of(paper_steps.hybridjoin_l(stream, size, position, patience))


@fixed
@given(keys, slots, st.integers(1, 3))
def test_x_hybridjoin(stream: list[int], size: int, pinned: int) -> None:
    trace = run_trace("x-hybridjoin", stream, slots=size, cache_blocks=pinned)
    assert trace.pages[:pinned] == list(range(pinned))
    assert trace.served == reads_of(paper_steps.x_hybridjoin(stream, size, range(pinned)))


@fixed
@given(keys, slots, st.integers(1, 9))
def test_optimised_x_hybridjoin(stream: list[int], size: int, cached: int) -> None:
    trace = run_trace("optimised-x-hybridjoin", stream, slots=size, cache_tuples=cached)
    assert trace.served == reads_of(paper_steps.optimised_x_hybridjoin(stream, size, range(1, cached + 1)))


@fixed
@given(keys, st.integers(1, 4))
def test_meshjoin(stream: list[int], part: int) -> None:
    trace = run_trace("meshjoin", stream, slots=10 * part, parameters={"parts": 10})
    assert trace.served == reads_of(paper_steps.meshjoin(stream, 10 * part, 10))


@fixed
@given(keys)
def test_inlj(stream: list[int]) -> None:
    trace = run_trace("inlj", stream, parameters={"batch": 1})
    assert trace.served == reads_of(paper_steps.inlj(stream))


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_a_cache_that_never_admits_changes_nothing(size: int) -> None:
    stream = [1 + number * number % 40 for number in range(200)]
    expected = run_trace("hybridjoin", stream, slots=size).served
    for algorithm in ("cachejoin", "sscj"):
        trace = run_trace(algorithm, stream, slots=size, cache_tuples=3, parameters={"threshold": 1000})
        assert trace.served == expected
