"""Every tuple leaves exactly once, however the stream comes: in drops, in silence, late, or not at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from equivalence_runs import (
    assert_counters_add_up,
    batches_of,
    every_algorithm,
    leftover_threads,
    parameters_of,
    positions_of,
    time_limit,
)

from semistream.algorithms.registry import ALGORITHMS
from semistream.joining import JoinedBatches, join
from semistream.store.memory import MemoryStore

ROWS = 400
# The papers let these wait for input while tuples wait: MESHJOIN for a full part of its queue, Partitioned Join for a
# full slot. All others answer what waits while the stream is silent.
WAIT_FOR_INPUT = ("meshjoin", "r-meshjoin", "partitioned")
ANSWER_IN_SILENCE = [name for name in ALGORITHMS if name not in WAIT_FOR_INPUT]


@pytest.fixture
def store() -> MemoryStore:
    rows = pa.table({"id": np.arange(0, 600, 2), "name": [f"product {number}" for number in range(300)]})
    return MemoryStore(rows, "id", rows_per_page=8)


@pytest.fixture
def sales() -> pa.Table:
    """Keys of which a third is absent, with a few frequent ones and a few nulls."""
    random = np.random.default_rng(5)
    ids = np.where(random.random(ROWS) < 0.4, random.integers(0, 20, ROWS), random.integers(0, 700, ROWS))
    keys = pa.array(ids, mask=random.random(ROWS) < 0.05)
    return pa.table({"id": keys, "row": np.arange(ROWS), "note": [f"note {row}" for row in range(ROWS)]})


def enrich(source: object, store: MemoryStore, algorithm: str, **arguments: object) -> JoinedBatches:
    parameters = parameters_of(algorithm, "small parts")
    return join(source, store, on="id", algorithm=algorithm, memory=200_000, parameters=parameters, **arguments)


def in_drops(sales: pa.Table) -> Iterator[pa.RecordBatch | None]:
    yield from batches_of(sales, 1)


def with_silences(sales: pa.Table) -> Iterator[pa.RecordBatch | None]:
    for number, batch in enumerate(batches_of(sales, 23)):
        yield from [None] * (number % 3)
        yield batch
        if number % 4 == 0:
            yield batch.slice(0, 0)
    yield None


def with_sleeps(sales: pa.Table) -> Iterator[pa.RecordBatch | None]:
    for batch in batches_of(sales, 41):
        time.sleep(0.003)
        yield batch
    time.sleep(0.003)


@pytest.mark.parametrize("pattern", [in_drops, with_silences, with_sleeps])
@every_algorithm
def test_every_tuple_leaves_exactly_once(algorithm: str, pattern: object, store: MemoryStore, sales: pa.Table) -> None:
    for source in (pattern(sales), list(pattern(sales))):  # pulled by a thread of its own, and not
        with time_limit(30):
            joined = enrich(source, store, algorithm, how="left")
            assert positions_of(joined, "row") == list(range(ROWS))
        assert_counters_add_up(joined.stats, ROWS)
    assert not leftover_threads()


@every_algorithm
def test_a_table_and_a_reader_are_streams_too(algorithm: str, store: MemoryStore, sales: pa.Table) -> None:
    for source in (sales, sales.to_reader(max_chunksize=50)):
        assert positions_of(enrich(source, store, algorithm, how="left"), "row") == list(range(ROWS))


@every_algorithm
def test_a_stream_without_rows_gives_none(algorithm: str, store: MemoryStore, sales: pa.Table) -> None:
    empty = sales.slice(0, 0)
    for source in (empty, [], iter([]), iter([None, None]), [*empty.to_batches(), None]):
        assert list(enrich(source, store, algorithm)) == []
    assert not leftover_threads()


@every_algorithm
def test_an_empty_master_table_matches_nothing(algorithm: str, sales: pa.Table) -> None:
    empty = MemoryStore(pa.table({"id": pa.array([], pa.int64()), "name": pa.array([], pa.string())}), "id")
    for how, count in (("left", ROWS), ("anti", ROWS), ("inner", 0), ("semi", 0)):
        with time_limit(30):
            joined = enrich(iter(batches_of(sales, 60)), empty, algorithm, how=how)
            assert len(positions_of(joined, "row")) == count
        assert_counters_add_up(joined.stats, ROWS)


@pytest.mark.parametrize("algorithm", ANSWER_IN_SILENCE)
def test_what_waits_is_answered_while_the_stream_is_silent(algorithm: str, store: MemoryStore, sales: pa.Table) -> None:
    answered = threading.Event()

    def pausing() -> Iterator[pa.RecordBatch]:
        yield sales.slice(0, 150).to_batches()[0]
        assert answered.wait(20), "the rows before the pause were held back"
        yield sales.slice(150).to_batches()[0]

    with time_limit(30):
        joined = enrich(pausing(), store, algorithm, how="left")
        seen: list[int] = []
        for batch in joined:
            seen += batch.column("row").to_pylist()
            if sorted(seen) == list(range(150)):
                answered.set()
    assert sorted(seen) == list(range(ROWS))


@every_algorithm
def test_closing_early_leaves_no_thread(algorithm: str, store: MemoryStore, sales: pa.Table) -> None:
    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            yield from batches_of(sales, 50)

    with time_limit(30):
        joined = enrich(endless(), store, algorithm, how="left")
        for _ in range(3):
            next(joined)
        joined.close()
        assert list(joined) == []
    assert not leftover_threads()


@every_algorithm
def test_closing_before_the_first_row_does_not_touch_the_stream(
    algorithm: str, store: MemoryStore, sales: pa.Table
) -> None:
    pulled: list[int] = []

    def watched() -> Iterator[pa.RecordBatch]:
        pulled.append(1)
        yield sales.to_batches()[0]

    joined = enrich(watched(), store, algorithm)
    joined.close()
    assert not pulled
    assert not leftover_threads()
