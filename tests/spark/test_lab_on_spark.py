"""An algorithm of the lab on Spark, in small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from semistream_lab.experiments.measuring import burst_files, on_spark
from semistream_lab.experiments.point import Point


@pytest.mark.slow
def test_counts_of_a_run_on_spark_fit_the_stream_with_and_without_a_room(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(burst_files, "SETTLING_BATCHES", 3)
    monkeypatch.setattr(burst_files, "MEASURED_BATCHES", 4)
    point = Point(kind="on-spark", algorithm="cachejoin", master_rows=20_000, memory_bytes=8_000_000)
    room = (("max_wait", 2.0), ("tasks", 2.0), ("trigger", 0.5))
    at_once = on_spark.run(replace(point, options=(("tasks", 2.0),)), tmp_path)
    waiting = on_spark.run(replace(point, options=room), tmp_path)
    for row in (at_once, waiting):
        assert row["micro_batches"] == 4
        assert row["stream_rows"] == burst_files.BurstFiles.of(point, tmp_path).measured_rows
        assert row["read_requests"]
        assert row["bytes_read"]
    assert at_once["tuples_in"] == at_once["tuples_out"] == at_once["stream_rows"]
    assert at_once["cache_hits"] + at_once["read_hits"] == at_once["stream_rows"]  # type: ignore[operator]
    assert (at_once["waiting"], at_once["returned"]) == (0, 0)
    assert waiting["waiting"]
    assert waiting["returned"]
    assert float(waiting["latency_max"] or 0) > float(at_once["latency_p50"] or 0)
    on_spark.end_session()
    assert spark.range(1).count() == 1, "a session that was there before is left alone"
    assert not spark.streams.active
