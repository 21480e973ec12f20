"""Every read and every counter of each algorithm on the trace of `small_trace`, fixed.

The first reads are derived by hand in `test_first_iterations.py`, those of the papers' algorithms on any trace in the
`test_paper_steps` files. A change here changes an algorithm: say in the commit which step of which paper it follows.
"""

from __future__ import annotations

from typing import Any

import pytest
from small_trace import STREAM, run_trace

from semistream.algorithms.registry import ALGORITHMS

CACHE = {"cache_tuples": 1, "parameters": {"threshold": 1}}
PARALLEL = {"cache_tuples": 1, "handover_slots": 4, "parameters": {"threshold": 1}}

# fmt: off
# name: (settings, pages read one after the other, tuples answered from memory, iterations)
GOLDEN: dict[str, tuple[dict[str, Any], str, int, int]] = {
    "inlj": (
        {"parameters": {"batch": 1}},
        "409402400910604208040710039050008402006070900140050302008050",
        0, 60,
    ),
    "meshjoin": (
        {"slots": 20, "parameters": {"parts": 10}},
        "012345678901234567890123456789012345",
        0, 36,
    ),
    "r-meshjoin": (
        {"slots": 20, "parameters": {"read_bytes": 800}},
        "012345678901234567890123456789012345",
        0, 18,
    ),
    "partitioned": (
        {"parameters": {"trickle": 0}, "cache_blocks": 1},
        "40092413826745912358",
        27, 20,
    ),
    "ssij": (
        {"cache_blocks": 1},
        "40920916428713958426791453285",
        26, 29,
    ),
    "hybridjoin": (
        {},
        "409240164208710395084206790145032805",
        0, 36,
    ),
    "x-hybridjoin": (
        {"cache_blocks": 1},
        "049241628471395842679145328",
        30, 26,
    ),
    "x-hybridjoin-tuned": (
        {"cache_blocks": 2},
        "0149246284739584267945328",
        33, 23,
    ),
    "optimised-x-hybridjoin": (
        {"cache_tuples": 2},
        "04092410628407139058420679014530285",
        10, 34,
    ),
    "cachejoin": (
        CACHE,
        "409241602847103958402679014530285",
        14, 33,
    ),
    "sscj": (
        {"cache_tuples": 2, "parameters": {"threshold": 1}},
        "409241602847103958402679014530285",
        14, 33,
    ),
    "hybridjoin-l": (
        {},
        "04904280710050084600709043003020058016",
        0, 38,
    ),
    "cachejoin-l": (
        CACHE,
        "04160204103904020679085008023541",
        14, 32,
    ),
    "hybridjoin-pq": (
        {"parameters": {"entry": 1}},
        "40924001642800713950084260079145003285",
        0, 38,
    ),
    "cachejoin-pq": (
        {"cache_tuples": 1, "parameters": {"threshold": 1, "entry": 1}},
        "40924016284701395008426790014532085",
        14, 35,
    ),
    "p-cachejoin": (
        PARALLEL,
        "409241602847103958402679014530285",
        14, 33,
    ),
    "op-cachejoin": (
        PARALLEL,
        "40942411630082769054739200158",
        13, 29,
    ),
    # A seek costs as much as 137 of these small pages, so a plan is one run from the first page needed to the last.
    "demandjoin": (
        {"cache_tuples": 1, "parameters": {"threads": 1}},
        "0123456789012345678901234567801234567890123456780123456789012345058",
        14, 8,
    ),
    "oracle": (
        {},
        "0123456789",
        60, 0,
    ),
}
# fmt: on


def test_every_algorithm_has_golden_counters() -> None:
    assert set(GOLDEN) == set(ALGORITHMS)


@pytest.mark.parametrize("algorithm", list(GOLDEN))
def test_counters_and_reads_are_as_fixed(algorithm: str) -> None:
    settings, pages, cache_hits, iterations = GOLDEN[algorithm]
    trace = run_trace(algorithm, **settings)
    read = [page for first, last in trace.reads for page in range(first, last + 1)]
    assert "".join(map(str, read)) == pages
    stats = trace.stats
    assert (stats.cache_hits, stats.iterations) == (cache_hits, iterations)
    assert stats.cache_hits + stats.read_hits == len(STREAM)
    assert stats.page_reads == len(pages)
    assert stats.read_requests == len(trace.reads)
    assert stats.bytes_read == 400 * len(pages)
    if not trace.merges:  # runs are not told page group by page group
        assert sum(answered for _, answered in trace.served) == stats.read_hits


@pytest.mark.parametrize("algorithm", list(GOLDEN))
def test_the_model_clock_makes_runs_the_same(algorithm: str) -> None:
    settings = GOLDEN[algorithm][0]
    one, two = (run_trace(algorithm, seed=7, **settings) for _ in range(2))
    assert one.stats == two.stats
    assert one.reads == two.reads
    assert one.assembly.clock.now() == two.assembly.clock.now()
