"""The short version of the kills of pipelines into all kinds of sinks."""

from __future__ import annotations

from pathlib import Path

import pytest
from sink_kills import Plan, run

from servers.spark_jars import jars_of


@pytest.mark.slow
def test_every_sink_keeps_its_guarantee_when_the_driver_is_killed(tmp_path: Path) -> None:
    for name in ("delta", "kafka", "broker"):
        jars_of(name)
    sinks = ("delta", "delta-upsert", "postgresql", "postgresql-upsert", "mysql-upsert", "kafka")
    figures = run(Plan(seed=5, sinks=sinks, kills=1, files=2, rows_of_a_file=200), tmp_path)
    assert figures["rows"] == 2 * 200 * len(sinks)
