"""The stream of the peers on Spark: the steps of `data.stream_keys` in Spark's own expressions."""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from semistream_lab.peers.data import ADDED, FACTORS, FOLD_BITS, PRIME, SCRAMBLE, Situation


def spark_stream(spark: SparkSession, situation: Situation, first_row: int) -> DataFrame:
    """Return the stream as micro-batches of `batch_rows` rows that come as fast as they are taken."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", situation.batch_rows)
    arriving = source.option("numPartitions", situation.cores).load()
    return arriving.select(spark_key(F.col("value") + F.lit(first_row), situation).alias("key"), "value", "timestamp")


def spark_key(position: Column, situation: Situation) -> Column:
    """Return the key at a position of the stream, without Python, which would need workers of its own."""
    mixed = position % F.lit(PRIME)
    for factor in FACTORS:
        mixed = (mixed * F.lit(factor) + F.lit(ADDED)) % F.lit(PRIME)
        mixed = mixed.bitwiseXOR(F.shiftright(mixed, FOLD_BITS))
    rank = _spark_rank(mixed / F.lit(float(2**31)), situation)
    return rank * F.lit(SCRAMBLE) % F.lit(situation.master_rows)


def _spark_rank(uniform: Column, situation: Situation) -> Column:
    """Return the rank that IntegralZipf gives for a uniform number."""
    power, last = 1 - situation.zipf, situation.master_rows
    growth = math.log(last + 1.0)
    if power == 0:
        place = F.exp(uniform * F.lit(growth))
    elif power == 1:
        place = F.lit(1.0) + uniform * F.lit(float(last))
    else:
        area = uniform * F.lit(math.expm1(power * growth) / power)
        place = F.exp(F.log1p(area * F.lit(power)) / F.lit(power))
    return F.least(F.floor(place), F.lit(last).cast("bigint"))
