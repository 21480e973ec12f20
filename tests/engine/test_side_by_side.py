"""Two phases side by side: nothing is lost between them, and neither waits where it could work."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.costs import PAPERS, SSD, CostProfile
from semistream.generator import AbsentKeys, Workload, ZipfKeys
from semistream.store.memory import MemoryStore
from semistream_lab.measurement import Measurement, measure

ROWS = 50_000


def measured(memory: str, *, exponent: float, profile: CostProfile | None = SSD, **parameters: float) -> Measurement:
    table = pa.table({"key": np.arange(1, ROWS + 1, dtype=np.int64) * 2})
    store = MemoryStore(table, "key", rows_per_page=68, row_bytes=120)
    keys = ZipfKeys(ROWS, exponent, seed=3, ranks="shuffled", stride=2)
    return measure(
        ALGORITHMS["demandjoin"],
        store,
        Workload(AbsentKeys(keys, 0.1, 0)),
        memory=memory,
        tuples=400_000,
        profile=profile,
        accounting="papers",
        parameters=parameters,
    )


@pytest.mark.parametrize("profile", [SSD, None], ids=["model clock", "threads"])
@pytest.mark.parametrize(("memory", "exponent"), [("8MB", 1.0), ("2MB", 1.3), ("2MB", 1.0), ("1MB", 0.0)])
def test_every_tuple_leaves_once_whoever_looks_for_it(
    memory: str, exponent: float, profile: CostProfile | None
) -> None:
    """A table that is held, one whose cache answers nearly all, one half and half, and one by reads alone."""
    alone = measured(memory, exponent=exponent, threads=1).stats
    stats = measured(memory, exponent=exponent, profile=profile, threads=2).stats
    assert stats.cache_hits + stats.read_hits + stats.absent == stats.tuples_out
    share, expected = stats.absent / stats.tuples_out, alone.absent / alone.tuples_out
    assert share == pytest.approx(expected, abs=0.01)


def test_where_the_cache_answers_all_both_threads_look_for_tuples() -> None:
    one, two = (measured("8MB", exponent=1.0, threads=threads) for threads in (1, 2))
    alone_seconds = SSD.take_seconds + SSD.probe_seconds + SSD.output_seconds
    assert one.service_rate == pytest.approx(1 / alone_seconds, rel=0.01)
    # Passed on at 10 ns, looked for at 45 ns by the other thread: both are busy at 25.3 ns a tuple.
    assert two.service_rate == pytest.approx(1 / 25.3e-9, rel=0.03)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.3])
@pytest.mark.parametrize("profile", [SSD, PAPERS], ids=lambda profile: profile.name)
def test_a_second_thread_never_costs_much(profile: CostProfile, exponent: float) -> None:
    one, two = (measured("2MB", exponent=exponent, profile=profile, threads=threads) for threads in (1, 2))
    assert two.service_rate > 0.97 * one.service_rate


def test_on_the_model_clock_there_are_two_threads_unless_a_deadline_is_set() -> None:
    usual, two, one = (measured("2MB", exponent=1.0, **setting) for setting in ({}, {"threads": 2}, {"threads": 1}))
    assert usual.service_rate == two.service_rate > 1.1 * one.service_rate
    with_deadline = measured("2MB", exponent=1.0, deadline=1e6, threads=2)
    assert with_deadline.service_rate < 1.1 * one.service_rate
