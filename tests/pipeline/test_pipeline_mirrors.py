"""Pipelines whose master table is a mirror."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from changing_source import ChangingSource
from pipeline_runs import PRODUCTS, SmallPipeline
from pyspark.sql import SparkSession
from stored_rows import stored_rows

import semistream as ss
from semistream.core.errors import InvalidSettingError
from semistream.pipeline import read_description
from semistream.pipeline.description import MirrorDescription
from semistream.pipeline.mirror_keeper import MirrorKeeper, StaleMirrorError
from semistream.pipeline.running import run_pipeline
from semistream.spark.batch_progress import BatchProgress

DIMENSION = (
    'table = "products"\non = "product_id"\nhow = "left"\nfrom = "landing"\nkey = "product_id"\nrefresh = "1 second"'
)


def _priced(price: int) -> pa.Table:
    return PRODUCTS.set_column(2, "price", pa.array([price, price + 1, price + 2], pa.int32()))


def _land(folder: Path, rows: pa.Table) -> None:
    (folder / "landing").mkdir(exist_ok=True)
    pq.write_table(rows, folder / "landing" / ".new")
    (folder / "landing" / ".new").rename(folder / "landing" / "products.parquet")


def _until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.05)


def test_every_batch_equals_the_join_with_its_pinned_version_while_refreshes_happen(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = SmallPipeline(spark, tmp_path, dimension=DIMENSION, trigger="", statistics='json_lines = "s.jsonl"')
    _land(tmp_path, PRODUCTS)
    pipeline.arrive("00.json", [{"sale_id": 0, "product_id": 1, "quantity": 1}])
    batches: list[BatchProgress] = []
    stop = threading.Event()
    thread = threading.Thread(
        target=run_pipeline, args=(pipeline.description, batches.append), kwargs={"spark": spark, "stop": stop}
    )
    thread.start()
    try:
        mirror = ss.MasterTable(tmp_path / "products")
        for number in range(1, 5):
            _until(lambda number=number: sum(batch.rows_in > 0 for batch in batches) >= number)
            if number < 4:  # the last batch tells what was counted by then
                _land(tmp_path, _priced(100 * number))
                # A new version alone may be one in which nothing but the position has moved.
                _until(lambda number=number: 100 * number in stored_rows(mirror)["price"].to_pylist())
            sales = [{"sale_id": 10 * number + id_, "product_id": id_, "quantity": 1} for id_ in (1, 2, 3, 4)]
            pipeline.arrive(f"{number:02}.json", sales)
        _until(lambda: sum(batch.rows_in > 0 for batch in batches) >= 5)
    finally:
        stop.set()
        thread.join(60)
    joined = {batch.batch_id: batch.enrichments[0].version for batch in batches if batch.rows_in}
    versions = sorted(joined.values())
    assert len(set(versions)) >= 3, "refreshes did not reach the batches"
    rows = pipeline.written()
    assert len(rows) == 1 + 4 * 4
    for batch, version in joined.items():
        stored = stored_rows(mirror, version)
        prices = dict(zip(stored["product_id"].to_pylist(), stored["price"].to_pylist(), strict=True))
        written = [row for row in rows if row["sale_id"] // 10 == batch]
        assert written
        assert all(row["price"] == prices.get(row["product_id"]) for row in written)
    numbers = batches[-1].mirror
    assert numbers is not None
    # A file that is replaced while a refresh reads it is a failure, which the next refresh makes up for.
    assert (numbers.rows_upserted, numbers.rows_deleted) == (3 * 3, 0)
    assert numbers.age_seconds < 30
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert lines[-1]["mirror_rows_upserted"] == 9


def test_a_run_over_what_is_there_now_begins_with_a_refresh(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = SmallPipeline(spark, tmp_path, dimension=DIMENSION)
    _land(tmp_path, PRODUCTS)
    ss.MasterTable.build(ss.FileSource(tmp_path / "landing"), tmp_path / "products", key="product_id")
    _land(tmp_path, _priced(5))
    pipeline.arrive("1.json", [{"sale_id": 1, "product_id": 3, "quantity": 1}])
    pipeline.run()
    assert [row["price"] for row in pipeline.written()] == [7]


def test_a_mirror_of_another_source_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = SmallPipeline(spark, tmp_path, dimension=DIMENSION)
    pipeline.build()
    _land(tmp_path, PRODUCTS)
    pipeline.arrive("1.json", [])
    with pytest.raises(InvalidSettingError, match="is not the source"):
        pipeline.run()


def _keeper(source: ChangingSource, folder: Path, stale_after: float | None) -> MirrorKeeper:
    source.put(1, "a")
    mirror = ss.MasterTable.build(source, folder / "m", key="k")
    return MirrorKeeper(mirror, MirrorDescription(None, None, 0.05, stale_after, 0.0))


def test_a_source_that_is_away_is_counted_and_the_mirror_goes_on_without_it(tmp_path: Path) -> None:
    source = ChangingSource("away")
    keeper = _keeper(source, tmp_path, None)
    source.is_away = True
    keeper.start()
    try:
        _until(lambda: keeper.numbers().failures >= 3)
        keeper.check()
        before = keeper.numbers()
        assert (before.version, before.refreshes) == (1, 0)
        source.put(2, "b")
        source.is_away = False
        _until(lambda: keeper.numbers().version == 2)
        assert keeper.numbers().rows_upserted == 1
    finally:
        keeper.stop()


def test_a_mirror_that_is_older_than_allowed_stops_the_pipeline(tmp_path: Path) -> None:
    source = ChangingSource("stale")
    keeper = _keeper(source, tmp_path, 0.5)
    keeper.refresh()
    keeper.check()
    source.is_away = True
    keeper.refresh()
    keeper.check()
    time.sleep(0.6)
    with pytest.raises(StaleMirrorError, match=r"The source is away: wait.*leave out stale_after"):
        keeper.check()
    source.is_away = False
    keeper.refresh()
    keeper.check()


def test_versions_that_refreshes_replace_are_removed_in_time(tmp_path: Path) -> None:
    source = ChangingSource("many")
    keeper = _keeper(source, tmp_path, None)
    for number in range(45):
        source.put(number, "x")
        keeper.refresh()
    assert len(ss.MasterTable(tmp_path / "m").info()["versions"]) < 25


@pytest.mark.parametrize(
    ("dimension", "sentence"),
    [
        ('table = "p"\nstale_after = "1 minute"', "stale_after has no effect without refresh"),
        ('table = "p"\nkey = "k"', "key has no effect without from"),
        ('table = "p"\nrefresh = "0 seconds"', "must be longer than 0 seconds"),
        ('table = "p"\nfrom = 3', "from must be an address"),
        ('table = "p"\nfrom = { kind = "cloud" }', "'cloud' is not a kind of source"),
        ('table = "p"\nfrom = { path = "x", colums = ["a"] }', "'colums' is not a setting of a files source"),
    ],
)
def test_settings_of_mirrors_that_make_no_sense_are_refused(tmp_path: Path, dimension: str, sentence: str) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text(
        '[pipeline]\nname = "x"\ncheckpoint = "c"\n[source]\nformat = "json"\npath = "in"\nschema = "k INT"\n'
        f'[[dimension]]\n{dimension}\non = "k"\n[sink]\nformat = "noop"\n'
    )
    with pytest.raises(InvalidSettingError, match=sentence):
        read_description(file)


@pytest.mark.parametrize(
    "source",
    ['{ env = "SOURCE" }', '{ kind = "database", address = { env = "SOURCE" }, grows = "changed_at" }'],
    ids=["all of it", "a value"],
)
def test_a_source_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text(
        '[pipeline]\nname = "x"\ncheckpoint = "c"\n[source]\nformat = "json"\npath = "in"\nschema = "k INT"\n'
        f'[[dimension]]\ntable = "t"\nfrom = {source}\nkey = "k"\non = "k"\n[sink]\nformat = "noop"\n'
    )
    with pytest.raises(InvalidSettingError, match="needs the environment variable SOURCE"):
        read_description(file)
    monkeypatch.setenv("SOURCE", "postgresql://reader@127.0.0.1/shop?table=customers")
    mirror = read_description(file).dimensions[0].mirror
    assert mirror is not None
    assert isinstance(mirror.source, ss.DatabaseSource)
    assert mirror.source.address == "postgresql://reader@127.0.0.1/shop?table=customers"
    assert mirror.source.grows == ("changed_at" if "grows" in source else None)
