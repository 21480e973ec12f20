"""Algorithms that pin the first pages are nearly as good on a reclustered table as on a sorted one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from semistream.algorithms.registry import algorithm_named
from semistream.core.costs import PAPERS
from semistream.generator import Workload, ZipfKeys
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream_lab.measurement import Measurement, measure

ROWS, SAMPLE, MEMORY = 100_000, 1_000_000, 2_500_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> MasterTable:
    """Return a table of the papers' rows; version 2 is in the order of use that a sample of the stream shows."""
    payload = pa.array([bytes(112)], pa.binary(112)).take(pa.array(np.zeros(ROWS, dtype=np.int64)))
    rows = pa.table({"key": np.arange(1, ROWS + 1), "payload": payload})
    made = MasterTable.build(rows, tmp_path_factory.mktemp("by_use") / "t", "key", page_bytes=8192)
    keys, counts = np.unique(ZipfKeys(ROWS, 1.0, seed=1, ranks="shuffled").draw(SAMPLE), return_counts=True)
    made.recluster(pa.table({"key": keys, "count": counts}), index_memory="25KB")
    return made


def measured(algorithm: str, store: MasterStore, keys: ZipfKeys, memory: int) -> Measurement:
    keys.seek(SAMPLE)
    recipe = algorithm_named(algorithm)
    return measure(
        recipe, store, Workload(keys), memory=memory, tuples=300_000, queues=3, profile=PAPERS, accounting="papers"
    )


@pytest.mark.parametrize("algorithm", ["optimised-x-hybridjoin", "x-hybridjoin"])
def test_a_table_by_use_is_nearly_as_good_as_a_sorted_one(table: MasterTable, algorithm: str) -> None:
    shuffled, by_rank = (ZipfKeys(ROWS, 1.0, seed=1, ranks=ranks) for ranks in ("shuffled", "sorted"))
    with table.open(1) as plain, table.open(2) as by_use:
        grown = by_use.index_bytes - plain.index_bytes
        worst = measured(algorithm, plain, shuffled, MEMORY)
        ours = measured(algorithm, by_use, shuffled, MEMORY - grown)
        best = measured(algorithm, plain, by_rank, MEMORY)
    assert grown < 30_000
    assert ours.service_rate > 0.9 * best.service_rate
    assert ours.service_rate > 2 * worst.service_rate
    assert ours.stats.page_reads / ours.stats.tuples_out < worst.stats.page_reads / worst.stats.tuples_out / 2
