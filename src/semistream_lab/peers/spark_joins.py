"""What Spark itself offers, the bound that does nothing, and semistream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from semistream.spark.enrichment import enrich
from semistream.spark.worker import WORKER
from semistream_lab.peers.contract import Bench
from semistream_lab.peers.data import MASTER_SCHEMA, PAYLOAD, master_rows
from semistream_lab.peers.paged_master import paged_master
from semistream_lab.peers.streaming import SparkPeer


class Identity(SparkPeer):
    """Adds columns of as many bytes as a join would, without looking anything up: the least a Python operator costs."""

    name = "identity"
    summary = "mapInArrow that adds as many bytes and looks nothing up: the bound"
    joins = False

    def prepare(self, bench: Bench) -> None:
        """Do nothing."""

    def enriched(self, stream: DataFrame, bench: Bench) -> DataFrame:
        """Return the stream with payload that is the same for every batch."""
        del bench
        added = from_arrow_schema(pa.schema([MASTER_SCHEMA.field(name) for name in PAYLOAD]))
        return stream.mapInArrow(_with_any_payload, StructType([*stream.schema.fields, *added.fields]))


class NativeJoin(SparkPeer):
    """Spark's stream-static left join as it comes."""

    name = "native"
    summary = "Spark's stream-static left join with Parquet"
    has_workers = False
    reads_files = True
    reads_all = True

    def prepare(self, bench: Bench) -> None:
        """Write the Parquet files."""
        bench.data.build_parquet()

    def enriched(self, stream: DataFrame, bench: Bench) -> DataFrame:
        """Return the join."""
        return stream.join(bench.spark.read.parquet(str(bench.data.parquet)), "key", "left")


class BroadcastStream(NativeJoin):
    """The stream's rows sent to all tasks, which go through the master table: the best known for small batches."""

    name = "broadcast"
    summary = "Spark's inner join with the stream broadcast"

    def enriched(self, stream: DataFrame, bench: Bench) -> DataFrame:
        """Return the join."""
        return F.broadcast(stream).join(bench.spark.read.parquet(str(bench.data.parquet)), "key", "inner")


class CachedMaster(NativeJoin):
    """The master table repartitioned by its key and held in Spark's own memory."""

    name = "cached"
    summary = "Spark's left join with the master repartitioned and cached"
    reads_files = False

    def __init__(self) -> None:
        self._held: DataFrame | None = None

    def enriched(self, stream: DataFrame, bench: Bench) -> DataFrame:
        """Return the join, with the master table in memory already."""
        master = bench.spark.read.parquet(str(bench.data.parquet))
        self._held = master.repartition(bench.data.situation.cores, "key").cache()
        self._held.count()
        return stream.join(self._held, "key", "left")

    def release(self) -> None:
        """Let go of the master table."""
        if self._held is not None:
            self._held.unpersist(blocking=True)
            self._held = None


class Enrich(SparkPeer):
    """semistream."""

    name = "enrich"
    summary = "semistream: enrich with its default algorithm"
    keeps_to_memory = True

    def prepare(self, bench: Bench) -> None:
        """Build the master table in pages."""
        self._master = paged_master(bench.data, bench.spark)

    def enriched(self, stream: DataFrame, bench: Bench) -> DataFrame:
        """Return the join."""
        memory = bench.data.situation.memory_bytes
        return enrich(stream, self._master, on="key", how="left", memory=memory, name="peers")


def _with_any_payload(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # In a worker that has loaded what `enrich` loads, so that Spark's collection of garbage after each task is as long.
    WORKER.freeze()
    payload = _any_payload()
    for batch in batches:
        if batch.num_rows > payload.num_rows:
            payload = master_rows(np.arange(batch.num_rows, dtype=np.int64)).select(PAYLOAD).to_batches()[0]
        added = payload.slice(0, batch.num_rows)
        names = [*batch.schema.names, *PAYLOAD]
        yield pa.RecordBatch.from_arrays([*batch.columns, *added.columns], names=names)


@cache
def _any_payload() -> pa.RecordBatch:
    return master_rows(np.arange(10_000, dtype=np.int64)).select(PAYLOAD).to_batches()[0]
