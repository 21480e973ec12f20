"""`ss.progress` reads what the enrichments of a streaming query have counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from enrich_runs import SalesStream, build, products, sales
from pyspark.sql import SparkSession

import semistream as ss
from semistream.core.errors import InvalidSettingError
from semistream.spark.statistics import BatchStatistics


def test_progress_tells_each_batch_and_each_operator_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path)
    stream = SalesStream(spark, tmp_path / "stream")
    stream.arrive(*(sales(number * 300, 300) for number in range(2)))
    settings: dict[str, Any] = {"on": "product_id", "how": "left", "memory": "4MB"}
    names = ss.enrich(stream.stream(), table, columns=["name"], name="names", **settings)
    query = stream.run(ss.enrich(names, table, columns=["price"], name="prices", **settings))

    batches = ss.progress(query)
    assert [batch.batch_id for batch in batches] == [0, 1]
    known = set(products()["product_id"].to_pylist())
    for number, batch in enumerate(batches):
        assert batch.query_id == query.id
        assert batch.rows_in == 300
        assert batch.seconds > 0
        assert sorted(counted.name for counted in batch.enrichments) == ["names", "prices"]
        keys = sales(number * 300, 300)["product_id"].to_pylist()
        for counted in batch.enrichments:
            assert isinstance(counted, BatchStatistics)
            assert (counted.version, counted.tuples_in, counted.null_keys) == (1, 300, keys.count(None))
            assert counted.cache_hits + counted.read_hits == sum(key in known for key in keys)
            assert 0 <= counted.hit_rate <= 1
        rows = batch.rows()
        assert {row["name"] for row in rows} == {"names", "prices"}
        assert {row["tuples_in"] for row in rows} == {300}

    (last,) = ss.progress(query.lastProgress)
    assert last == batches[-1]


def test_progress_before_the_first_batch_is_empty_and_of_other_things_refused() -> None:
    assert ss.progress(None) == []
    with pytest.raises(InvalidSettingError, match="An object of type dict has no progress: give a StreamingQuery"):
        ss.progress({})
