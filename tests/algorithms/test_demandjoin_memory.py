"""How DEMANDJOIN uses its memory: whole tables that fit, buffers as the disk wants them, reads under way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.costs import PAPERS, REMOTE, SSD, CostProfile
from semistream.engine.sizing.buffer_shares import RunBuffers, run_buffers_for
from semistream.generator import AbsentKeys, Workload, ZipfKeys
from semistream.joining import join
from semistream.store.memory import MemoryStore
from semistream.store.wrapping import WrappingStore
from semistream_lab.measurement import Measurement, measure

ROWS = 50_000


def measured(
    memory: str,
    profile: CostProfile = PAPERS,
    *,
    absent: float = 0.0,
    exponent: float = 0.5,
    accounting: str = "papers",
    parameters: dict[str, float] | None = None,
) -> Measurement:
    table = pa.table({"key": np.arange(1, ROWS + 1, dtype=np.int64) * 2})
    store = MemoryStore(table, "key", rows_per_page=68, row_bytes=120)
    keys = ZipfKeys(ROWS, exponent, seed=3, ranks="shuffled", stride=2)
    return measure(
        ALGORITHMS["demandjoin"],
        store,
        Workload(AbsentKeys(keys, absent, 0) if absent else keys),
        memory=memory,
        tuples=200_000,
        queues=3,
        max_tuples=400_000,
        profile=profile,
        accounting=accounting,
        parameters=parameters,
    )


@pytest.mark.parametrize("accounting", ["papers", "real"])
def test_a_table_that_fits_is_read_once_and_answers_everything(accounting: str) -> None:
    result = measured("8MB", accounting=accounting, absent=0.2)
    assert result.stats.page_reads == 0
    assert result.stats.cache_hits + result.stats.absent == result.stats.tuples_out
    assert result.stats.absent > 0.15 * result.stats.tuples_out
    assert result.peak_memory_bytes <= 8_000_000


def test_a_table_that_does_not_fit_is_not_held() -> None:
    result = measured("5MB")
    assert result.stats.page_reads > 0
    assert result.cache_tuples < ROWS


def test_absent_keys_that_are_remembered_wait_less() -> None:
    remembered, forgotten = (
        measured("2MB", absent=0.5, exponent=1.2, parameters={"absent": knob}) for knob in (1.0, 0.0)
    )
    assert remembered.service_rate > 1.02 * forgotten.service_rate


@pytest.mark.parametrize("profile", [PAPERS, SSD, REMOTE])
def test_latencies_pass_while_other_reads_are_on_their_way(profile: CostProfile) -> None:
    ahead, alone = measured("2MB", profile), measured("2MB", profile, parameters={"in_flight": 0})
    assert ahead.stats.tuples_out > 0
    assert ahead.service_rate > 1.1 * alone.service_rate


def test_a_disk_that_serves_one_request_at_a_time_hides_no_latency() -> None:
    one = replace(REMOTE, max_in_flight=1)
    assert measured("2MB", one).service_rate < 0.8 * measured("2MB", replace(REMOTE, max_in_flight=2)).service_rate


def test_buffers_are_as_large_as_latency_wants_and_memory_allows() -> None:
    assert run_buffers_for(SSD, 50_000_000, on_model_clock=True).share == pytest.approx(2 * 100e-6 * 3e9 / 50e6)
    assert run_buffers_for(PAPERS, 10**10, on_model_clock=True).share == 0.005
    assert run_buffers_for(REMOTE, 10**6, on_model_clock=True) == RunBuffers(0.09, 1)
    assert 0.03 < run_buffers_for(SSD, 50_000_000, on_model_clock=False).share < 0.05
    assert run_buffers_for(SSD, 3_000_000, on_model_clock=False) == RunBuffers(0.015, 2)


def test_a_disk_of_one_request_still_reads_while_pages_are_joined() -> None:
    one = replace(SSD, max_in_flight=1, probe_seconds=1e-6)
    ahead, alone = measured("2MB", one), measured("2MB", one, parameters={"in_flight": 0})
    assert ahead.service_rate > 1.05 * alone.service_rate


class LargeIndex(WrappingStore):
    """A table with a third of a megabyte of index."""

    @property
    def index_bytes(self) -> int:
        return 333_000


@pytest.mark.parametrize("algorithm", ["demandjoin", "cachejoin", "hybridjoin", "sscj"])
def test_a_large_index_shrinks_the_other_parts_instead_of_leaving_no_room_to_wait(algorithm: str) -> None:
    table = pa.table({"key": np.arange(1, ROWS + 1, dtype=np.int64), "name": ["x" * 20] * ROWS})
    store = LargeIndex(MemoryStore(table, "key", rows_per_page=68))
    stream = pa.table({"key": np.arange(1, 2001, dtype=np.int64), "value": np.arange(2000)})
    joined = join(stream.to_batches(), store, on="key", how="left", memory="600kB", algorithm=algorithm)
    assert sum(batch.num_rows for batch in joined) == 2000
    assert joined.stats.memory_bytes["index"] == 333_000
    assert joined.stats.memory_bytes["waiting tuples"] > 30_000
    assert sum(joined.stats.memory_bytes.values()) <= 600_000
