"""On any stream, SSIJ and Partitioned Join do what the papers' steps do: reads, answers, pages in memory."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from paper_steps_blocks import Blocks, Ssij, partitioned
from paper_steps_cached import Read
from small_trace import Trace, run_trace

keys = st.one_of(st.integers(1, 40), st.sampled_from([1, 2, 3, 17, 18, 40]), st.sampled_from([1, 3]))
pausing = st.lists(st.lists(keys, min_size=1, max_size=25), min_size=1, max_size=12)
busy = st.lists(keys, min_size=1, max_size=150)
slots = st.integers(2, 24)
sizes = st.integers(1, 4)
fixed = settings(max_examples=60, deadline=None, derandomize=True, print_blob=True)
SLOTS_PER_BLOCK = 2
"""A page of 400 bytes takes as much memory as two waiting tuples."""


def follows(trace: Trace, expected: list[Read]) -> None:
    assert [page for page, _ in trace.served] == [read.page for read in expected]
    assert trace.answered == [read.answered for read in expected]
    assert trace.cached == [read.cached for read in expected]
    assert trace.stats.cache_hits == trace.stats.tuples_out - sum(len(read.answered) for read in expected)


def run_groups(
    algorithm: str,
    groups: Sequence[Sequence[int]],
    slots: int,
    blocks: int,
    parameters: dict[str, float],
    **sizes: int,
) -> Trace:
    """Join groups of tuples, an hour apart."""
    stream = [key for group in groups for key in group]
    moments = [3600.0 * number for number, group in enumerate(groups) for _ in group]
    return run_trace(
        algorithm, stream, slots=slots, arrivals=moments, cache_blocks=blocks, parameters=parameters, **sizes
    )


@fixed
@given(pausing, slots, sizes, st.integers(2, 6), st.integers(0, 4))
def test_partitioned_join(groups: list[list[int]], size: int, kept: int, threshold: int, trickle: int) -> None:
    # The parameter counts in mean loads of a slot when the buffer is full.
    parameters = {"threshold": threshold * 10 / size, "trickle": trickle}
    trace = run_groups("partitioned", groups, size, kept, parameters)
    follows(trace, partitioned(groups, size, threshold, trickle, Blocks(kept)))


@fixed
@given(busy, slots, sizes, st.sampled_from([0.5, 1.0]), st.sampled_from([1, 7, 50]))
def test_ssij_whatever_its_pending_phase_collects(
    stream: list[int], size: int, kept: int, share: float, pending: int
) -> None:
    trace = run_trace(
        "ssij", stream, slots=size, cache_blocks=kept, slots_per_block=0, parameters={"buffer_fill": share}
    )
    follows(trace, Ssij(size, Blocks(kept), share, pending, 0).join([stream]))


@fixed
@given(pausing, slots, sizes)
def test_ssij_when_the_stream_pauses(groups: list[list[int]], size: int, kept: int) -> None:
    trace = run_groups("ssij", groups, size, kept, {}, slots_per_block=0)
    follows(trace, Ssij(size, Blocks(kept), 1.0, 8, 0).join(groups))


@fixed
@given(busy, slots, sizes)
def test_ssij_while_memory_moves(stream: list[int], size: int, kept: int) -> None:
    trace = run_trace("ssij", stream, slots=size, cache_blocks=kept, slots_per_block=SLOTS_PER_BLOCK)
    follows(trace, Ssij(size, Blocks(kept), 1.0, 1, SLOTS_PER_BLOCK).join([stream]))


def test_look_ups_and_slots_take_turns_as_the_input_fills() -> None:
    groups = [[17], [3, 38], [9, 20, 2, 3, 40], [5]]
    trace = run_groups("partitioned", groups, 6, 1, {"threshold": 5.0, "trickle": 2})
    # 17 alone → page 4, which stays. 3 and 38 → page 0, which takes its place, and page 9. Of the five at once 2 and 3
    # are answered by page 0; 9, 20 and 40 wait in slots of three. 5 alone → page 1. The stream ends: pages 2 4 9.
    assert [page for page, _ in trace.served] == [4, 0, 9, 1, 2, 4, 9]
