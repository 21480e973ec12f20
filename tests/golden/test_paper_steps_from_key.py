"""With reads that begin at the page of the key looked up, joins do what the papers' steps do, on any stream."""

from __future__ import annotations

from typing import Any

import paper_steps
import paper_steps_cached as steps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_steps_cached import AboveRate, FrequentPages, LeastFrequent, above
from small_trace import STREAM, Trace, page_of, run_trace
from test_paper_steps import reads_of
from test_paper_steps_cached import SKEWED, follows, run_cached, table_for

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.budget import MemoryBudget
from semistream.core.clock import WallClock
from semistream.core.errors import InvalidSettingError
from semistream.engine.assembly import Assembly
from semistream.store.memory import MemoryStore

keys = st.lists(
    st.one_of(st.integers(1, 40), st.sampled_from([1, 2, 3, 17, 18, 40]), st.sampled_from([1, 3])),
    min_size=1,
    max_size=150,
)
slots = st.integers(1, 24)
cache_sizes = st.integers(1, 4)
pages_of_a_read = st.integers(1, 4)
fixed = settings(max_examples=60, deadline=None, derandomize=True, print_blob=True)
CACHES = {"cache_tuples": 3, "handover_slots": 6}
LOADS_BY_KEY = [name for name, recipe in ALGORITHMS.items() if recipe.loads_by_key]


@fixed
@given(keys, slots, pages_of_a_read)
def test_hybridjoin(stream: list[int], size: int, pages: int) -> None:
    trace = run_trace("hybridjoin", stream, slots=size, from_key=pages)
    assert trace.served == reads_of(paper_steps.hybridjoin(stream, size, pages))
    assert trace.reads == [(page, min(page + pages, 10) - 1) for page, _ in trace.served]


@fixed
@given(keys, slots, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([1.0, 4.0]), pages_of_a_read)
def test_hybridjoin_l(stream: list[int], size: int, position: float, patience: float, pages: int) -> None:
    parameters = {"position": position, "patience": patience}
    trace = run_trace("hybridjoin-l", stream, slots=size, parameters=parameters, from_key=pages)
    assert trace.served == reads_of(paper_steps.hybridjoin_l(stream, size, position, patience, pages))


@fixed
@given(keys, slots, st.integers(1, 3), pages_of_a_read)
def test_x_hybridjoin_pins_whole_reads_from_the_front_of_the_table(
    stream: list[int], size: int, pinned: int, pages: int
) -> None:
    trace = run_trace("x-hybridjoin", stream, slots=size, cache_blocks=pinned, from_key=pages)
    loaded = list(range(0, 10, pages))[:pinned]
    assert [first for first, _ in trace.reads[: len(loaded)]] == loaded
    assert trace.served == reads_of(paper_steps.x_hybridjoin(stream, size, range(pinned * pages), pages))


@fixed
@given(keys, slots, st.integers(1, 40), pages_of_a_read)
def test_optimised_x_hybridjoin(stream: list[int], size: int, cached: int, pages: int) -> None:
    trace = run_trace("optimised-x-hybridjoin", stream, slots=size, cache_tuples=cached, from_key=pages)
    assert trace.served == reads_of(paper_steps.optimised_x_hybridjoin(stream, size, range(1, cached + 1), pages))


@fixed
@given(keys, slots, cache_sizes, st.integers(0, 2), pages_of_a_read)
def test_cachejoin(stream: list[int], size: int, cached: int, threshold: int, pages: int) -> None:
    trace = run_cached("cachejoin", stream, size, cached, threshold, from_key=pages)
    table = table_for(trace, cached)
    follows(trace, steps.queue_join(stream, size, table, above(max(1, threshold)), pages=pages), table)


@fixed
@given(keys, slots, cache_sizes, pages_of_a_read)
def test_sscj(stream: list[int], size: int, cached: int, pages: int) -> None:
    trace = run_cached("sscj", stream, size, cached, 1, from_key=pages)
    table = LeastFrequent(cached, iter(trace.overwritten))
    follows(trace, steps.queue_join(stream, size, table, above(1), pages=pages), table)


@fixed
@given(keys, slots, cache_sizes, st.sampled_from([0.0, 0.3, 1.0]), pages_of_a_read)
def test_cachejoin_l(stream: list[int], size: int, cached: int, position: float, pages: int) -> None:
    trace = run_cached("cachejoin-l", stream, size, cached, 1, from_key=pages, position=position, patience=4.0)
    table = table_for(trace, cached)
    choose = steps.at_position(position, 4.0, size)
    follows(trace, steps.queue_join(stream, size, table, above(1), choose, pages=pages), table)


@fixed
@given(keys, slots, st.sampled_from([0.0, 0.9]), st.sampled_from([0.5, 1.0, 2.0]), pages_of_a_read)
def test_hybridjoin_pq(stream: list[int], size: int, decay: float, entry: float, pages: int) -> None:
    parameters = {"decay": decay, "eagerness": 0.5, "entry": entry}
    trace = run_trace("hybridjoin-pq", stream, slots=size, parameters=parameters, from_key=pages)
    frequent = FrequentPages(size, decay or None, 0.5, entry, pages)
    follows(trace, steps.queue_join(stream, size, frequent=frequent, pages=pages))


@fixed
@given(keys, slots, cache_sizes, st.sampled_from([0.5, 1.0]), pages_of_a_read)
def test_cachejoin_pq(stream: list[int], size: int, cached: int, entry: float, pages: int) -> None:
    trace = run_cached("cachejoin-pq", stream, size, cached, 2, from_key=pages, entry=entry)
    table = table_for(trace, cached)
    frequent = FrequentPages(size, 0.9, 2.0, entry, pages)
    follows(trace, steps.queue_join(stream, size, table, AboveRate(3, size), frequent=frequent, pages=pages), table)


@pytest.mark.parametrize("pages", [2, 3, 4])
@pytest.mark.parametrize("size", [8, 12, 20])
def test_the_rate_of_a_tuple_counts_from_the_last_read_that_brought_its_page(size: int, pages: int) -> None:
    stream = [1 + (number * number + number // 5) % 11 for number in range(600)]
    trace = run_cached("cachejoin-pq", stream, size, 3, 2, from_key=pages, entry=0.5)
    table = table_for(trace, 3)
    frequent = FrequentPages(size, 0.9, 2.0, 0.5, pages)
    follows(trace, steps.queue_join(stream, size, table, AboveRate(3, size), frequent=frequent, pages=pages), table)


@fixed
@given(keys, slots, st.integers(1, 8), cache_sizes, st.booleans(), pages_of_a_read)
def test_p_and_op_cachejoin(
    stream: list[int], size: int, buffer: int, cached: int, both_ends: bool, pages: int
) -> None:
    name = "op-cachejoin" if both_ends else "p-cachejoin"
    trace = run_cached(name, stream, size, cached, 1, handover_slots=buffer, from_key=pages)
    table = table_for(trace, cached)
    follows(trace, steps.side_by_side(stream, size, buffer, table, above(1), both_ends=both_ends, pages=pages), table)


@pytest.mark.parametrize("algorithm", LOADS_BY_KEY)
def test_reads_of_one_page_are_the_same_from_the_key_and_aligned(algorithm: str) -> None:
    from_key, aligned = (run_trace(algorithm, SKEWED, from_key=pages, cache_blocks=1, **CACHES) for pages in (1, 0))
    assert from_key.stats == aligned.stats
    assert from_key.reads == aligned.reads
    assert from_key.assembly.clock.now() == aligned.assembly.clock.now()


@pytest.mark.parametrize("algorithm", LOADS_BY_KEY)
def test_reads_of_several_pages_begin_anywhere(algorithm: str) -> None:
    trace = run_trace(algorithm, from_key=3, cache_blocks=1, **CACHES)
    assert {page % 3 for page, _ in trace.served} == {0, 1, 2}


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in LOADS_BY_KEY])
def test_what_loads_nothing_by_a_key_does_not_change(algorithm: str) -> None:
    def run(from_key: int, **more: Any) -> Trace:
        return run_trace(algorithm, from_key=from_key, cache_blocks=1, **CACHES, **more)

    parameters = {"threads": 1} if algorithm == "demandjoin" else None
    assert run(1, parameters=parameters).reads == run(0, parameters=parameters).reads


@pytest.mark.parametrize("algorithm", LOADS_BY_KEY)
@pytest.mark.parametrize("pages", [2, 3, 10])
def test_memory_is_divided_as_for_aligned_partitions(algorithm: str, pages: int) -> None:
    parameters = {"read_bytes": 400 * pages}
    aligned = run_trace(algorithm, parameters=parameters, cache_blocks=1, **CACHES)
    from_key = run_trace(algorithm, from_key=pages, cache_blocks=1, **CACHES)
    assert from_key.stats.memory_bytes == aligned.stats.memory_bytes
    assert from_key.assembly.sizes == aligned.assembly.sizes


@fixed
@given(keys, slots, pages_of_a_read, st.sampled_from(LOADS_BY_KEY))
def test_there_is_at_most_one_read_for_each_tuple_and_none_in_vain(
    stream: list[int], size: int, pages: int, algorithm: str
) -> None:
    """Theorem 2 of HYBRIDJOIN, which all that came after it keep."""
    trace = run_trace(algorithm, stream, slots=size, from_key=pages, cache_blocks=1, **CACHES)
    assert len(trace.served) <= len(stream)
    assert all(answered >= 1 for _, answered in trace.served)


@fixed
@given(keys, slots, pages_of_a_read)
def test_no_read_begins_twice_at_one_page_within_as_many_tuples_as_can_wait(
    stream: list[int], size: int, pages: int
) -> None:
    """Theorem 1 of HYBRIDJOIN holds for where reads begin; a page may be part of several reads."""
    trace = run_trace("hybridjoin", stream, slots=size, from_key=pages)
    last_entered: dict[int, int] = {}
    for (page, _), entered in zip(trace.served, trace.entered, strict=True):
        if page in last_entered and entered < len(stream):
            assert entered - last_entered[page] >= size
        last_entered[page] = entered


def test_the_first_reads_by_hand() -> None:
    # 17 3 38 18 3 9 wait. From page 4 of key 17: 17 and 18 leave, 20 and 2 enter. From page 0 of key 3: 3, 3, 9 and 2
    # leave, 3 40 5 3 enter. From page 9 of key 38, the last one: 38 and 40. Then from page 4 of key 20.
    trace = run_trace("hybridjoin", from_key=3)
    assert trace.reads[:4] == [(4, 6), (0, 2), (9, 9), (4, 6)]
    assert trace.answered[:3] == [[0, 3], [1, 4, 5, 7], [2, 9]]
    assert [page_of(STREAM[answered[0]]) for answered in trace.answered[:3]] == [4, 0, 9]


def test_another_way_to_part_the_table_is_refused() -> None:
    store = MemoryStore.of_codes(40, row_bytes=100)
    with pytest.raises(InvalidSettingError, match="aligned or from-key"):
        Assembly(ALGORITHMS["hybridjoin"], store, MemoryBudget("4MB"), WallClock(), partitions="half")
