"""A join that is run again and again gives the rows of each run, and keeps what it has cached."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from equivalence_runs import every_algorithm, every_how, time_limit
from used_tables import ordered_by_use

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.arrays import Int64Array
from semistream.core.budget import MemoryBudget
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.output.output_plan import plan_output
from semistream.engine.waiting.waiting_tuples import Drained, WaitingTuples
from semistream.joining import JoinSession
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream.testing import assert_same_rows, joined_rows, reference_join

MASTER_ROWS = 3000
STREAM_SCHEMA = pa.schema([pa.field("key", pa.int64()), pa.field("label", pa.string())])


def master() -> pa.Table:
    keys = np.arange(0, 2 * MASTER_ROWS, 2)
    return pa.table({"key": keys, "name": [f"name {key % 97}" for key in keys], "price": keys / 3})


@pytest.fixture(scope="module", params=["by key", "by use"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MasterStore:
    path: Path = tmp_path_factory.mktemp("session") / "master"
    table = MasterTable.build(master(), path, "key", page_bytes=512)
    return (ordered_by_use(table) if request.param == "by use" else table).open()


def stream(seed: int, rows: int) -> pa.Table:
    random = np.random.default_rng(seed)
    keys = 2 * np.minimum(random.zipf(1.2, rows), MASTER_ROWS + 100) + (random.random(rows) < 0.1)
    nulls = random.random(rows) < 0.02
    labels = [f"row {seed}/{row}" for row in range(rows)]
    return pa.table([pa.array(keys, mask=nulls), pa.array(labels)], schema=STREAM_SCHEMA)


def session(store: MasterStore, algorithm: str, how: str = "left", memory: int = 600_000) -> JoinSession:
    recipe = ALGORITHMS[algorithm]
    small = {"threshold": 1.0, "cache_share": 0.2, "read_bytes": 2000}
    return JoinSession(
        store,
        plan_output(STREAM_SCHEMA, store.schema, [("key", "key")], how=how),
        STREAM_SCHEMA,
        recipe=recipe,
        budget=MemoryBudget(memory),
        stream_row_bytes=30,
        parameters={name: value for name, value in small.items() if name in recipe.parameters},
        finish_by_demand=True,
    )


@every_algorithm
@every_how
def test_each_run_gives_its_own_rows(store: MasterStore, algorithm: str, how: str) -> None:
    joining = session(store, algorithm, how)
    with time_limit(60):
        for seed, rows in enumerate([700, 0, 1, 5000, 40]):
            sales = stream(seed, rows)
            batches = list(joining.run(sales.to_batches(max_chunksize=300)))
            joined = pa.Table.from_batches(batches, schema=joining.plan.schema)
            assert_same_rows(joined_rows(joined), reference_join(sales, master(), on={"key": "key"}, how=how))
    assert joining.stats.tuples_in == joining.stats.tuples_out == 5741


@pytest.mark.parametrize("algorithm", ["cachejoin", "sscj", "cachejoin-pq", "p-cachejoin", "op-cachejoin"])
def test_what_one_run_has_cached_answers_the_next(store: MasterStore, algorithm: str) -> None:
    joining = session(store, algorithm, memory=2_000_000)
    list(joining.run(stream(1, 4000).to_batches()))
    first = joining.stats.cache_hits
    list(joining.run(stream(1, 4000).to_batches()))
    assert joining.stats.cache_hits - first > 2000


def test_the_end_of_a_run_reads_only_pages_that_are_needed(store: MasterStore) -> None:
    joining = session(store, "hybridjoin")
    list(joining.run([pa.record_batch([pa.array([0, 2, 2, 5998]), pa.array(["a"] * 4)], schema=STREAM_SCHEMA)]))
    pages = len(np.unique(store.locate(np.array([0, 2, 5998]))))
    assert joining.stats.page_reads == pages
    assert joining.stats.read_requests == (2 if store.first_codes is not None else pages)


@pytest.mark.parametrize("algorithm", ["hybridjoin", "demandjoin"])
def test_neighbouring_pages_are_one_request(store: MasterStore, algorithm: str) -> None:
    joining = session(store, algorithm, memory=4_000_000)
    keys = np.arange(0, 200, 2)
    if store.first_codes is None:
        codes = np.arange(0, 2 * MASTER_ROWS, 2)
        keys = codes[np.argsort(store.locate(codes), kind="stable")][:100]
    list(joining.run([pa.record_batch([pa.array(keys), pa.array(["a"] * 100)], schema=STREAM_SCHEMA)]))
    assert joining.stats.page_reads > 2
    assert joining.stats.read_requests < joining.stats.page_reads


def test_hot_rows_of_one_cache_warm_another(store: MasterStore) -> None:
    old = session(store, "cachejoin", memory=2_000_000)
    sales = stream(3, 4000)
    for _ in range(2):
        list(old.run(sales.to_batches()))
    cached = old.assembly.cache
    assert isinstance(cached, CachedTuples)
    hot = list(cached.cache.hottest(10_000, at_once=20))
    assert (np.diff(np.concatenate([rows.frequencies for rows in hot])) <= 0).all()
    new = session(store, "cachejoin", memory=2_000_000)
    assert sum(map(new.warm, hot)) == cached.cache.count
    batches = list(new.run(sales.to_batches()))
    joined = pa.Table.from_batches(batches, schema=new.plan.schema)
    assert_same_rows(joined_rows(joined), reference_join(sales, master(), on={"key": "key"}, how="left"))
    assert new.stats.cache_hits > 0.9 * (old.stats.cache_hits - new.stats.cache_hits)


@pytest.mark.parametrize("algorithm", ["p-cachejoin", "op-cachejoin"])
def test_a_slow_disk_phase_loses_no_row_at_the_end(
    store: MasterStore, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain = WaitingTuples.drain

    def drain_slowly(waiting: WaitingTuples, page_groups: Int64Array) -> Drained:
        drained = drain(waiting, page_groups)
        time.sleep(0.03)  # the queue is empty, and nothing is answered yet
        return drained

    monkeypatch.setattr(WaitingTuples, "drain", drain_slowly)
    joining, sales = session(store, algorithm, "left"), stream(3, 5000)
    with time_limit(60):
        joined = pa.Table.from_batches(joining.run(sales.to_batches(max_chunksize=300)), schema=joining.plan.schema)
    assert_same_rows(joined_rows(joined), reference_join(sales, master(), on={"key": "key"}, how="left"))
