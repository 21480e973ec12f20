"""Rows that stay when a run has ended, and come again in the next one: every row leaves exactly once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.algorithms.registry import ALGORITHMS, algorithm_named
from semistream.core.arrays import BoolArray, Float64Array, Int64Array
from semistream.core.budget import MemoryBudget
from semistream.engine.output.output_plan import plan_output
from semistream.joining.session import JoinSession
from semistream.policies.contract import Staying
from semistream.policies.staying import Sweep
from semistream.store.memory import MemoryStore
from semistream.testing import assert_same_rows, joined_rows, reference_join

MASTER_ROWS = 3_000
SINCE = pa.timestamp("us", tz="UTC")
MASTER = pa.table({"key": np.arange(MASTER_ROWS) * 2, "name": [f"name {key}" for key in range(MASTER_ROWS)]})
SCHEMA = pa.schema([("key", pa.int64()), ("number", pa.int64()), ("label", pa.string()), ("since", SINCE)])


class StayUnlessDue(Staying):
    """Lets the page groups stay that a random number chooses."""

    def __init__(self, seed: int, share: float) -> None:
        self._random = np.random.default_rng(seed)
        self._share = share

    def due(self, page_groups: Int64Array, oldest_seconds: Float64Array, page_group_count: int) -> BoolArray:
        assert len(page_groups) == len(oldest_seconds) <= page_group_count
        chosen: BoolArray = self._random.random(len(page_groups)) >= self._share
        return chosen


def stream(rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    keys = np.floor(np.exp(random.random(rows) * np.log(2.0 * MASTER_ROWS))).astype(np.int64) * 7919 % (2 * MASTER_ROWS)
    columns = [keys, np.arange(rows), [f"label {row}" for row in range(rows)], pa.array(np.arange(rows), pa.int64())]
    return pa.table(columns, names=SCHEMA.names).cast(SCHEMA)


def session(algorithm: str) -> JoinSession:
    store = MemoryStore(MASTER, "key", rows_per_page=16)
    plan = plan_output(SCHEMA, store.schema, [("key", "key")], how="left")
    budget = MemoryBudget(2_000_000)
    return JoinSession(
        store,
        plan,
        SCHEMA,
        recipe=algorithm_named(algorithm),
        budget=budget,
        stream_row_bytes=40,
        finish_by_demand=True,
    )


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 1000), share=st.sampled_from([0.3, 0.8, 1.0]), runs=st.integers(1, 4))
def test_every_row_leaves_once_in_the_run_that_answers_it(algorithm: str, seed: int, share: float, runs: int) -> None:
    join = session(algorithm)
    rows = stream(4_000, seed)
    output: list[pa.RecordBatch] = []
    stayed: list[pa.RecordBatch] = []
    parts = [rows.slice(begin, 1_000) for begin in range(0, 1_000 * runs, 1_000)]
    for number, part in enumerate([*parts, rows.slice(0, 0)]):
        last = number == len(parts)
        staying = join.staying(StayUnlessDue(seed, 0.0 if last else share), "since")
        output.extend(join.run([*stayed, *part.to_batches()], staying=staying))
        stayed = list(staying.take(4_000))
        assert not last or not stayed
    wanted = reference_join(rows.slice(0, 1_000 * runs), MASTER, on={"key": "key"}, how="left")
    assert_same_rows(joined_rows(pa.Table.from_batches(output)), wanted)
    assert join.stats.tuples_in == join.stats.tuples_out + join.stats.stayed


def test_rows_that_may_all_stay_cost_no_read_and_keep_their_values() -> None:
    join = session("demandjoin")
    rows = stream(1_000, 3)
    staying = join.staying(StayUnlessDue(1, 1.0), "since")
    assert not list(join.run(rows.to_batches(), staying=staying))
    assert staying.count == rows.num_rows
    kept = pa.Table.from_batches(staying.take(10_000)).sort_by("number")
    assert kept.equals(rows.sort_by("number"))
    assert join.stats.page_reads == 0
    assert staying.count == 0


def places(sweep: Sweep, count: int, oldest: float) -> list[int]:
    groups = np.arange(count)
    return groups[sweep.due(groups, np.full(count, oldest), count)].tolist()


def test_a_sweep_passes_every_page_group_once_in_the_longest_wait() -> None:
    passed: list[int] = []
    for second in range(10):
        sweep = Sweep(before_seconds=100.0 + second, now_seconds=101.0 + second, max_wait_seconds=10.0)
        passed += places(sweep, 37, oldest=1e9)
    assert sorted(passed) == list(range(37))


def test_a_sweep_goes_round_the_end_of_the_table() -> None:
    sweep = Sweep(before_seconds=108.0, now_seconds=113.0, max_wait_seconds=10.0)
    assert places(sweep, 10, oldest=1e9) == [0, 1, 2, 8, 9]


def test_what_has_waited_long_enough_is_due_wherever_the_hand_is() -> None:
    sweep = Sweep(before_seconds=100.0, now_seconds=101.0, max_wait_seconds=10.0)
    oldest = np.array([200.0, 91.0, 91.5])
    assert sweep.due(np.array([5, 6, 7]), oldest, 10).tolist() == [False, True, False]


@pytest.mark.parametrize(("before", "wait"), [(80.0, 10.0), (100.0, 0.0)])
def test_after_a_long_pause_or_without_a_wait_all_are_due(before: float, wait: float) -> None:
    sweep = Sweep(before_seconds=before, now_seconds=101.0, max_wait_seconds=wait)
    assert places(sweep, 10, oldest=1e9) == list(range(10))
