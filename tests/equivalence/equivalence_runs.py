"""Runs joins for the tests of this folder: any algorithm, inside the smallest memory that is enough."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import BudgetTooSmallError, RowTooLargeError
from semistream.core.keys import KeyCodec, KeyCodes
from semistream.core.stats import JoinStats
from semistream.engine.loop import JoinLoop
from semistream.joining import join
from semistream.store.contract import MasterStore
from semistream.testing import assert_same_rows, joined_rows, reference_join
from semistream.testing.strategies import JoinCase

HOWS = ("inner", "left", "semi", "anti")
every_algorithm = pytest.mark.parametrize("algorithm", list(ALGORITHMS))
every_how = pytest.mark.parametrize("how", HOWS)
PARALLEL = [name for name, recipe in ALGORITHMS.items() if recipe.side_by_side]


# What makes a small join do everything that a large one does: reads of one page, a cache that admits at once and is
# soon full, parts and buffers of a few tuples; two threads where one would do.
SMALL_PARTS: dict[str, float] = {
    "read_bytes": 1,
    "threshold": 1,
    "cache_share": 0.06,
    "pinned_share": 0.06,
    "parts": 7,
    "handover_bytes": 1000,
    "batch": 3,
    "trickle": 0,
    "buffer_fill": 0.5,
    "threads": 2,
    "handover_share": 0.002,
}
PROFILES: dict[str, Mapping[str, float]] = {"as shipped": {}, "small parts": SMALL_PARTS}


def examples(count: int) -> settings:
    """Return settings for so many examples, the same in every run."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        print_blob=True,
        phases=[Phase.explicit, Phase.generate],  # shrinking takes minutes; a failing case is small as it is
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def parameters_of(algorithm: str, profile: str) -> dict[str, float]:
    """Return what a profile sets of the parameters that the algorithm has."""
    return {name: value for name, value in PROFILES[profile].items() if name in ALGORITHMS[algorithm].parameters}


def run_join(
    feed: Any, store: MasterStore, *, memory: int = 24_000, **arguments: Any
) -> tuple[pa.Table | None, JoinStats, int]:
    """Join inside the first of memory, 2 memory, 4 memory … that is enough; return output, counters and memory.

    `feed` is called for each attempt. The output is None where no batch came from which to learn the schema.
    """
    while True:
        joined = join(feed(), store, memory=memory, **arguments)
        try:
            batches = list(joined)
        except (BudgetTooSmallError, RowTooLargeError):
            assert memory < 64_000_000, "no memory is enough"
            memory *= 2
            continue
        schema = joined.schema
        return None if schema is None else pa.Table.from_batches(batches, schema=schema), joined.stats, memory


def assert_joined_as_reference(
    case: JoinCase, store: MasterStore, *, algorithm: str, how: str, memory: int, profile: str
) -> None:
    """Join a case and assert that the output is the reference's and every tuple was counted in and out."""
    output, stats, _ = run_join(
        case.stream.feed,
        store,
        memory=memory,
        on=case.on,
        how=how,
        algorithm=algorithm,
        parameters=parameters_of(algorithm, profile),
        **case.options,
    )
    expected = reference_join(case.stream.table, case.master, on=case.on, how=how, **case.options)
    if output is None:
        assert not expected.rows
    else:
        assert_same_rows(joined_rows(output), expected)
    assert_counters_add_up(stats, case.stream.table.num_rows)


def assert_counters_add_up(stats: JoinStats, rows: int) -> None:
    """Assert that every tuple entered once, left once, and left in one way."""
    assert stats.tuples_in == stats.tuples_out == rows
    assert stats.cache_hits + stats.read_hits + stats.absent + stats.null_keys + stats.refused == rows


@contextmanager
def weak_hash(modulus: int = 4) -> Iterator[None]:
    """Let keys that are hashed have only a few codes, in every table and stream made meanwhile."""
    strong = KeyCodec.encode

    def encode(codec: KeyCodec, columns: Any) -> KeyCodes:
        coded = strong(codec, columns)
        return coded if codec.exact else replace(coded, codes=coded.codes % modulus)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyCodec, "encode", encode)
        yield


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Fail instead of hanging."""

    def fail(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def standstill_fails(rounds_without_progress: int = 400) -> Iterator[None]:
    """Fail at once when a join goes round and round while no tuple enters or leaves and nothing is read."""

    def watch(rounds: Callable[[Any], Iterator[None]]) -> Callable[[Any], Iterator[None]]:
        def watched(loop: Any) -> Iterator[None]:
            before, still = None, 0
            for _ in rounds(loop):
                now = (loop.stats.tuples_in, loop.stats.tuples_out, loop.stats.iterations)
                before, still = now, still + 1 if now == before else 0
                assert still < rounds_without_progress, f"the join stands still: {loop.stats}"
                yield

        return watched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JoinLoop, "rounds", watch(JoinLoop.rounds))
        yield


def leftover_threads(patience_seconds: float = 5.0) -> list[str]:
    """Return the names of our threads that are still there when the patience ends."""
    end = time.monotonic() + patience_seconds
    while left := [thread.name for thread in threading.enumerate() if thread.name.startswith("semistream-")]:
        if time.monotonic() > end:
            break
        time.sleep(0.005)
    return left


def batches_of(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    """Cut a table into batches of so many rows."""
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=rows)
    return batches


def positions_of(output: Iterable[pa.RecordBatch], column: str) -> list[int]:
    """Return the values of a column that numbers the stream's rows, sorted."""
    return sorted(value for batch in output for value in batch.column(column).to_pylist())
