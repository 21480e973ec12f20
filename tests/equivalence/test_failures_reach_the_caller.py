"""What goes wrong in the stream or in the store is raised by the join, and no thread is left behind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from equivalence_runs import (
    PARALLEL,
    every_algorithm,
    leftover_threads,
    parameters_of,
    time_limit,
)

from semistream.core.errors import CorruptTableError
from semistream.joining import JoinedBatches, join
from semistream.store.contract import MasterStore
from semistream.store.memory import MemoryStore
from semistream.testing import FaultyStore, InjectedFaultError


@pytest.fixture
def master() -> MemoryStore:
    return MemoryStore(pa.table({"id": np.arange(3000), "name": np.arange(3000)}), "id", rows_per_page=30)


def orders(number: int, rows: int = 64) -> pa.RecordBatch:
    ids = np.random.default_rng(number).integers(0, 3000, rows)
    return pa.RecordBatch.from_pydict({"id": ids, "row": np.arange(rows) + number * rows})


def start(source: object, store: MasterStore, algorithm: str) -> JoinedBatches:
    parameters = parameters_of(algorithm, "small parts")
    return join(source, store, on="id", algorithm=algorithm, memory=100_000, parameters=parameters)


@every_algorithm
@pytest.mark.parametrize("good_batches", [0, 1, 12])
def test_an_error_of_the_stream_is_raised(algorithm: str, good_batches: int, master: MemoryStore) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        for number in range(good_batches):
            yield orders(number)
        raise InjectedFaultError("the stream was set to fail")

    with time_limit(30), pytest.raises(InjectedFaultError, match="the stream was set to fail"):
        list(start(failing(), master, algorithm))
    assert not leftover_threads()


@every_algorithm
@pytest.mark.parametrize("read", [1, 3])
def test_an_error_of_a_read_is_raised(algorithm: str, read: int, master: MemoryStore) -> None:
    for delay_seconds in (0.0, 0.002):
        faulty = FaultyStore(
            master, fail_on_read=read, delay_seconds=delay_seconds, error=lambda text: CorruptTableError(text)
        )
        with time_limit(30), pytest.raises(CorruptTableError, match=f"read {read} was set to fail"):
            list(start((orders(number) for number in range(20)), faulty, algorithm))
        assert not leftover_threads()


@every_algorithm
def test_a_join_that_failed_gives_nothing_more(algorithm: str, master: MemoryStore) -> None:
    joined = start(iter([orders(number) for number in range(20)]), FaultyStore(master, fail_on_read=2), algorithm)
    with time_limit(30), pytest.raises(InjectedFaultError):
        list(joined)
    assert list(joined) == []


@every_algorithm
def test_an_error_of_the_last_pages_is_raised(algorithm: str, master: MemoryStore) -> None:
    """A page that fails when its rows are taken out must not be lost in the rush of the end."""
    one_key = pa.RecordBatch.from_pydict({"id": np.full(20, 7), "row": np.arange(20)})
    reads = FaultyStore(master)
    assert len(pa.Table.from_batches(list(start(iter([one_key]), reads, algorithm)))) == 20
    for number in {1, reads.reads}:
        faulty = FaultyStore(master, fail_on_take=number, delay_seconds=0.01)
        joined = start(iter([one_key]), faulty, algorithm)
        with time_limit(30):
            try:
                rows = sum(batch.num_rows for batch in joined)
            except InjectedFaultError:
                continue
            assert rows == 20, "rows are lost and nobody was told"
        assert not leftover_threads()


@pytest.mark.parametrize("algorithm", PARALLEL)
def test_a_slow_store_and_an_abandoned_join_leave_no_thread(algorithm: str, master: MemoryStore) -> None:
    slow = FaultyStore(master, delay_seconds=0.05)
    joined = start(iter([orders(number) for number in range(20)]), slow, algorithm)
    with time_limit(30):
        next(joined)
        joined.close()
    assert not leftover_threads()
