"""Peers on Spark, side by side on a small master table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from semistream_lab.peers.comparison import TurnPlan, compare
from semistream_lab.peers.contract import Bench, PeerFailedError
from semistream_lab.peers.data import PeerData, Situation, stream_keys
from semistream_lab.peers.lookups.sqlite_rows import SqliteLookup
from semistream_lab.peers.peer_results import PeerResult
from semistream_lab.peers.peers_by_name import Addresses, chosen_peers
from semistream_lab.peers.spark_stream import spark_key


def _compared(spark: SparkSession, folder: Path, names: str) -> dict[str, PeerResult]:
    peers = chosen_peers(names, Addresses()).peers
    plan = TurnPlan(turns=1, batches=2, slow_batches=2, dropped=0)
    situation = Situation.of(20_000, 1000, "16MB", 1.0, 2)
    compared = compare(peers, Bench(PeerData(situation, folder), spark), plan, lambda *_: None)
    assert compared.failures == {}
    by_peer = {result.peer: result for result in compared.results}
    assert set(by_peer) == set(names.split(","))
    assert {result.checked_rows for result in by_peer.values()} == {2000}
    assert len({result.checksum for result in by_peer.values() if result.joins}) == 1
    assert all(result.batches == 2 and result.rows_per_second > 0 for result in by_peer.values())
    assert (by_peer["enrich"].bytes_read_a_batch or 0) > 0
    for name in set(by_peer) - {"native"}:
        assert (by_peer[name].peak_process_bytes or 0) > 20_000_000
    assert "SEMISTREAM_PEER" not in spark.sparkContext.environment
    assert not list(folder.glob("checkpoint-*"))
    return by_peer


def test_peers_on_spark_and_without_give_the_same_rows_and_are_measured(spark: SparkSession, tmp_path: Path) -> None:
    by_peer = _compared(spark, tmp_path, "enrich,duckdb")
    assert 0 < (by_peer["enrich"].add_batch_ms or 0) <= by_peer["enrich"].p99_ms


@pytest.mark.slow
def test_all_peers_give_the_same_rows_and_are_measured(spark: SparkSession, tmp_path: Path) -> None:
    by_peer = _compared(spark, tmp_path, "identity,native,enrich,sqlite,duckdb")
    for name in ("identity", "native", "enrich", "sqlite"):
        assert 0 < (by_peer[name].add_batch_ms or 0) <= by_peer[name].p99_ms
    assert by_peer["native"].peak_process_bytes is None
    assert by_peer["native"].memory_bytes is None
    assert by_peer["enrich"].memory_bytes == by_peer["sqlite"].memory_bytes == 16_000_000


def test_a_look_up_that_fails_in_a_worker_ends_its_peer(spark: SparkSession, tmp_path: Path) -> None:
    bench = Bench(PeerData(Situation.of(1000, 100, "16MB", 1.0, 2), tmp_path), spark)
    peer = SqliteLookup()
    peer.prepare(bench)
    peer.source().path.unlink()
    with pytest.raises(PeerFailedError, match="query on Spark stopped") as failed:
        peer.check(bench, 0, 1)
    assert "unable to open database file" in str(failed.value.__cause__)
    assert not spark.streams.active


@pytest.mark.parametrize("zipf", [0.0, 0.5, 1.0, 1.6])
def test_spark_draws_the_keys_of_the_formula(spark: SparkSession, zipf: float) -> None:
    situation = Situation.of(1_000_003, 1000, "16MB", zipf, 2)
    first = 2**31 - 5000  # across the point where positions start again
    positions = spark.range(first, first + 20_000)
    drawn = positions.select("id", spark_key(F.col("id"), situation).alias("key")).toArrow().sort_by("id")
    assert np.array_equal(drawn.column("key").to_numpy(), stream_keys(situation, drawn.column("id").to_numpy()))
