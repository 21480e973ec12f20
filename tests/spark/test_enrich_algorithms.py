"""Every algorithm gives in a stream what Spark's own join gives in a batch, and counts what it does."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pyarrow.compute as pc
from enrich_runs import SalesStream, build, multiset, products, run_to_table, sales, spark_join, statistics
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import semistream as ss
from semistream.algorithms.registry import ALGORITHMS

HOWS = ("inner", "left", "semi", "anti")
BATCHES = 3
ROWS = 300


def test_every_algorithm_joins_a_stream_as_spark_joins_a_batch_and_its_statistics_add_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = build(tmp_path)
    source = SalesStream(spark, tmp_path / "stream")
    source.arrive(*(sales(number * ROWS, ROWS) for number in range(BATCHES)))
    stream = source.stream()
    wanted = [(algorithm, "left") for algorithm in ALGORITHMS]
    wanted += [(algorithm, how) for algorithm in ("cachejoin", "meshjoin", "op-cachejoin") for how in HOWS]
    wanted = list(dict.fromkeys(wanted))

    def branch(algorithm: str, how: str) -> DataFrame:
        enriched = ss.enrich(
            stream, table, on="product_id", how=how, memory="48MB", algorithm=algorithm, name=f"{algorithm}.{how}"
        )
        for name, kind in (("name", "string"), ("price", "int")):
            if name not in enriched.columns:
                enriched = enriched.withColumn(name, F.lit(None).cast(kind))
        return enriched.withColumn("branch", F.lit(f"{algorithm}.{how}"))

    # One query for all of them: its tasks have one operator each, so that two workers do.
    everything = reduce(DataFrame.unionAll, [branch(*choice) for choice in wanted])
    written, query = run_to_table(everything, tmp_path / "checkpoint", "every_algorithm")
    rows = written.toArrow()

    batch = source.batch()
    master = spark.createDataFrame(products())
    expected = {how: multiset(spark_join(batch, master, {"product_id": "product_id"}, how)) for how in HOWS}
    nulls = sum(row[1] is None for row in expected["left"].elements())
    counted = statistics(query)
    assert sorted(counted) == sorted(f"{algorithm}.{how}" for algorithm, how in wanted)
    for algorithm, how in wanted:
        name = f"{algorithm}.{how}"
        of_branch = rows.filter(pc.equal(rows["branch"], name)).drop_columns(["branch"])
        joined = multiset(of_branch if how in ("inner", "left") else of_branch.drop_columns(["name", "price"]))
        assert joined == expected[how], name
        batches = counted[name]
        assert [counters.batch_id for counters in batches] == list(range(BATCHES)), name
        assert [counters.tuples_in for counters in batches] == [ROWS] * BATCHES, name
        for counters in batches:
            left = counters.cache_hits + counters.read_hits + counters.absent + counters.null_keys + counters.refused
            assert (counters.tuples_out, counters.refused) == (left, 0), name
            assert counters.tuples_out == counters.tuples_in, name
            assert counters.version == 1, name
            assert counters.query_id == query.id, name
            assert 0 < counters.memory_bytes <= counters.budget_bytes == 48_000_000, name
        assert sum(counters.rows_out for counters in batches) == joined.total(), name
        assert sum(counters.null_keys for counters in batches) == nulls, name
