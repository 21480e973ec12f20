"""What tasks tell about themselves: where their time goes, which keys are frequent, what other memory would do."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from enrich_tasks import enrich_task, handed_over, new_worker, run_task

from semistream.core.errors import InvalidSettingError
from semistream.master_table import MasterTable
from semistream.spark.enrich_settings import checked_hot_keys
from semistream.spark.statistics import CACHE_SIZES, BatchStatistics
from semistream.store.paged.read.row_reader import FileRowReader

MASTER_ROWS = 20_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("statistics") / "master"
    keys = np.arange(MASTER_ROWS)
    MasterTable.build(
        pa.table({"product_id": keys, "text": [f"{key:200}" for key in keys.tolist()]}), path, "product_id"
    )
    return path


def skewed(rows: int, seed: int = 1) -> pa.Table:
    """Return a stream whose popular keys are spread over the table."""
    random = np.random.default_rng(seed)
    ranks = np.floor(np.exp(random.random(rows) * np.log(MASTER_ROWS))).astype(np.int64)
    return pa.table({"product_id": ranks * 7919 % MASTER_ROWS})


@pytest.mark.parametrize("order", ["input", "any"])
def test_a_task_tells_how_long_it_read_waited_for_rows_and_handed_on(
    table: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = skewed(2_000)
    task = enrich_task(table, stream.schema, order=order)  # type: ignore[arg-type]
    new_worker(monkeypatch)
    run_task(task, handed_over(skewed(100, seed=2)))  # compiles what is not compiled yet

    def late() -> Iterator[pa.RecordBatch]:
        for batch in handed_over(stream, 500):
            time.sleep(0.05)
            yield batch

    began = time.perf_counter()
    carried = ""
    for batch in task(late()):
        time.sleep(0.03)
        carried = batch["statistics"][batch.num_rows - 1].as_py() or carried
    took = time.perf_counter() - began
    told = json.loads(carried)
    assert told["input_seconds"] >= 4 * 0.05
    assert told["output_seconds"] >= 0.03
    assert 0 < told["read_seconds"] < told["seconds"]
    assert told["seconds"] + told["input_seconds"] + told["output_seconds"] <= took


def test_slow_reads_are_told_as_reads(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = skewed(1_000, seed=4)
    task = enrich_task(table, stream.schema)
    new_worker(monkeypatch)
    run_task(task, handed_over(skewed(100, seed=2)))
    look_up = FileRowReader.look_up

    def slowly(*arguments: object) -> object:
        time.sleep(0.2)
        return look_up(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FileRowReader, "look_up", slowly)
    _, told = run_task(task, handed_over(stream))
    assert told["read_seconds"] >= 0.2
    assert told["seconds"] - told["read_seconds"] < 0.2


def test_frequent_and_unmatched_keys_are_those_of_the_stream(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [7] * 300 + [8] * 200 + [MASTER_ROWS + 5] * 100 + [-3] * 50 + [None] * 400 + list(range(1_000, 1_500))
    random = np.random.default_rng(2)
    stream = pa.table({"product_id": pa.array([keys[place] for place in random.permutation(len(keys))], pa.int64())})
    new_worker(monkeypatch)
    _, told = run_task(enrich_task(table, stream.schema, hot_keys=4), handed_over(stream))
    counted = Counter(str(key) for key in keys if key is not None)
    assert [tuple(pair) for pair in told["hot_keys"]] == counted.most_common(4)
    assert told["unmatched_keys"] == [[str(MASTER_ROWS + 5), 100], ["-3", 50]]
    _, quiet = run_task(enrich_task(table, stream.schema), handed_over(stream))
    assert quiet["hot_keys"] == quiet["unmatched_keys"] == [], "keys are told only if they are asked for"


def test_keys_of_several_columns_and_long_texts_are_told_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    from semistream.spark.key_tally import KeyTally

    del monkeypatch
    batch = pa.record_batch(
        {"a": [1, 1, 2, None], "b": pa.array(["<b>x</b>", "<b>x</b>", "y" * 200, "z"]).dictionary_encode()}
    )
    tally = KeyTally(["a", "b"], 5)
    assert list(tally.counting(iter([batch]))) == [batch]
    (first, second) = tally.hottest()
    assert first == ("1, <b>x</b>", 2)
    assert second == ("2, " + "y" * 76 + "…", 1)
    tally.count_unmatched(batch, np.array([2, 3]))
    assert [count for _, count in tally.most_unmatched()] == [1]


def test_the_tally_of_many_keys_is_bounded_and_still_knows_the_frequent_ones() -> None:
    from semistream.spark.key_tally import KeyTally

    random = np.random.default_rng(3)
    tally = KeyTally(["k"], 10)
    for _ in range(30):
        rare = random.integers(10_000, 10_000_000, 5_000)
        often = np.repeat(np.arange(10), np.arange(20, 10, -1))
        batch = pa.record_batch({"k": random.permutation(np.concatenate([rare, often]))})
        list(tally.counting(iter([batch])))
    assert [key for key, _ in tally.hottest()] == [str(key) for key in range(10)]
    assert len(tally._all) <= 4 * 16 * 10


@pytest.mark.parametrize("count", [-1, 101, True, "many"])
def test_an_odd_number_of_hot_keys_is_refused(count: int) -> None:
    with pytest.raises(InvalidSettingError, match="hot_keys is"):
        checked_hot_keys(count)


def test_what_other_caches_would_have_answered_is_near_what_they_answer(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = skewed(400_000)
    shares = []
    for memory in (4_000_000, 2_200_000):  # of which the index takes a part
        worker = new_worker(monkeypatch)
        monkeypatch.setattr("semistream.spark.held_join._TELL_SECONDS", 0.0)
        task = enrich_task(table, stream.schema, memory_bytes=memory)
        batches = [
            run_task(task, handed_over(stream.slice(start, 30_000), 10_000))[1]
            for start in range(0, stream.num_rows, 30_000)
        ][-7:]
        capacity = next(iter(worker._joins.values()))._cache.capacity  # type: ignore[union-attr]
        by_size = np.sum([told["hits_by_size"] for told in batches if told["hits_by_size"]], axis=0).tolist()
        rate = sum(told["cache_hits"] for told in batches) / sum(told["tuples_in"] for told in batches)
        shadow = sum(told["shadow_hits"] for told in batches) / sum(told["tuples_in"] for told in batches)
        shares.append((capacity, by_size, rate, shadow))
    (large, hits, rate, _), (small, _, measured, more) = shares
    assert 1.6 < large / small < 2.0
    assert hits == sorted(hits)
    assert hits[-1] > 0
    expected = rate * float(np.interp(small / large, CACHE_SIZES, np.array(hits) / hits[-1]))
    assert expected == pytest.approx(measured, abs=0.02)
    assert expected < rate - 0.01, "less memory answers less"
    assert measured + more == pytest.approx(rate, abs=0.03), "twice the cache"


def test_batches_add_up_what_tasks_tell() -> None:
    from test_statistics_files import TASK

    def told(**changes: object) -> str:
        return json.dumps({**TASK, "tuples_in": 1, **changes})

    batch = BatchStatistics.of(
        "n",
        [
            told(seconds=2.0, read_seconds=1.0, hot_keys=[["a", 2], ["b", 1]], hits_by_size=[1, 2], memory_bytes=5),
            told(seconds=1.0, input_seconds=3.0, hot_keys=[["b", 4]], memory_by_component={"cache": 7}, memory_bytes=7),
        ],
    )
    assert (batch.seconds, batch.task_seconds, batch.read_seconds, batch.input_seconds) == (2.0, 3.0, 1.0, 3.0)
    assert list(batch.hot_keys) == [("b", 5), ("a", 2)]
    assert batch.hits_by_size == (1, 2)
    assert batch.memory_parts == {"cache": 7}
    assert not any(isinstance(value, list | dict | tuple) for value in batch.as_dict().values())
