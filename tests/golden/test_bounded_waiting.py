"""How many tuples may arrive while one waits, when input never pauses."""

from __future__ import annotations

import random

import pytest
from small_trace import run_trace

from semistream.algorithms.registry import ALGORITHMS

SLOTS, HANDOVER, PAGES, TUPLES = 60, 20, 100, 2500
# The bound as a multiple of the slots, counted in tuples that reach the queue:
BOUNDS = {
    # A tuple is looked up before the next 32 are taken in.
    "inlj": 32 / SLOTS,
    # A tuple meets all of the table in one round, in which as many tuples enter as there are slots.
    "meshjoin": 1.0,
    "r-meshjoin": 1.0,
    # A batch is joined to its end before the next begins; the slots may grow a little when memory moves to them.
    "ssij": 2.0,
    # When a tuple enters, fewer than SLOTS are older. Each read frees the oldest, and with it tuples that came later,
    # so the queue spans about two times its slots; three times is never passed on these streams.
    "hybridjoin": 3.0,
    "x-hybridjoin": 3.0,
    "x-hybridjoin-tuned": 3.0,
    "optimised-x-hybridjoin": 3.0,
    "cachejoin": 3.0,
    "sscj": 3.0,
    # Scheduled reads go before the oldest, but each must bring about as many tuples as two others.
    "hybridjoin-pq": 5.0,
    "cachejoin-pq": 5.0,
    # The oldest goes first after four times the slots; then those before it must leave.
    "hybridjoin-l": 5.5,
    "cachejoin-l": 5.5,
    # The buffer between the phases waits, too. With two buffers every other read goes to the young end.
    "p-cachejoin": 3.0 * (SLOTS + HANDOVER) / SLOTS,
    "op-cachejoin": 6.0 * (SLOTS + HANDOVER) / SLOTS,
    # A page group whose oldest tuple has waited for three times the slots is in the next plan; the plan before it, and
    # the reads of the plan, come first.
    "demandjoin": 5.0,
    "oracle": 0.0,
}


def uniform(choose: random.Random) -> list[int]:
    return [choose.randint(1, 4 * PAGES) for _ in range(TUPLES)]


def skewed(choose: random.Random) -> list[int]:
    return choose.choices(range(1, 4 * PAGES + 1), [1 / rank for rank in range(1, 4 * PAGES + 1)], k=TUPLES)


def in_bursts(choose: random.Random) -> list[int]:
    bursts = ([choose.randint(1, 4 * PAGES)] * choose.randint(1, 30) for _ in range(TUPLES))
    return [key for burst in bursts for key in burst][:TUPLES]


def settings_of(algorithm: str) -> dict[str, object]:
    parameters = {"parts": PAGES} if algorithm == "meshjoin" else {}
    if "threshold" in ALGORITHMS[algorithm].parameters:
        parameters = {"threshold": 3}
    cache = {} if algorithm == "oracle" else {"cache_tuples": 5}
    return {"parameters": parameters, "handover_slots": HANDOVER, "cache_blocks": 2, **cache}


def test_every_recipe_that_promises_a_bound_has_one() -> None:
    assert set(BOUNDS) == {name for name, recipe in ALGORITHMS.items() if recipe.bounded_wait}


@pytest.mark.parametrize("stream", [uniform, skewed, in_bursts])
@pytest.mark.parametrize("algorithm", list(BOUNDS))
def test_no_tuple_waits_longer_than_its_bound(algorithm: str, stream: object) -> None:
    slots = 2 * PAGES if "mesh" in algorithm else SLOTS
    for seed in range(2):
        keys = stream(random.Random(seed))
        trace = run_trace(algorithm, keys, slots=slots, master_rows=4 * PAGES, **settings_of(algorithm))
        missed = 1 - trace.stats.cache_hits / TUPLES
        assert trace.stats.max_wait_tuples * missed <= BOUNDS[algorithm] * slots


@pytest.mark.parametrize("tuples", [300, 3000])
def test_partitioned_join_lets_a_tuple_of_a_rare_page_wait_for_ever(tuples: int) -> None:
    # One tuple for page 9; after it only pages 0 and 1 are asked for, whose slots fill up and are read in time, so that
    # the wait buffer is never full.
    stream = [40] + [1 + number % 8 for number in range(tuples)]
    trace = run_trace("partitioned", stream, slots=20, parameters={"trickle": 0, "threshold": 2}, cache_blocks=1)
    assert trace.stats.max_wait_tuples == tuples
    assert not ALGORITHMS["partitioned"].bounded_wait
