"""Requests with a bandwidth of their own: what comes side by side takes the time of one, and a buffer has turns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from semistream.algorithms.registry import algorithm_named
from semistream.core.clock import ModelClock
from semistream.core.costs import PAPERS, PAPERS_CONNECTIONS, PAPERS_SLOW_PROCESSOR, CostProfile, Operations
from semistream.engine.reading.disk_time import DiskTime
from semistream.engine.reading.modelled_requests import overlapped
from semistream.generator import Workload, ZipfKeys
from semistream.store.memory import MemoryStore
from semistream_lab.measurement import Measurement, measure

ROWS = 40_000
READ = PAPERS.read_seconds(100_000)


def test_bytes_side_by_side_count_once_unless_requests_share_the_bandwidth() -> None:
    assert overlapped(2, 1000, 2, PAPERS) == (1, 1000)
    assert overlapped(2, 1000, 2, PAPERS_CONNECTIONS) == (1, 500)
    assert overlapped(2, 1000, 1, PAPERS_CONNECTIONS) == (2, 1000)


@pytest.mark.parametrize(("probe_share", "share"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0), (3.0, 3.0)])
def test_a_buffer_is_not_loaded_while_it_is_joined(probe_share: float, share: float) -> None:
    clock = ModelClock(PAPERS_CONNECTIONS)
    disk = DiskTime(clock)
    for _ in range(10):
        with disk.reading(disk.now()):
            clock.charge(Operations(seeks=0.5, bytes_read=50_000))
        clock.advance(probe_share * READ)
        disk.end_turn(2)
    assert clock.now() == pytest.approx(10 * share * READ)


def run_of(algorithm: str, profile: CostProfile) -> Measurement:
    keys = pa.table({"key": np.arange(1, ROWS + 1, dtype=np.int64)})
    return measure(
        algorithm_named(algorithm),
        MemoryStore(keys, "key", rows_per_page=68, row_bytes=120),
        Workload(ZipfKeys(ROWS, 1.0, seed=0, ranks="shuffled")),
        memory=2_000_000,
        tuples=20_000,
        queues=3,
        profile=profile,
        accounting="papers",
    )


def test_only_a_join_with_two_buffers_gains_by_bandwidth_of_their_own() -> None:
    for algorithm in ("cachejoin", "p-cachejoin"):
        shared, own = (run_of(algorithm, profile) for profile in (PAPERS, PAPERS_CONNECTIONS))
        assert shared.service_rate == own.service_rate
    shared, own = (run_of("op-cachejoin", profile) for profile in (PAPERS, PAPERS_CONNECTIONS))
    assert own.service_rate > 1.2 * shared.service_rate
    assert own.operations is not None
    assert own.operations.bytes_read == pytest.approx(own.stats.bytes_read / 2, rel=0.01)


def test_the_slow_processor_reads_as_fast_as_the_papers_machine() -> None:
    assert PAPERS_SLOW_PROCESSOR.read_seconds(100_000) == READ
    probes = Operations(probes=1000, hand_overs=10)
    assert PAPERS_SLOW_PROCESSOR.seconds(probes) == pytest.approx(28 * PAPERS.seconds(probes))
